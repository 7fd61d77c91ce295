// SPDX-License-Identifier: Apache-2.0
// Superblocks as values: written, read back with every doubt, and put together into a volume.
#pragma once

#include <span>
#include <vector>

#include "raid/health.hpp"
#include "wire/array_superblock.hpp"

namespace weft::raid {

using SuperblockImage = std::array<std::byte, wire::superblock_size>;

SuperblockImage encode_superblock(const wire::ArraySuperblock& superblock);

/// `truncated`, `malformed`: wrong checksum, `unsupported`: whole, but not what a box would write.
Result<wire::ArraySuperblock> parse_superblock(ConstBuffer image);

/// The newer of the two that is whole; `not_found`: neither; `unsupported`: one is not understood.
Result<wire::ArraySuperblock> newest_superblock(ConstBuffer first, ConstBuffer second);
/// Which copy, 0 or 1, the next write goes to: not the one that is the newest now.
unsigned copy_to_write(ConstBuffer first, ConstBuffer second);

/// Where the data of a new part begins: far enough in for more than two superblocks.
inline constexpr std::uint64_t part_data_offset = 1u << 20;
/// Of a part with so much data: an eighth of it, within bounds.
std::uint64_t part_journal_length(std::uint64_t data_length);
/// The most data that fits into a part of so many octets.
std::uint64_t part_data_room(std::uint64_t octets, wire::ArrayConsistency consistency,
                             const Layout& layout);
/// Octets of its disk, with all that is between and around the data.
std::uint64_t part_length(const wire::ArraySuperblock& superblock);
constexpr bool has_journal(const wire::ArraySuperblock& superblock) {
    return superblock.journal_length != 0;
}

/// What a new part of a volume begins with. `data_length` may be more than the volume uses yet.
wire::ArraySuperblock part_superblock(const wire::ClusterIdentity& cluster, wire::Epoch epoch,
                                      const wire::ArrayVolume& volume, std::uint8_t place,
                                      std::uint64_t data_length);

/// The layout a superblock or a record speaks of, or why it cannot be one.
Result<Layout> layout_of(const wire::ArrayVolume& volume);
Health health_of(const wire::ArrayVolume& volume);

/// What boxes say of one volume when nobody else knows it any more.
struct Assembled {
    wire::ArrayVolume volume;  ///< as the newest say
    wire::Epoch epoch{};       ///< the highest any has obeyed: a controller must go beyond
    Mask present = 0;          ///< places whose box is here, current, and of that generation
    Mask unheard = 0;  ///< places whose boxes are not here, and may have gone on without these
};

/// Refuses rather than guesses: `not_found` without superblocks, `malformed` if they are of several
/// volumes or clusters, or two of one generation differ, `io_failed` if too few boxes of the newest
/// generation are here.
Result<Assembled> assemble(std::span<const wire::ArraySuperblock> superblocks);
/// Whatever the unheard know is given up: they are absent, and nothing they kept counts as newer.
void give_up_unheard(Assembled& assembled);

/// A name in a field of fixed size, without the zeroes behind it.
template <std::size_t size>
std::string text_of_field(const Octets<size>& field) {
    std::string text;
    for (auto octet : field) {
        if (octet == 0) break;
        text += static_cast<char>(octet);
    }
    return text;
}
/// False if it does not fit.
template <std::size_t size>
bool set_field(Octets<size>& field, std::string_view text) {
    if (text.size() >= size) return false;
    field = {};
    for (std::size_t i = 0; i < text.size(); ++i) field[i] = static_cast<std::uint8_t>(text[i]);
    return true;
}

}  // namespace weft::raid
