// SPDX-License-Identifier: Apache-2.0
#include "raid/dirty_record.hpp"

namespace weft::raid {
namespace {

constexpr std::size_t record_head = wire_size<wire::ArrayRecordHead>(),
                      dirty_head = wire_size<wire::ArrayDirtyHead>(), word_size = 8, sum_size = 4;

}  // namespace

std::string dirty_record_name(const wire::VolumeIdentity& volume, std::uint8_t place) {
    return "dirty/" + to_digits(volume) + "/" +
           (place == wire::intent_place ? "intent" : std::to_string(place));
}

std::vector<std::byte> encode_dirty_record(const DirtyRecord& record) {
    const auto& words = record.stripes.words();
    const std::size_t body = dirty_head + words.size() * word_size;
    std::vector<std::byte> octets(record_head + body + sum_size);
    Buffer rest(octets);
    encode(wire::ArrayRecordHead{.kind = wire::ArrayRecordKind::dirty,
                                 .body_length = static_cast<std::uint32_t>(body)},
           rest);
    rest = rest.subspan(record_head);
    encode(wire::ArrayDirtyHead{.volume = record.volume,
                                .place = record.place,
                                .stripes = record.stripes.stripes(),
                                .words = static_cast<std::uint32_t>(words.size()),
                                .boots = record.boots},
           rest);
    rest = rest.subspan(dirty_head);
    for (auto word : words) {
        store_big_endian<word_size>(word, rest.data());
        rest = rest.subspan(word_size);
    }
    store_big_endian<sum_size>(crc32c(ConstBuffer(octets).first(record_head + body)), rest.data());
    return octets;
}

Result<DirtyRecord> parse_dirty_record(ConstBuffer octets) {
    if (octets.size() < record_head + dirty_head + sum_size) return Error{Code::truncated};
    const std::size_t summed = octets.size() - sum_size;
    WEFT_TRY(auto head, decode<wire::ArrayRecordHead>(octets));
    if (head.kind != wire::ArrayRecordKind::dirty || head.body_length != summed - record_head ||
        load_big_endian<sum_size>(octets.data() + summed) != crc32c(octets.first(summed)))
        return Error{Code::malformed};
    auto rest = octets.subspan(record_head, summed - record_head);
    WEFT_TRY(auto said, decode<wire::ArrayDirtyHead>(rest));
    rest = rest.subspan(dirty_head);
    const bool is_place = said.place < limits::boxes || said.place == wire::intent_place;
    if (!is_place || rest.size() != std::size_t{said.words} * word_size)
        return Error{Code::malformed};
    std::vector<std::uint64_t> words;
    for (; !rest.empty(); rest = rest.subspan(word_size))
        words.push_back(load_big_endian<word_size>(rest.data()));
    DirtyRecord record{.volume = said.volume,
                       .place = said.place,
                       .stripes = RegionMap(said.stripes, limits::lasting_regions),
                       .boots = said.boots};
    if (!record.stripes.set_words(std::move(words))) return Error{Code::malformed};
    return record;
}

}  // namespace weft::raid
