// SPDX-License-Identifier: Apache-2.0
#include "cli/iscsi_targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/chap_file.hpp"
#include "cli/command.hpp"
#include "cli/disk_access.hpp"
#include "cli/exporting.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

/// What a description says under a key, or what it means by saying nothing.
template <class T>
T said(const json& description, const char* key, T otherwise) {
    auto found = description.find(key);
    if (found == description.end()) return otherwise;
    const bool fits = std::is_same_v<T, bool>          ? found->is_boolean()
                      : std::is_same_v<T, std::string> ? found->is_string()
                      : std::is_integral_v<T>          ? found->is_number_unsigned()
                                                       : found->is_array();
    if (!fits) throw Refusal{fmt::format("'{}' has a value of the wrong kind", key)};
    if constexpr (std::is_same_v<T, std::uint32_t>)
        if (found->get<std::uint64_t>() > 0xffffffff)
            throw Refusal{fmt::format("'{}' is too large a number", key)};
    return found->get<T>();
}

std::vector<std::string> said_names(const json& description, const char* key) {
    std::vector<std::string> names;
    for (const auto& each : said<std::vector<json>>(description, key, {})) {
        if (!each.is_string())
            throw Refusal{fmt::format("'{}' has a value of the wrong kind", key)};
        names.push_back(each);
    }
    return names;
}

void expect_known_keys(const json& description, std::initializer_list<std::string_view> known) {
    if (!description.is_object()) throw Refusal{"a table was expected"};
    for (const auto& [key, value] : description.items())
        if (std::find(known.begin(), known.end(), key) == known.end())
            throw Refusal{fmt::format("'{}' is nothing a target or unit has", show_foreign(key))};
}

Refusal why_not_offered(const std::string& name, Error error) {
    switch (error.code) {
        case Code::exhausted:
            return Refusal{fmt::format("{} targets are the limit", iscsi::targets_max)};
        case Code::io_failed:
            return Refusal{fmt::format(
                "'{}': its reservations in the folder of --state are damaged or cannot be read; "
                "without that file, they count as never made",
                show_foreign(name))};
        default:
            return Refusal{fmt::format(
                "'{}' is not an iSCSI name like iqn.2026-11.org.example:disk", show_foreign(name))};
    }
}

std::string why_not(Error error, std::uint32_t number, const scsi::UnitOptions& options) {
    if (error.code == Code::exhausted)
        return fmt::format("{} units are the limit", scsi::units_max);
    return fmt::format(
        "LUN {}: the number is taken or too large, or blocks of {} octets do not fit", number,
        options.block_bytes);
}

}  // namespace

IscsiTargets::Unit IscsiTargets::open_unit(const json& description, std::uint32_t number) {
    expect_known_keys(description,
                      {"memory", "file", "number", "read_only", "removable", "thick", "block_size",
                       "physical_block", "erasure_time", "direct", "memory_limit"});
    auto memory = said<std::string>(description, "memory", "");
    auto file = said<std::string>(description, "file", "");
    if (memory.empty() == file.empty()) throw Refusal{"a unit needs either 'memory' or 'file'"};
    Unit unit{.number = said<std::uint32_t>(description, "number", number)};
    unit.options.read_only = said(description, "read_only", false);
    unit.options.removable = said(description, "removable", false);
    unit.options.thin = !said(description, "thick", false);
    unit.options.block_bytes = said<std::uint32_t>(description, "block_size", 512);
    auto physical = said<std::uint32_t>(description, "physical_block", 0);
    if (physical != 0) unit.options.physical_block_bytes = physical;
    unit.options.erasure_time =
        std::chrono::seconds(said<std::uint32_t>(description, "erasure_time", 0));
    if (!memory.empty()) {
        unit.device = make_memory_disk(memory, said<std::string>(description, "memory_limit", ""));
        unit.what = "in memory";
        return unit;
    }
    auto disk =
        world_.open_disk({file, unit.options.read_only, said(description, "direct", false)});
    if (!disk) throw cannot_open(file, disk.error());
    unit.device = std::move(*disk);
    unit.what = file;
    return unit;
}

