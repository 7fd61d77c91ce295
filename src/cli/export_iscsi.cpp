// SPDX-License-Identifier: Apache-2.0
// `weft export iscsi`: serve disks to iSCSI initiators until told to stop.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error_text.hpp"
#include "cli/chap_file.hpp"
#include "cli/command.hpp"
#include "cli/control.hpp"
#include "cli/exporting.hpp"
#include "cli/iscsi_options.hpp"
#include "cli/iscsi_targets.hpp"
#include "cli/text.hpp"
#include "cli/toml.hpp"
#include "linux/descriptor_limit.hpp"
#include "node/iscsi_server.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

struct Wishes {
    IscsiTargetWishes target;
    std::vector<std::string> tcp;
    std::string targets, control, state, discovery_chap, buffers = "1G", file_engine = "auto";
    bool as_json = false;
    std::size_t connections = 1024;
};

void declare(CLI::App& options, Wishes& wishes) {
    options.add_option("--target", wishes.target.name, "the target's iSCSI name, as iqn.…");
    declare_target(options, wishes.target);
    options.add_option("--targets", wishes.targets, "a TOML file of targets, instead or besides");
    options.add_option("--tcp", wishes.tcp, "listen on HOST:PORT (repeatable)")
        ->allow_extra_args(false);
    options.add_option("--discovery-chap", wishes.discovery_chap,
                       "as --chap, for those who ask which targets there are");
    options.add_option("--state", wishes.state,
                       "a folder in which persistent reservations outlive this program");
    options.add_option("--control", wishes.control,
                       "a Unix socket for weft target, weft unit and weft session");
    options.add_option("--file-engine", wishes.file_engine, "how files are reached")
        ->check(CLI::IsMember({"auto", "ring", "threads"}));
    options.add_option("--connections", wishes.connections, "connections at a time")
        ->check(CLI::Range(1, 65536));
    options.add_option("--buffers", wishes.buffers,
                       "memory for all initiators' payload together, where the disk lends none");
    options.add_flag("--json", wishes.as_json, "say what happens as JSON, a line each");
}

/// A setting of the whole program that the file has, unless the command line has it too.
void take_setting(const json& whole, const char* key, std::string& setting) {
    auto said = whole.find(key);
    if (said == whole.end() || !setting.empty()) return;
    if (!said->is_string()) throw Refusal{fmt::format("'{}' has a value of the wrong kind", key)};
    setting = *said;
}

/// Everything that is to be served, from the options and from the file.
json descriptions_of(Wishes& wishes) {
    auto found = json::array();
    if (wishes.targets.empty() || !wishes.target.name.empty())
        found.push_back(description_of(wishes.target));
    if (wishes.tcp.empty()) throw Misuse{"nowhere to listen; give --tcp HOST:PORT"};
    if (wishes.targets.empty()) return found;
    std::ifstream file(wishes.targets);
    if (!file) throw Refusal{fmt::format("{}: it cannot be read", show_foreign(wishes.targets))};
    std::stringstream text;
    text << file.rdbuf();
    auto whole = parse_toml(text.str(), wishes.targets);
    if (!whole.contains("target") || !whole["target"].is_array())
        throw Refusal{
            fmt::format("{}: there is no [[target]] in it", show_foreign(wishes.targets))};
    for (const auto& [key, value] : whole.items())
        if (key != "target" && key != "state" && key != "discovery_chap")
            throw Refusal{fmt::format("{}: '{}' is nothing the file has a meaning for",
                                      show_foreign(wishes.targets), show_foreign(key))};
    take_setting(whole, "state", wishes.state);
    take_setting(whole, "discovery_chap", wishes.discovery_chap);
    for (const auto& each : whole["target"]) found.push_back(each);
    return found;
}

std::size_t buffer_bytes(const Wishes& wishes) {
    auto size = parse_size(wishes.buffers);
    if (!size || *size < 2 * scsi::transfer_bytes_max)
        throw Refusal{fmt::format("'{}' is not a size of {} or more", wishes.buffers,
                                  show_size(2 * scsi::transfer_bytes_max))};
    return *size;
}

std::vector<Address> listen(node::IscsiServer& server, const Wishes& wishes) {
    std::vector<Address> listening;
    for (const auto& text : wishes.tcp) {
        auto address = tcp_address_of(text);
        auto real = server.listen(address);
        if (!real)
            throw Refusal{fmt::format("cannot listen on {}: {}", show_address(address),
                                      to_text(real.error()))};
        listening.push_back(*real);
    }
    return listening;
}

void announce(const Wishes& wishes, json targets, const std::vector<Address>& listening) {
    for (auto& target : targets) {
        auto name = target["name"].get<std::string>();
        if (!wishes.as_json) fmt::print("{}\n", name);
        for (auto& unit : target["units"]) {
            auto number = unit["lun"].get<std::uint32_t>();
            const bool read_only = unit["read_only"].get<bool>();
            if (!wishes.as_json)
                fmt::print(
                    "  LUN {}: {} {}, {}\n", number, show_size(unit["size"].get<std::uint64_t>()),
                    unit["backing"].get<std::string>(), read_only ? "read-only" : "read and write");
            unit["uris"] = json::array();
            for (const auto& address : listening) {
                auto uri = fmt::format("iscsi://{}/{}/{}", show_address(address), name, number);
                unit["uris"].push_back(uri);
                if (wishes.as_json) continue;
                fmt::print("    iscsi-inq '{0}'\n    qemu-io {1}-f raw '{0}'\n", uri,
                           read_only ? "-r " : "");
            }
        }
    }
    if (wishes.as_json)
        fmt::print("{}\n", show_json({{"event", "listening"}, {"targets", targets}}));
    else
        fmt::print("Paste one of these in another terminal. Ctrl-C here stops the export.\n");
    std::fflush(stdout);
}

