// SPDX-License-Identifier: Apache-2.0
// `weft link list`: the connections over which boxes move data, and what became of transfers.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/array_options.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

std::string word(const json& document, const char* key) {
    return show_foreign(document.at(key).get<std::string>());
}

std::uint64_t number(const json& document, const char* key) {
    return document.at(key).get<std::uint64_t>();
}

std::string span(double seconds) {
    return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : show_duration(seconds);
}

/// ", 3 refused" if there are any.
std::string some(const json& link, const char* key, const char* says) {
    const auto count = number(link, key);
    return count == 0 ? "" : fmt::format(", {} {}", count, says);
}

std::string network_text(const json& link) {
    if (!link.contains("network")) return "";
    const auto& network = link.at("network");
    return fmt::format("; round trip {}, {:.1f} % sent again",
                       span(network.at("round_trip_seconds").get<double>()),
                       network.at("resent_per_mille").get<double>() / 10);
}

void print_link(const json& link) {
    const bool outbound = link.at("direction") == "outbound";
    fmt::print("{} {} {}: {}, {} to {}{}\n", word(link, "from"), outbound ? "->" : "<-",
               word(link, "to"), word(link, "state"), word(link, "local"), word(link, "remote"),
               network_text(link));
    if (outbound) {
        fmt::print("  transfers: {} done{}{}{}{}; {} under way, {} waiting\n", number(link, "done"),
                   some(link, "retried", "begun again"), some(link, "refused", "refused"),
                   some(link, "timed_out", "timed out"), some(link, "unreachable", "unreachable"),
                   number(link, "under_way"), number(link, "waiting"));
        if (number(link, "under_way") > 0)
            fmt::print("  the oldest under way for {}; bytes moved {} ago\n",
                       span(link.at("oldest_seconds").get<double>()),
                       span(link.at("since_progress_seconds").get<double>()));
    }
    fmt::print("  {} sent, {} received; {} connections made, {} ended{}{}\n",
               show_size(number(link, "bytes_sent")), show_size(number(link, "bytes_received")),
               number(link, "connections"), number(link, "ended"),
               some(link, "terminated", "of these by Terminates that quote a tag"),
               some(link, "attempts_failed", "attempts failed"));
    if (link.contains("last_end"))
        fmt::print("  the last ended {} ago: {}\n",
                   span(link.at("last_end").at("seconds_ago").get<double>()),
                   word(link.at("last_end"), "why"));
}

}  // namespace

int link_list(const Command& self, const Arguments& arguments) {
    CLI::App options;
    std::string volume;
    ArrayWishes array;
    options.add_option("--volume", volume, "of its boxes and hosts alone");
    array.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    const auto answer = array.ask({{"do", "list links"}, {"volume", volume}});
    if (array.as_json) return fmt::print("{}\n", show_json(answer)), done;
    for (const auto& link : answer.at("links")) print_link(link);
    for (const auto& box : answer.at("silent"))
        fmt::print("{} is up and did not say how its links are\n",
                   show_foreign(box.get<std::string>()));
    return done;
}

}  // namespace weft::cli
