// SPDX-License-Identifier: Apache-2.0
// Maps of stripes as records of the controller's store, and back.
#pragma once

#include <string>
#include <utility>

#include "raid/limits.hpp"
#include "raid/records.hpp"
#include "raid/region_map.hpp"
#include "wire/array_dirty.hpp"

namespace weft::raid {

struct DirtyRecord {
    using Boots = std::array<std::uint64_t, 18>;  ///< by place

    wire::VolumeIdentity volume{};
    std::uint8_t place = 0;  ///< or wire::intent_place
    RegionMap stripes{0, limits::lasting_regions};
    Boots boots{};

    bool operator==(const DirtyRecord&) const = default;
};

std::string dirty_record_name(const wire::VolumeIdentity& volume, std::uint8_t place);
std::vector<std::byte> encode_dirty_record(const DirtyRecord& record);
/// `truncated`; `malformed` for a wrong checksum, another kind, or words that are no such map.
Result<DirtyRecord> parse_dirty_record(ConstBuffer octets);

}  // namespace weft::raid
