// SPDX-License-Identifier: Apache-2.0
#include "node/box_facts.hpp"

#include <algorithm>

#include "base/crc32c.hpp"
#include "raid/superblock.hpp"

namespace weft::node {
namespace {

constexpr std::size_t head_size = wire_size<wire::ArrayBoxFile>();
constexpr std::size_t part_size = wire_size<wire::ArrayBoxPart>();
constexpr std::size_t checksum_size = 4;

}  // namespace

wire::ArrayBoxPart* BoxFacts::find(const wire::VolumeIdentity& volume) {
    auto found = std::ranges::find(parts, volume, &wire::ArrayBoxPart::volume);
    return found == parts.end() ? nullptr : &*found;
}

std::uint64_t BoxFacts::taken() const {
    std::uint64_t sum = 0;
    for (const auto& part : parts) sum += part.size;
    return sum;
}

std::string file_name_of(const wire::ArrayBoxPart& part) {
    const auto first = "part-" + to_digits(part.volume);
    return part.number == 0 ? first : first + "." + std::to_string(part.number);
}

std::vector<std::byte> encode_box_facts(const BoxFacts& facts) {
    std::vector<std::byte> octets(head_size + facts.parts.size() * part_size + checksum_size);
    Buffer rest(octets);
    wire::ArrayBoxFile head{.box = facts.box,
                            .cluster = facts.cluster,
                            .epoch = facts.epoch,
                            .parts = static_cast<std::uint16_t>(facts.parts.size())};
    WEFT_CHECK(raid::set_field(head.name, facts.name));
    encode(head, rest);
    rest = rest.subspan(head_size);
    for (const auto& part : facts.parts) {
        encode(part, rest);
        rest = rest.subspan(part_size);
    }
    const auto before = ConstBuffer(octets).first(octets.size() - checksum_size);
    store_big_endian<checksum_size>(crc32c(before), rest.data());
    return octets;
}

Result<BoxFacts> parse_box_facts(ConstBuffer octets) {
    if (octets.size() < head_size + checksum_size) return Error{.code = Code::truncated};
    WEFT_TRY(const auto head, decode<wire::ArrayBoxFile>(octets));
    const std::size_t size = head_size + head.parts * part_size;
    if (octets.size() != size + checksum_size) return Error{.code = Code::truncated};
    if (load_big_endian<checksum_size>(octets.data() + size) != crc32c(octets.first(size)) ||
        head.parts > box_parts_max)
        return Error{.code = Code::malformed};
    BoxFacts facts{.box = head.box,
                   .cluster = head.cluster,
                   .epoch = head.epoch,
                   .name = raid::text_of_field(head.name),
                   .parts = {}};
    for (std::size_t i = 0; i < head.parts; ++i) {
        WEFT_TRY(const auto part,
                 decode<wire::ArrayBoxPart>(octets.subspan(head_size + i * part_size)));
        if (facts.find(part.volume) != nullptr) return Error{.code = Code::malformed};
        facts.parts.push_back(part);
    }
    return facts;
}

}  // namespace weft::node
