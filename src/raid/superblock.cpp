// SPDX-License-Identifier: Apache-2.0
#include "raid/superblock.hpp"

#include <algorithm>
#include <bit>

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "raid/checked_disk.hpp"
#include "raid/journal_format.hpp"

namespace weft::raid {
namespace {

constexpr std::size_t checksummed = wire::superblock_size - 4;

bool is_place_of(const wire::ArraySuperblock& superblock) {
    return superblock.place < superblock.volume.boxes &&
           superblock.volume.members[superblock.place].box == superblock.box;
}

/// None, or one that lies between superblocks and data, and has room for a record.
bool has_a_journal_that_can_be(const wire::ArraySuperblock& superblock) {
    const auto offset = superblock.journal_offset, length = superblock.journal_length;
    if (length == 0) return true;
    return superblock.columns <= data_columns_max && offset >= 2 * wire::superblock_size &&
           offset % wire::journal_block == 0 && superblock.data_offset % wire::journal_block == 0 &&
           length % wire::journal_block == 0 && within(offset, length, superblock.data_offset) &&
           journal_ring_length(length) != 0;
}

}  // namespace

SuperblockImage encode_superblock(const wire::ArraySuperblock& superblock) {
    SuperblockImage image{};
    encode(superblock, image);
    store_big_endian<4>(crc32c(ConstBuffer(image).first(checksummed)), image.data() + checksummed);
    return image;
}

Result<wire::ArraySuperblock> parse_superblock(ConstBuffer image) {
    if (image.size() < wire::superblock_size) return Error{Code::truncated};
    const auto expected = load_big_endian<4>(image.data() + checksummed);
    if (crc32c(image.first(checksummed)) != expected)
        return Error{.code = Code::malformed, .where = checksummed};
    const auto superblock = decode<wire::ArraySuperblock>(image);
    if (!superblock || !layout_of(superblock->volume) ||
        superblock->volume.topology > wire::ArrayTopology::binary_tree ||
        !is_place_of(*superblock) || !has_a_journal_that_can_be(*superblock))
        return Error{Code::unsupported};
    return superblock;
}

Result<wire::ArraySuperblock> newest_superblock(ConstBuffer first, ConstBuffer second) {
    auto a = parse_superblock(first), b = parse_superblock(second);
    for (const auto* each : {&a, &b})
        if (!*each && each->error().code == Code::unsupported) return each->error();
    if (!a && !b) return Error{Code::not_found};
    if (!a || (b && b->written > a->written)) return b;
    return a;
}

unsigned copy_to_write(ConstBuffer first, ConstBuffer second) {
    auto a = parse_superblock(first), b = parse_superblock(second);
    if (!a) return 0;
    return b && b->written > a->written ? 0 : 1;
}

std::uint64_t part_journal_length(std::uint64_t data_length) {
    constexpr std::uint64_t unit = 1u << 20;
    return std::clamp(round_down(data_length / 8, unit), 4 * unit, 64 * unit);
}

std::uint64_t part_data_room(std::uint64_t octets, wire::ArrayConsistency consistency,
                             const Layout& layout) {
    if (octets <= part_data_offset) return 0;
    octets -= part_data_offset;
    if (consistency == wire::ArrayConsistency::none) return octets;
    const std::uint64_t journal = part_journal_length(octets);
    if (octets <= journal) return 0;
    const std::uint64_t around = (layout.data_columns() + 1u) * CheckedDisk::block;
    const std::uint64_t group = CheckedDisk::group_bytes + around;
    const std::uint64_t left = octets - journal, whole = left / group;
    const std::uint64_t rest = left % group;
    return whole * CheckedDisk::group_bytes + (rest > around ? rest - around : 0);
}

std::uint64_t part_length(const wire::ArraySuperblock& superblock) {
    if (!has_journal(superblock)) return superblock.data_offset + superblock.data_length;
    return superblock.data_offset +
           CheckedDisk::length_below(superblock.data_length, superblock.columns);
}

wire::ArraySuperblock part_superblock(const wire::ClusterIdentity& cluster, wire::Epoch epoch,
                                      const wire::ArrayVolume& volume, std::uint8_t place,
                                      std::uint64_t data_length) {
    const std::uint64_t journal = volume.consistency == wire::ArrayConsistency::journal
                                      ? part_journal_length(data_length)
                                      : 0;
    const auto layout = layout_of(volume);
    return {.written = 0,
            .cluster = cluster,
            .box = volume.members[place].box,
            .place = place,
            .columns = journal == 0 || !layout ? std::uint8_t{0} : layout->data_columns(),
            .epoch = epoch,
            .data_offset = part_data_offset + journal,
            .data_length = data_length,
            .journal_offset = journal == 0 ? 0 : part_data_offset,
            .journal_length = journal,
            .volume = volume};
}

Result<Layout> layout_of(const wire::ArrayVolume& volume) {
    return Layout::make(Level{volume.level}, volume.boxes, volume.chunk_bytes);
}

Health health_of(const wire::ArrayVolume& volume) {
    Health health;
    for (std::uint8_t place = 0; place < volume.boxes; ++place) {
        const auto& member = volume.members[place];
        if (member.state == wire::ArrayMemberState::current) continue;
        const bool rebuilding = member.state == wire::ArrayMemberState::rebuilding;
        health.lose({.box = BoxIndex{place},
                     .rebuilt_stripes = rebuilding ? member.rebuilt_stripes : 0,
                     .ahead = 0,
                     .takes_orders = rebuilding,
                     .lacks = nullptr});
    }
    return health;
}

Result<Assembled> assemble(std::span<const wire::ArraySuperblock> superblocks) {
    if (superblocks.empty()) return Error{Code::not_found};
    const auto& newest = *std::ranges::max_element(
        superblocks, {}, [](const auto& s) { return s.volume.generation; });
    WEFT_TRY(auto layout, layout_of(newest.volume));
    Assembled assembled{.volume = newest.volume, .epoch = {}, .present = 0, .unheard = 0};
    Mask heard = 0;
    for (const auto& superblock : superblocks) {
        if (superblock.cluster != newest.cluster ||
            superblock.volume.volume != newest.volume.volume)
            return Error{Code::malformed};
        assembled.epoch = std::max(assembled.epoch, superblock.epoch);
        const auto& place = superblock.place;
        if (place < newest.volume.boxes && newest.volume.members[place].box == superblock.box)
            heard |= only(place);
        if (superblock.volume.generation != newest.volume.generation) continue;
        if (superblock.volume != newest.volume || !is_place_of(superblock))
            return Error{Code::malformed};
        const bool current =
            newest.volume.members[superblock.place].state == wire::ArrayMemberState::current;
        if (current) assembled.present |= only(superblock.place);
    }
    if (std::popcount(assembled.present) + layout.spare_columns() < layout.boxes())
        return Error{.code = Code::io_failed,
                     .where = static_cast<std::uint32_t>(std::popcount(assembled.present))};
    // As many as the volume can live on may have lived on, in a generation nobody here knows of.
    assembled.unheard = (only(layout.boxes()) - 1) & ~heard;
    if (std::popcount(assembled.unheard) + layout.spare_columns() < layout.boxes())
        assembled.unheard = 0;
    return assembled;
}

void give_up_unheard(Assembled& assembled) {
    constexpr std::uint64_t beyond_all_they_counted = 1u << 20;
    auto& volume = assembled.volume;
    volume.generation =
        wire::Generation{static_cast<std::uint64_t>(volume.generation) + beyond_all_they_counted};
    for (std::uint8_t place = 0; place < volume.boxes; ++place)
        if (contains(assembled.unheard, place))
            volume.members[place].state = wire::ArrayMemberState::absent;
    assembled.unheard = 0;
}

}  // namespace weft::raid
