// SPDX-License-Identifier: Apache-2.0
#include "cli/rdma_options.hpp"

#include <fmt/format.h>

#include "cli/text.hpp"

namespace weft::cli {

void declare(CLI::App& options, RdmaWishes& wishes) {
    options.add_option("--crc", wishes.checksums, "checksums: on, or off where the peer agrees")
        ->check(CLI::IsMember({"on", "off"}));
    options
        .add_option("--placement", wishes.placement,
                    "with checksums: place bytes after the check, or eagerly before it")
        ->check(CLI::IsMember({"verified", "eager"}));
    options.add_flag("--markers", wishes.markers, "ask the peer to send MPA markers");
    options.add_option("--revision", wishes.revision, "of the MPA request")
        ->check(CLI::IsMember({1, 2}));
    options.add_flag("--no-peer-to-peer", wishes.no_peer_to_peer,
                     "the side that connects speaks first");
    options.add_flag("--standard", wishes.only_standard,
                     "set no reserved flags, by which Weft and Linux know each other");
    options.add_option("--wait", wishes.wait, "block: sleep until something comes; poll: spin")
        ->check(CLI::IsMember({"block", "poll"}));
    options.add_option("--congestion", wishes.congestion, "TCP's congestion control");
    options.add_flag("--json", wishes.as_json, "as JSON");
}

verbs::ConnectOptions connect_options(const RdmaWishes& wishes) {
    return {.checksums = wishes.checksums == "on",
            .markers = wishes.markers,
            .peer_to_peer = !wishes.no_peer_to_peer,
            .plain_startup = wishes.revision == 1,
            .place_before_check = wishes.placement == "eager",
            .only_standard = wishes.only_standard};
}

LinuxWorldOptions world_options(const RdmaWishes& wishes) {
    LinuxWorldOptions options;
    options.congestion_control = wishes.congestion;
    return options;
}

Address rdma_address(const std::string& text) {
    auto address = parse_tcp(text);
    if (!address) throw Misuse{fmt::format("'{}' is not HOST:PORT with a port up to 65535", text)};
    return *address;
}

bool drive(LinuxWorld& world, const RdmaWishes& wishes, const std::function<bool()>& done) {
    bool interrupted = false;
    hear_signals(world, [&] { interrupted = true; });
    auto over = [&] { return interrupted || done(); };
    if (wishes.wait == "poll") {
        while (!over()) world.poll();
    } else {
        world.run_until(over);
    }
    hear_signals(world, [] {});
    return !interrupted;
}

std::string show_facts(const verbs::ConnectionFacts& facts) {
    std::string text = facts.checksums ? "checksums" : "no checksums";
    if (facts.markers_in || facts.markers_out) text += ", markers";
    text += fmt::format(", up to {} reads in and {} out at a time", facts.inbound_reads,
                        facts.outbound_reads);
    if (facts.extended) text += ", both sides Weft";
    return text;
}

std::string show_microseconds(Duration span) {
    auto microseconds = static_cast<double>(span.count()) / 1000;
    return fmt::format("{:.{}f} µs", microseconds, microseconds < 100 ? 1 : 0);
}

}  // namespace weft::cli
