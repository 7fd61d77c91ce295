// SPDX-License-Identifier: Apache-2.0
// What a controller remembers, as records of its store: names and bodies, and back. A record that
// cannot be read stops the controller: what it does not know it might contradict. Events do not.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "raid/metadata_store.hpp"
#include "raid/volume_records.hpp"
#include "wire/array_superblock.hpp"

namespace weft::node {

std::string box_record_name(const wire::BoxIdentity& box);
std::string spare_record_name(const wire::BoxIdentity& box);
inline constexpr const char* cluster_record_name = "cluster";

struct ControllerRecords {
    std::optional<wire::ArrayClusterRecord> cluster;  ///< none: this store is new
    std::map<wire::BoxIdentity, wire::ArrayBoxRecord> boxes;
    std::map<wire::VolumeIdentity, wire::ArrayVolume> volumes;
    std::set<wire::BoxIdentity> spares;
    std::map<wire::VolumeIdentity, raid::VolumeRecords> of_volumes;
    std::vector<wire::ArrayEventRecord> events;
};

using NamedRecords = std::span<const std::pair<std::string, std::vector<std::byte>>>;
/// `malformed`: some record cannot be read, or nobody knows what it is; `where` is its number.
Result<ControllerRecords> read_controller_records(NamedRecords records);

}  // namespace weft::node