void IscsiTargets::add(const json& description) {
    expect_known_keys(description, {"name", "alias", "initiators", "chap", "lun"});
    Target target{.name = said<std::string>(description, "name", "")};
    iscsi::TargetRules rules{.alias = said<std::string>(description, "alias", ""),
                             .initiators = said_names(description, "initiators")};
    auto chap = said<std::string>(description, "chap", "");
    if (!chap.empty()) read_chap(chap, rules);
    for (const auto& unit : said<std::vector<json>>(description, "lun", {}))
        target.units.push_back(open_unit(unit, static_cast<std::uint32_t>(target.units.size())));
    if (target.units.empty())
        throw Refusal{fmt::format("'{}' has no disk", show_foreign(target.name))};
    for (const auto& other : targets_)
        if (other.name == target.name)
            throw Refusal{fmt::format("there is a target '{}' already", target.name)};
    if (auto added = server_.add_target(target.name, std::move(rules)); !added)
        throw why_not_offered(target.name, added.error());
    auto& kept = targets_.emplace_back(std::move(target));
    for (auto& unit : kept.units) {
        auto added = server_.add_unit(kept.name, unit.number, *unit.device, unit.options);
        if (added) continue;
        auto sentence = why_not(added.error(), unit.number, unit.options);
        remove(kept.name);
        throw Refusal{sentence};
    }
}

void IscsiTargets::remove(const std::string& name) {
    for (auto& target : targets_) {
        if (target.leaving || target.name != name) continue;
        target.leaving = true;
        auto removed = server_.remove_target(name, [this, &target] { forget(target); });
        if (removed) return;
    }
    throw Refusal{fmt::format("there is no target '{}'", show_foreign(name))};
}

IscsiTargets::Target& IscsiTargets::find(const std::string& name) {
    for (auto& target : targets_)
        if (!target.leaving && target.name == name) return target;
    throw Refusal{fmt::format("there is no target '{}'", show_foreign(name))};
}

std::uint32_t IscsiTargets::add_unit(const std::string& name, const json& description) {
    auto& target = find(name);
    auto is_taken = [&](std::uint32_t number) {
        return std::ranges::any_of(target.units,
                                   [&](const Unit& each) { return each.number == number; });
    };
    std::uint32_t free_number = 0;
    while (is_taken(free_number)) ++free_number;
    auto unit = open_unit(description, free_number);
    const auto number = unit.number;
    auto added = server_.add_unit(name, number, *unit.device, unit.options);
    if (!added) throw Refusal{why_not(added.error(), number, unit.options)};
    target.units.push_back(std::move(unit));
    return number;
}

void IscsiTargets::remove_unit(const std::string& name, std::uint32_t number) {
    auto& units = find(name).units;
    auto unit = std::ranges::find(units, number, &Unit::number);
    if (unit == units.end())
        throw Refusal{fmt::format("'{}' has no LUN {}", show_foreign(name), number)};
    auto device = retired_.insert(retired_.end(), std::move(unit->device));
    units.erase(unit);
    // The last of its commands may end inside the disk, which cannot be closed from there.
    (void)server_.remove_unit(name, number, [this, device] {
        world_.defer([this, device, alive = alive_] {
            if (*alive) retired_.erase(device);
        });
    });
}

void IscsiTargets::forget(Target& target) {
    targets_.remove_if([&](auto& each) { return &each == &target; });
}

json IscsiTargets::targets() const {
    auto listed = json::array();
    for (const auto& target : targets_) {
        if (target.leaving) continue;
        auto units = json::array();
        for (const auto& unit : target.units)
            units.push_back({{"lun", unit.number},
                             {"size", unit.device->traits().size},
                             {"backing", unit.what},
                             {"read_only", unit.options.read_only}});
        listed.push_back({{"name", target.name}, {"units", units}});
    }
    return listed;
}

json IscsiTargets::sessions() const {
    auto listed = json::array();
    for (const auto& session : server_.node().sessions()) {
        auto connections = json::array();
        for (const auto* connection : session->connections())
            connections.push_back({{"id", connection->id()}, {"peer", connection->origin().peer}});
        const auto& name = session->name();
        listed.push_back({{"initiator", name.initiator_name},
                          {"target", name.target_name},
                          {"type", name.target_name.empty() ? "discovery" : "normal"},
                          {"handle", session->handle()},
                          {"tasks", session->tasks()},
                          {"connections", connections}});
    }
    return listed;
}

}  // namespace weft::cli
