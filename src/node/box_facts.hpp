// SPDX-License-Identifier: Apache-2.0
// What a box knows of itself, beyond what its parts' superblocks say: kept in a small file of its
// own, replaced as a whole. A part is named there before its disk is made and until it is removed,
// so that no disk is ever left over that nobody knows of.
#pragma once

#include <string>
#include <vector>

#include "wire/array_box.hpp"

namespace weft::node {

/// Parts a box may have: what describes them must fit one answer.
inline constexpr std::size_t box_parts_max = 64;

struct BoxFacts {
    wire::BoxIdentity box{};
    wire::ClusterIdentity cluster{};  ///< all zero: nobody's yet
    wire::Epoch epoch{};
    std::string name;
    std::vector<wire::ArrayBoxPart> parts;

    bool is_blank() const { return cluster == wire::ClusterIdentity{}; }
    wire::ArrayBoxPart* find(const wire::VolumeIdentity& volume);
    std::uint64_t taken() const;  ///< by its parts together

    bool operator==(const BoxFacts&) const = default;
};

/// Of its disk, in the box's folder.
std::string file_name_of(const wire::ArrayBoxPart& part);

std::vector<std::byte> encode_box_facts(const BoxFacts& facts);
/// `truncated`, or `malformed` for a wrong key or checksum, or two parts of one volume.
Result<BoxFacts> parse_box_facts(ConstBuffer octets);

}  // namespace weft::node
