// SPDX-License-Identifier: Apache-2.0
// A target as the command line describes it, for `weft export iscsi` and `weft target add`; or one
// unit of it, for `weft unit add`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace weft::cli {

struct IscsiTargetWishes {
    std::string name, alias, chap, memory_limit;
    std::vector<std::string> memory, files, initiators;
    std::vector<std::uint32_t> units;
    std::uint32_t block_size = 512, physical_block = 0, erasure_time = 0;
    bool read_only = false, direct = false, thick = false, removable = false;
};

/// Its disks: what they are and how they are offered.
void declare_units(CLI::App& options, IscsiTargetWishes& wishes);
/// Everything but the name.
void declare_target(CLI::App& options, IscsiTargetWishes& wishes);
/// As iscsi_targets.hpp has it. Throws a Misuse.
nlohmann::json description_of(const IscsiTargetWishes& wishes);

}  // namespace weft::cli
