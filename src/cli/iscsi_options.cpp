// SPDX-License-Identifier: Apache-2.0
#include "cli/iscsi_options.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace weft::cli {

using nlohmann::json;

namespace {

void repeatable(CLI::App& options, const char* name, std::vector<std::string>& into,
                const char* what) {
    options.add_option(name, into, what)->allow_extra_args(false);
}

}  // namespace

void declare_units(CLI::App& options, IscsiTargetWishes& wishes) {
    repeatable(options, "--memory", wishes.memory, "a disk of this size in memory (repeatable)");
    repeatable(options, "--file", wishes.files, "a file or block device as the disk (repeatable)");
    options.add_option("--lun", wishes.units, "the units' numbers; one per disk, files first")
        ->allow_extra_args(false);
    options.add_flag("--read-only", wishes.read_only, "refuse every change");
    options.add_flag("--thick", wishes.thick, "do not offer unmapping");
    options.add_flag("--removable", wishes.removable, "a medium that can be ejected");
    options.add_option("--block-size", wishes.block_size, "octets of a logical block")
        ->check(CLI::IsMember({512, 4096}));
    options.add_option("--physical-block", wishes.physical_block,
                       "octets of a physical block, where the medium has larger ones");
    options.add_option("--erasure-time", wishes.erasure_time,
                       "seconds that SANITIZE takes at the least");
    options.add_flag("--direct", wishes.direct, "file past the page cache (O_DIRECT)");
    options.add_option("--memory-limit", wishes.memory_limit,
                       "how much of a memory disk may hold data at a time");
}

void declare_target(CLI::App& options, IscsiTargetWishes& wishes) {
    declare_units(options, wishes);
    repeatable(options, "--initiator", wishes.initiators,
               "a name that may log in; none: all (repeatable)");
    options.add_option("--chap", wishes.chap,
                       "a file of lines 'user NAME SECRET', and 'target NAME SECRET' for us");
    options.add_option("--alias", wishes.alias, "a sentence initiators can show");
}

json description_of(const IscsiTargetWishes& wishes) {
    if (wishes.name.empty()) throw Misuse{"the target needs a name; give --target iqn.…"};
    const auto count = wishes.files.size() + wishes.memory.size();
    if (count == 0) throw Misuse{"nothing to export; give --memory SIZE or --file PATH"};
    if (!wishes.units.empty() && wishes.units.size() != count)
        throw Misuse{fmt::format("give one --lun per disk, or none; disks: {}, numbers: {}", count,
                                 wishes.units.size())};
    auto units = json::array();
    auto add = [&](const char* kind, const std::string& what) {
        auto unit = json{{kind, what},
                         {"read_only", wishes.read_only},
                         {"removable", wishes.removable},
                         {"thick", wishes.thick},
                         {"direct", wishes.direct},
                         {"block_size", wishes.block_size}};
        if (!wishes.memory_limit.empty()) unit["memory_limit"] = wishes.memory_limit;
        if (wishes.physical_block != 0) unit["physical_block"] = wishes.physical_block;
        if (wishes.erasure_time != 0) unit["erasure_time"] = wishes.erasure_time;
        if (!wishes.units.empty()) unit["number"] = wishes.units[units.size()];
        units.push_back(unit);
    };
    for (const auto& file : wishes.files) add("file", file);
    for (const auto& size : wishes.memory) add("memory", size);
    auto description = json{{"name", wishes.name}, {"lun", units}};
    if (!wishes.alias.empty()) description["alias"] = wishes.alias;
    if (!wishes.chap.empty()) description["chap"] = wishes.chap;
    if (!wishes.initiators.empty()) description["initiators"] = wishes.initiators;
    return description;
}

}  // namespace weft::cli
