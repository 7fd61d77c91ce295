// SPDX-License-Identifier: Apache-2.0
#include "cli/controller_desk.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/exporting.hpp"
#include "cli/promises.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;
using node::ControllerNode;

struct Desk {
    World& world;
    ControllerNode& controller;
    const std::function<void()>& step_down;
    const json& request;
    const ManagementServer::Reply& reply;

    std::string text(const char* key) const { return request.at(key).get<std::string>(); }
    /// What is negative or broken would be taken for something large.
    std::uint64_t number(const char* key) const {
        const auto& said = request.at(key);
        if (!said.is_number_unsigned())
            throw Refusal{fmt::format("'{}' is a whole number, and not negative", key)};
        return said.get<std::uint64_t>();
    }
    std::uint64_t number(const char* key, std::uint64_t otherwise) const {
        return request.contains(key) ? number(key) : otherwise;
    }
    /// Refused, or an empty object.
    ControllerNode::Told told() const {
        return [reply = reply](const ControllerNode::Refusal& refusal) {
            reply(refusal ? json{{"refused", *refusal}} : json::object());
        };
    }
};

std::string text_of(Date date) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(date);
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

double seconds_of(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

json box_json(const node::BoxReport& box) {
    return {{"name", box.name},
            {"identity", to_digits(box.identity)},
            {"address", show_address(box.address)},
            {"up", box.up},
            {"trouble", box.trouble},
            {"spare", box.spare},
            {"size", box.size},
            {"free", box.free},
            {"volumes", box.volumes},
            {"unclaimed", box.unclaimed}};
}

/// The membership, and nothing else: one that has trouble is a member all the same. "failed" is one
/// that was removed and stays so until it is re-added or replaced.
const char* state_of(const raid::MemberStatus& member) {
    switch (member.state) {
        case wire::ArrayMemberState::current:
            return "current";
        case wire::ArrayMemberState::rebuilding:
            return "rebuilding";
        case wire::ArrayMemberState::absent:
            return member.failed ? "failed" : "absent";
        default:
            return "none";
    }
}

bool is_member(const raid::MemberStatus& member) {
    return member.state == wire::ArrayMemberState::current ||
           member.state == wire::ArrayMemberState::rebuilding;
}

const char* name_of(wire::ArrayTopology topology) {
    return topology == wire::ArrayTopology::binary_tree ? "tree" : "star";
}

json volume_json(const node::VolumeReport& report) {
    const auto& status = report.status;
    json members = json::array(), rebuilds = json::array();
    for (std::size_t i = 0; i < status.members.size(); ++i) {
        const auto& member = status.members[i];
        json unreached = json::array();
        for (std::size_t other = 0; other < report.box_names.size(); ++other)
            if (raid::contains(member.unreached, static_cast<unsigned>(other)))
                unreached.push_back(report.box_names[other]);
        members.push_back({{"place", member.place},
                           {"box", report.box_names[i]},
                           {"state", state_of(member)},
                           {"up", member.up},
                           {"failing", is_member(member) && (member.failed || member.needs_repair)},
                           {"slow", member.slow},
                           {"full", member.full},
                           {"unreached", unreached},
                           {"misses_host", member.misses_host}});
    }
    for (const auto& rebuild : status.rebuilds)
        rebuilds.push_back({{"place", rebuild.place},
                            {"paused", rebuild.paused},
                            {"done", rebuild.done},
                            {"to_do", rebuild.to_do},
                            {"bytes", rebuild.octets},
                            {"bytes_per_second_limit", rebuild.octets_per_second}});
    return {{"name", report.name},
            {"identity", to_digits(status.volume.volume)},
            {"state", raid::to_text(status.state)},
            {"size", status.size},
            {"level", status.volume.level},
            {"boxes", status.volume.boxes},
            {"chunk", status.volume.chunk_bytes},
            {"consistency",
             status.volume.consistency == wire::ArrayConsistency::journal ? "journal" : "none"},
            {"topology", name_of(status.volume.topology)},
            {"generation", static_cast<std::uint64_t>(status.volume.generation)},
            {"target", wire::volume_target_name(report.name)},
            {"hosts", report.hosts},
            {"requests_under_way", status.requests},
            {"counters",
             {{"requests", report.requests},
              {"orders", report.orders},
              {"payload_bytes", report.payload_octets},
              {"relayed_bytes", report.relayed_octets},
              {"hedged_reads", status.counters.hedged_reads}}},
            {"members", members},
            {"rebuilds", rebuilds},
            {"scrub",
             {{"running", status.scrub.running},
              {"repairs", status.scrub.repairs},
              {"done", status.scrub.done},
              {"to_do", status.scrub.to_do},
              {"mismatches", status.scrub.mismatches},
              {"repaired", status.scrub.repaired},
              {"unchecked", status.scrub.unchecked}}}};
}

const char* name_of(raid::HostOperation operation) {
    switch (operation) {
        case raid::HostOperation::read:
            return "read";
        case raid::HostOperation::write:
            return "write";
        default:
            return "flush";
    }
}

template <class List, class Show>
json list_of(const List& list, const Show& show) {
    json found = json::array();
    for (const auto& each : list) found.push_back(show(each));
    return found;
}

void list_volumes(const Desk& desk) {
    desk.reply(list_of(desk.controller.volumes(), volume_json));
}

void volume_status(const Desk& desk) {
    const auto name = desk.text("name");
    for (const auto& report : desk.controller.volumes())
        if (report.name == name) return desk.reply(volume_json(report));
    throw Refusal{fmt::format("there is no volume {}", show_foreign(name))};
}

raid::Level level_of(std::uint64_t number) {
    if (number == 1) return raid::Level::mirror;
    if (number == 5) return raid::Level::raid5;
    if (number == 6) return raid::Level::raid6;
    throw Refusal{fmt::format("there is no level {}: 1, 5 and 6 are known", number)};
}

wire::ArrayConsistency consistency_of(const std::string& word) {
    if (word == "none") return wire::ArrayConsistency::none;
    if (word == "journal") return wire::ArrayConsistency::journal;
    throw Refusal{
        fmt::format("there is no consistency {}: journal and none are known", show_foreign(word))};
}

wire::ArrayTopology topology_of(const std::string& word) {
    if (word == "star") return wire::ArrayTopology::star;
    if (word == "tree") return wire::ArrayTopology::binary_tree;
    throw Refusal{
        fmt::format("there is no topology {}: star and tree are known", show_foreign(word))};
}

void create_volume(const Desk& desk) {
    ControllerNode::VolumeWishes wishes;
    wishes.name = desk.text("name");
    wishes.level = level_of(desk.number("level"));
    wishes.boxes = desk.request.at("boxes").get<std::vector<std::string>>();
    const auto chunk = desk.number("chunk", wishes.chunk_bytes);
    if (chunk > raid::limits::chunk_bytes)
        throw Refusal{fmt::format("a chunk of {} is too long", show_size(chunk))};
    wishes.chunk_bytes = static_cast<std::uint32_t>(chunk);
    wishes.size = desk.number("size", 0);
    if (desk.request.contains("consistency"))
        wishes.consistency = consistency_of(desk.text("consistency"));
    if (desk.request.contains("topology")) wishes.topology = topology_of(desk.text("topology"));
    desk.controller.create_volume(wishes, desk.told());
}

void clean_box(const Desk& desk) {
    auto told = [reply = desk.reply](const ControllerNode::Refusal& refusal,
                                     const std::vector<node::RemovedPart>& removed) {
        auto gone = list_of(removed, [](const node::RemovedPart& part) {
            return json{{"volume", part.volume}, {"bytes", part.octets}};
        });
        if (!refusal) return reply({{"removed", std::move(gone)}});
        auto sentence = *refusal;
        for (const auto& part : removed) sentence += "; its part of " + part.volume + " is gone";
        reply({{"refused", sentence}});
    };
    desk.controller.clean_box(desk.text("name"), desk.request.value("force", false), told);
}

void list_hosts(const Desk& desk) {
    desk.reply(list_of(desk.controller.hosts(), [](const node::HostReport& host) {
        return json{{"name", host.name},
                    {"volume", host.volume},
                    {"session", static_cast<std::uint64_t>(host.session)},
                    {"address", show_address(host.address)},
                    {"requests", host.requests}};
    }));
}

void list_events(const Desk& desk) {
    const auto after = desk.number("after", 0);
    json found = json::array();
    for (const auto& event : desk.controller.events().events())
        if (event.number > after) found.push_back(event_json(event));
    desk.reply(found);
}

const char* name_of(raid::WaitsFor what) {
    constexpr std::array names{"turn", "room", "volume", "read", "prepare", "commit"};
    static_assert(names.size() == raid::waits_for_count);
    return names[static_cast<std::size_t>(what)];
}

/// Where the time of a request went: what it waited for, in seconds, and for whom.
json story_json(const Desk& desk, const node::SlowOperation& each) {
    auto story = each.story;
    if (each.under_way) story.turns_to(story.now, desk.world.now());
    json spent = json::object();
    for (std::size_t i = 0; i < raid::waits_for_count; ++i)
        if (story.spent[i] > Duration{})
            spent[name_of(static_cast<raid::WaitsFor>(i))] = seconds_of(story.spent[i]);
    json told{{"spent", spent},
              {"attempts", story.attempts},
              {"hedged", story.hedged},
              {"relayed", story.relayed}};
    if (each.under_way) told["waits_for"] = name_of(story.now);
    if (each.under_way) told["boxes"] = each.waits_for_names;
    if (story.slowest)
        told["slowest"] = {{"box", each.slowest_name},
                           {"in", name_of(story.slowest_in)},
                           {"seconds", seconds_of(story.slowest_took)}};
    return told;
}

void list_slow(const Desk& desk) {
    desk.reply(list_of(desk.controller.slow_operations(), [&](const node::SlowOperation& each) {
        return json{{"began", text_of(desk.world.date() - (desk.world.now() - each.since))},
                    {"seconds", seconds_of(each.took)},
                    {"under_way", each.under_way},
                    {"volume", each.volume},
                    {"operation", name_of(each.operation)},
                    {"offset", each.offset},
                    {"length", each.length},
                    {"session", static_cast<std::uint64_t>(each.session)},
                    {"story", story_json(desk, each)}};
    }));
}

json link_json(const node::LinkReport& report) {
    const auto& link = report.link;
    const auto& count = link.counters;
    const bool outbound = link.direction == node::ArrayLinkFacts::Direction::outbound;
    json shown{{"from", report.from},
               {"to", report.to},
               {"direction", outbound ? "outbound" : "inbound"},
               {"state", node::to_text(link.state)},
               {"local", show_address(link.local)},
               {"remote", show_address(link.remote)},
               {"connections", count.connections},
               {"attempts_failed", count.attempts_failed},
               {"ended", count.ended},
               {"terminated", count.terminated},
               {"bytes_sent", count.octets_sent},
               {"bytes_received", count.octets_received}};
    if (outbound)
        shown.update({{"done", count.done},
                      {"refused", count.refused},
                      {"timed_out", count.timed_out},
                      {"unreachable", count.unreachable},
                      {"retried", count.retried},
                      {"under_way", link.under_way},
                      {"waiting", link.waiting},
                      {"oldest_seconds", seconds_of(link.oldest)},
                      {"last_took_seconds", seconds_of(link.last_took)},
                      {"since_progress_seconds", seconds_of(link.since_progress)}});
    if (!link.last_end.empty())
        shown["last_end"] = {{"why", link.last_end},
                             {"seconds_ago", seconds_of(link.since_last_end)}};
    if (link.network)
        shown["network"] = {{"round_trip_seconds", seconds_of(link.network->round_trip)},
                            {"segments_sent", link.network->segments_sent},
                            {"segments_resent", link.network->segments_resent},
                            {"resent_per_mille", link.resent_per_mille}};
    return shown;
}

void list_links(const Desk& desk) {
    auto told = [reply = desk.reply](const ControllerNode::Refusal& refusal,
                                     const node::LinkReports& reports) {
        if (refusal) return reply({{"refused", *refusal}});
        reply({{"links", list_of(reports.links, link_json)}, {"silent", reports.silent}});
    };
    desk.controller.links(desk.request.value("volume", ""), told);
}

const char* name_of(node::OfficeReport::State state) {
    using State = node::OfficeReport::State;
    switch (state) {
        case State::standby:
            return "standby";
        case State::in_office:
            return "in office";
        case State::doubtful:
            return "in doubt";
        case State::deposed:
            return "deposed";
        default:
            return "stepped down";
    }
}

void controller_status(const Desk& desk) {
    const auto office = desk.controller.office();
    desk.reply({{"state", name_of(office.state)},
                {"epoch", static_cast<std::uint64_t>(office.epoch)},
                {"holder", office.holder},
                {"lease_ms", office.lease / std::chrono::milliseconds(1)},
                {"lease_left_ms", office.left_ms},
                {"address", show_address(desk.controller.address())},
                {"promises", promises_json(desk.controller.options())}});
}

/// Told first: then nobody may be left to tell it.
void step_down(const Desk& desk) {
    desk.reply(json::object());
    desk.world.defer(desk.step_down);
}

using Handler = void (*)(const Desk& desk);

const std::map<std::string, Handler>& handlers() {
    static const std::map<std::string, Handler> table{
        {"list boxes", [](const Desk& d) { d.reply(list_of(d.controller.boxes(), box_json)); }},
        {"add box",
         [](const Desk& d) {
             d.controller.add_box(d.text("name"), tcp_address_of(d.text("address")),
                                  d.request.value("join", false), d.told());
         }},
        {"remove box", [](const Desk& d) { d.controller.remove_box(d.text("name"), d.told()); }},
        {"clean box", clean_box},
        {"list volumes", list_volumes},
        {"volume status", volume_status},
        {"create volume", create_volume},
        {"delete volume",
         [](const Desk& d) { d.controller.delete_volume(d.text("name"), d.told()); }},
        {"assemble volume",
         [](const Desk& d) {
             d.controller.assemble_volume(d.text("name"), d.request.value("force", false),
                                          d.told());
         }},
        {"grow volume",
         [](const Desk& d) {
             d.controller.grow_volume(d.text("name"), d.number("size"), d.told());
         }},
        {"fail member",
         [](const Desk& d) {
             d.controller.fail_member(d.text("volume"), d.text("member"), d.told());
         }},
        {"re-add member",
         [](const Desk& d) {
             d.controller.re_add_member(d.text("volume"), d.text("member"), d.told());
         }},
        {"replace member",
         [](const Desk& d) {
             d.controller.replace_member(d.text("volume"), d.text("member"), d.text("box"),
                                         d.told());
         }},
        {"add spare", [](const Desk& d) { d.controller.add_spare(d.text("box"), d.told()); }},
        {"remove spare", [](const Desk& d) { d.controller.remove_spare(d.text("box"), d.told()); }},
        {"pause rebuild",
         [](const Desk& d) {
             d.controller.pause_rebuild(d.text("volume"), d.request.at("paused").get<bool>(),
                                        d.told());
         }},
        {"limit rebuild",
         [](const Desk& d) {
             d.controller.limit_rebuild(d.text("volume"), d.number("bytes_per_second"), d.told());
         }},
        {"scrub",
         [](const Desk& d) {
             d.controller.scrub(d.text("volume"), d.request.value("repair", false),
                                d.request.value("stop", false), d.told());
         }},
        {"list hosts", list_hosts},
        {"list events", list_events},
        {"list slow operations", list_slow},
        {"list links", list_links},
        {"controller status", controller_status},
        {"step down", step_down},
    };
    return table;
}

}  // namespace

json event_json(const node::ControllerEvent& event) {
    return {{"number", event.number},
            {"time", text_of(event.when)},
            {"volume", event.volume},
            {"box", event.box},
            {"what", event.what}};
}

void answer_management(World& world, ControllerNode& controller,
                       const std::function<void()>& step_down, const json& request,
                       const ManagementServer::Reply& reply) {
    const auto wish = request.value("do", "");
    auto found = handlers().find(wish);
    if (found == handlers().end()) throw Refusal{"this controller does not know how to do that"};
    if (!controller.in_office() && wish != "controller status")
        throw Refusal{fmt::format("this controller is not in office: {}",
                                  name_of(controller.office().state))};
    found->second({world, controller, step_down, request, reply});
}

}  // namespace weft::cli
