// SPDX-License-Identifier: Apache-2.0
// `weft target …`, `weft unit …`, `weft session …`: what a running export serves, and whom.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/control.hpp"
#include "cli/iscsi_options.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

/// The other weft may have been started elsewhere.
std::string absolute(const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal();
}

struct Where {
    std::string control;
    bool as_json = false;
};

void declare(CLI::App& options, Where& where) {
    options.add_option("--control", where.control, "the socket that weft export iscsi was given")
        ->required();
    options.add_flag("--json", where.as_json, "as a JSON document");
}

void print_targets(const json& targets) {
    for (const auto& target : targets) {
        fmt::print("{}\n", target.at("name").get<std::string>());
        for (const auto& unit : target.at("units"))
            fmt::print("  LUN {}: {} {}, {}\n", unit.at("lun").get<std::uint32_t>(),
                       show_size(unit.at("size").get<std::uint64_t>()),
                       show_foreign(unit.at("backing").get<std::string>()),
                       unit.at("read_only").get<bool>() ? "read-only" : "read and write");
    }
}

void print_sessions(const json& sessions) {
    for (const auto& session : sessions) {
        auto target = session.at("target").get<std::string>();
        fmt::print("{} -> {}, {} tasks\n", show_foreign(session.at("initiator").get<std::string>()),
                   target.empty() ? "discovery" : show_foreign(target),
                   session.at("tasks").get<std::uint64_t>());
        for (const auto& connection : session.at("connections"))
            fmt::print("  connection {} from {}\n", connection.at("id").get<unsigned>(),
                       show_foreign(connection.at("peer").get<std::string>()));
    }
}

}  // namespace

int target_list(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Where where;
    declare(options, where);
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto targets = ask_control(where.control, {{"do", "list targets"}});
    if (where.as_json)
        fmt::print("{}\n", show_json(targets));
    else
        print_targets(targets);
    return done;
}

int target_add(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Where where;
    IscsiTargetWishes wishes;
    options.add_option("NAME", wishes.name, "the target's iSCSI name, as iqn.…")->required();
    declare_target(options, wishes);
    declare(options, where);
    if (auto leave = parse(self, options, arguments)) return *leave;
    for (auto& file : wishes.files) file = absolute(file);
    if (!wishes.chap.empty()) wishes.chap = absolute(wishes.chap);
    ask_control(where.control, {{"do", "add target"}, {"target", description_of(wishes)}});
    fmt::print("{}\n", where.as_json ? show_json({{"added", wishes.name}})
                                     : fmt::format("{} is served now.", wishes.name));
    return done;
}

int target_remove(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Where where;
    std::string name;
    options.add_option("NAME", name, "the target's iSCSI name")->required();
    declare(options, where);
    if (auto leave = parse(self, options, arguments)) return *leave;
    ask_control(where.control, {{"do", "remove target"}, {"name", name}});
    fmt::print("{}\n", where.as_json ? show_json({{"removed", name}})
                                     : fmt::format("{} is not served any more.", name));
    return done;
}

int unit_add(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Where where;
    IscsiTargetWishes wishes;
    options.add_option("TARGET", wishes.name, "the target's iSCSI name, as iqn.…")->required();
    declare_units(options, wishes);
    declare(options, where);
    if (auto leave = parse(self, options, arguments)) return *leave;
    for (auto& file : wishes.files) file = absolute(file);
    const auto units = description_of(wishes).at("lun");
    if (units.size() != 1) throw Misuse{"give one disk at a time"};
    auto answer = ask_control(where.control,
                              {{"do", "add unit"}, {"name", wishes.name}, {"unit", units.front()}});
    auto number = answer.at("lun").get<std::uint32_t>();
    fmt::print("{}\n", where.as_json ? show_json({{"added", wishes.name}, {"lun", number}})
                                     : fmt::format("{} has LUN {} now.", wishes.name, number));
    return done;
}

int unit_remove(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Where where;
    std::string name;
    std::uint32_t number = 0;
    options.add_option("TARGET", name, "the target's iSCSI name")->required();
    options.add_option("--lun", number, "the unit's number")->required();
    declare(options, where);
    if (auto leave = parse(self, options, arguments)) return *leave;
    ask_control(where.control, {{"do", "remove unit"}, {"name", name}, {"lun", number}});
    fmt::print("{}\n", where.as_json ? show_json({{"removed", name}, {"lun", number}})
                                     : fmt::format("{} has no LUN {} any more.", name, number));
    return done;
}

int session_list(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Where where;
    declare(options, where);
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto sessions = ask_control(where.control, {{"do", "list sessions"}});
    if (where.as_json)
        fmt::print("{}\n", show_json(sessions));
    else
        print_sessions(sessions);
    return done;
}

}  // namespace weft::cli