/// What `weft target`, `weft unit` and `weft session` ask for.
json answer(IscsiTargets& targets, const json& request) {
    auto verb = request.value("do", "");
    if (verb == "list targets") return targets.targets();
    if (verb == "list sessions") return targets.sessions();
    if (verb == "add target" && request.contains("target")) {
        targets.add(request["target"]);
        return json::object();
    }
    if (verb == "remove target") {
        targets.remove(request.value("name", ""));
        return json::object();
    }
    auto name = request.value("name", "");
    if (verb == "add unit" && request.contains("unit"))
        return {{"lun", targets.add_unit(name, request["unit"])}};
    if (verb == "remove unit" && request.contains("lun") && request["lun"].is_number_unsigned()) {
        targets.remove_unit(name, request["lun"].get<std::uint32_t>());
        return json::object();
    }
    throw Refusal{"this weft does not know how to do that"};
}

void tell(const Wishes& wishes, const node::IscsiServer::Event& event) {
    using Kind = node::IscsiServer::Event::Kind;
    constexpr const char* words[] = {"connected", "logged in", "left", "refused"};
    auto kind = words[static_cast<std::size_t>(event.kind)];
    if (wishes.as_json) {
        auto line = json{{"event", kind}, {"peer", event.peer}};
        if (!event.initiator.empty()) line["initiator"] = event.initiator;
        if (!event.target.empty()) line["target"] = event.target;
        if (event.status != wire::LoginStatus::success)
            line["login_status"] = fmt::format("{:04x}", static_cast<unsigned>(event.status));
        if (event.fault) line["fault"] = to_text(event.fault->code);
        return print_news(show_json(line));
    }
    if (event.kind == Kind::refused)
        print_news(fmt::format("{}: turned away, there are too many connections",
                               show_foreign(event.peer)));
    else if (event.status == wire::LoginStatus::authentication_failure)
        print_news(fmt::format("{}: {} could not prove who it is", show_foreign(event.peer),
                               show_foreign(event.initiator)));
    else if (event.kind == Kind::left && event.fault && event.fault->code != Code::disconnected)
        print_news(
            fmt::format("{}: dropped, {}", show_foreign(event.peer), to_text(event.fault->code)));
}

void sum_up(const Wishes& wishes, node::IscsiServer& server) {
    const auto& sums = server.statistics();
    if (wishes.as_json)
        fmt::print("{}\n", show_json({{"event", "stopped"},
                                      {"connections", server.accepted_count()},
                                      {"logins", sums.logins},
                                      {"logins_refused", sums.logins_refused},
                                      {"commands", sums.commands},
                                      {"failed", sums.failed},
                                      {"rejects", sums.rejects},
                                      {"bytes_read", sums.bytes_read},
                                      {"bytes_written", sums.bytes_written}}));
    else
        fmt::print("Stopped after {} logins, {} commands ({} failed): {} read, {} written.\n",
                   sums.logins, sums.commands, sums.failed, show_size(sums.bytes_read),
                   show_size(sums.bytes_written));
}

node::IscsiServer::Options server_options(const Wishes& wishes) {
    node::IscsiServer::Options options;
    options.connections_max = wishes.connections;
    options.buffer_bytes = buffer_bytes(wishes);
    if (!wishes.discovery_chap.empty()) read_chap(wishes.discovery_chap, options.discovery);
    options.state_folder = wishes.state;
    std::error_code failed;
    if (!wishes.state.empty()) std::filesystem::create_directories(wishes.state, failed);
    if (failed)
        throw Refusal{
            fmt::format("{}: it cannot be made, {}", show_foreign(wishes.state), failed.message())};
    return options;
}

void serve(Wishes& wishes) {
    auto descriptions = descriptions_of(wishes);
    LinuxWorldOptions options;
    options.files = file_engine_of(wishes.file_engine);
    linux::raise_descriptor_limit();
    auto world = make_world(options);
    std::optional<IscsiTargets> targets;  // its disks must live until the server is gone
    node::IscsiServer server(*world, server_options(wishes));
    targets.emplace(*world, server);
    for (const auto& description : descriptions) targets->add(description);
    auto listening = listen(server, wishes);
    std::optional<ControlServer> control;
    if (!wishes.control.empty())
        control.emplace(*world, wishes.control,
                        [&](const json& request) { return answer(*targets, request); });
    server.on_event([&](const auto& event) { tell(wishes, event); });
    serve_until_stopped(*world, server, [&] { announce(wishes, targets->targets(), listening); });
    sum_up(wishes, server);
}

}  // namespace

int export_iscsi(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    declare(options, wishes);
    if (auto leave = parse(self, options, arguments)) return *leave;
    serve(wishes);
    return done;
}

}  // namespace weft::cli
