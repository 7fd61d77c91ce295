// SPDX-License-Identifier: Apache-2.0
// `weft rebuild …`, `weft scrub`, `weft events`, `weft slow-ops`: watching an array, and how fast
// it heals.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/array_options.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto look_again = std::chrono::milliseconds(500);
constexpr std::size_t bar_width = 30;

std::string word(const json& document, const char* key) {
    return show_foreign(document.at(key).get<std::string>());
}

struct OfVolume {
    std::string volume;
    ArrayWishes array;

    void declare(CLI::App& options) {
        options.add_option("VOLUME", volume, "the volume's name")->required();
        array.declare(options);
    }
    json status() const { return array.ask({{"do", "volume status"}, {"name", volume}}); }
};

std::string bar(std::uint64_t done_so_far, std::uint64_t all) {
    const auto filled =
        all == 0 ? bar_width : std::min<std::size_t>(bar_width, done_so_far * bar_width / all);
    return std::string(filled, '#') + std::string(bar_width - filled, '.');
}

/// "[####....] 12%, 340 MiB/s, 2 min left". The rate is what went since the last look.
std::string progress(const json& now, const json& before, double seconds) {
    const auto at = now.at("done").get<std::uint64_t>(), all = now.at("to_do").get<std::uint64_t>();
    auto text = fmt::format("place {} [{}] {}%", now.at("place").get<unsigned>(), bar(at, all),
                            all == 0 ? 100 : at * 100 / all);
    if (now.at("paused").get<bool>()) return text + ", paused";
    if (before.is_null() || seconds <= 0) return text;
    const auto bytes = now.at("bytes").get<std::uint64_t>();
    const auto was = before.at("bytes").get<std::uint64_t>();
    const auto stripes = before.at("done").get<std::uint64_t>();
    text +=
        fmt::format(", {}/s", show_size(static_cast<std::uint64_t>(
                                  bytes > was ? static_cast<double>(bytes - was) / seconds : 0)));
    if (at > stripes)
        text +=
            fmt::format(", {} left", show_duration(static_cast<double>(all - at) /
                                                   static_cast<double>(at - stripes) * seconds));
    return text;
}

json rebuild_of(const json& status, unsigned place) {
    for (const auto& each : status.at("rebuilds"))
        if (each.at("place") == place) return each;
    return {};
}

/// On a terminal, a line that is written over until all is rebuilt.
void watch(const OfVolume& wishes) {
    auto before = wishes.status();
    auto looked = Clock::now();
    while (!before.at("rebuilds").empty()) {
        std::this_thread::sleep_for(look_again);
        auto now = wishes.status();
        const auto seconds = std::chrono::duration<double>(Clock::now() - looked).count();
        looked = Clock::now();
        std::string line;
        for (const auto& each : now.at("rebuilds"))
            line += (line.empty() ? "" : "; ") +
                    progress(each, rebuild_of(before, each.at("place")), seconds);
        fmt::print("\r\033[K{}", line);
        std::fflush(stdout);
        before = std::move(now);
    }
    fmt::print("\r\033[K{} is {}.\n", show_foreign(wishes.volume), word(before, "state"));
}

int pause(const Command& self, const Arguments& arguments, bool paused) {
    CLI::App options;
    OfVolume wishes;
    wishes.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    return wishes.array.do_it(
        {{"do", "pause rebuild"}, {"volume", wishes.volume}, {"paused", paused}},
        fmt::format("The rebuilding of {} {}.", show_foreign(wishes.volume),
                    paused ? "waits" : "goes on"));
}

void print_event(const json& event) {
    std::string about = word(event, "volume");
    if (auto box = word(event, "box"); !box.empty()) about += (about.empty() ? "" : ", ") + box;
    fmt::print("{}  {}{}\n", word(event, "time"), about.empty() ? "" : about + ": ",
               word(event, "what"));
}

std::string short_span(double seconds) {
    return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1e3) : show_duration(seconds);
}

/// "200 ms for its turn, 1.8 s for boxes to read": what it waited for, in the order it comes.
std::string spent_text(const json& spent) {
    constexpr std::array<std::pair<const char*, const char*>, 6> words{{
        {"turn", "for its turn"},
        {"room", "for room in a box"},
        {"volume", "for the volume to be put right"},
        {"read", "for boxes to read"},
        {"prepare", "for boxes to prepare"},
        {"commit", "for boxes to commit"},
    }};
    std::string text;
    for (const auto& [key, says] : words) {
        const double seconds = spent.value(key, 0.0);
        if (seconds < 0.001) continue;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", short_span(seconds), says);
    }
    return text;
}

void print_story(const json& story) {
    if (auto spent = spent_text(story.at("spent")); !spent.empty()) fmt::print("    {}\n", spent);
    if (story.contains("boxes") && !story.at("boxes").empty()) {
        std::string names;
        for (const auto& box : story.at("boxes"))
            names += (names.empty() ? "" : ", ") + show_foreign(box.get<std::string>());
        fmt::print("    not answered by {}\n", names);
    }
    if (story.contains("slowest")) {
        const auto& slowest = story.at("slowest");
        fmt::print("    slowest answer: {}, {} to {}\n", word(slowest, "box"),
                   short_span(slowest.at("seconds").get<double>()), word(slowest, "in"));
    }
    const auto attempts = story.at("attempts").get<unsigned>();
    if (attempts > 1) fmt::print("    begun {} times\n", attempts);
    if (story.at("hedged").get<bool>())
        fmt::print("    hedged: a box was late, and the others were asked instead\n");
    if (story.at("relayed").get<bool>())
        fmt::print("    relayed: its data went by way of the controller\n");
}

}  // namespace

int rebuild_status(const Command& self, const Arguments& arguments) {
    CLI::App options;
    OfVolume wishes;
    bool once = false;
    wishes.declare(options);
    options.add_flag("--once", once, "say it once, on a terminal too");
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto status = wishes.status();
    if (wishes.array.as_json) return fmt::print("{}\n", show_json(status.at("rebuilds"))), done;
    if (!once && ::isatty(STDOUT_FILENO) == 1) return watch(wishes), done;
    for (const auto& each : status.at("rebuilds")) fmt::print("{}\n", progress(each, {}, 0));
    if (status.at("rebuilds").empty())
        fmt::print("Nothing of {} is being rebuilt; it is {}.\n", show_foreign(wishes.volume),
                   word(status, "state"));
    return done;
}

int rebuild_pause(const Command& self, const Arguments& arguments) {
    return pause(self, arguments, true);
}

int rebuild_resume(const Command& self, const Arguments& arguments) {
    return pause(self, arguments, false);
}

int rebuild_rate(const Command& self, const Arguments& arguments) {
    CLI::App options;
    OfVolume wishes;
    std::string rate;
    options.add_option("VOLUME", wishes.volume, "the volume's name")->required();
    options.add_option("RATE", rate, "octets in a second at most, as 50M; 0: as fast as it goes")
        ->required();
    wishes.array.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    const auto limit = size_of(rate);
    return wishes.array.do_it(
        {{"do", "limit rebuild"}, {"volume", wishes.volume}, {"bytes_per_second", limit}},
        limit == 0 ? fmt::format("{} is rebuilt as fast as it goes.", show_foreign(wishes.volume))
                   : fmt::format("{} is rebuilt at {}/s at most.", show_foreign(wishes.volume),
                                 show_size(limit)));
}

int scrub(const Command& self, const Arguments& arguments) {
    CLI::App options;
    OfVolume wishes;
    bool repair = false, stop = false, wait = false;
    wishes.declare(options);
    options.add_flag("--repair", repair, "make parity anew where it does not agree");
    options.add_flag("--stop", stop, "end the one that is running");
    options.add_flag("--wait", wait, "until it has ended, and say what it found");
    if (auto leave = parse(self, options, arguments)) return *leave;
    const json request{
        {"do", "scrub"}, {"volume", wishes.volume}, {"repair", repair}, {"stop", stop}};
    if (!wait)
        return wishes.array.do_it(request,
                                  fmt::format("{} is {}.", show_foreign(wishes.volume),
                                              stop ? "scrubbed no longer" : "being scrubbed"));
    wishes.array.ask(request);
    auto found = wishes.status().at("scrub");
    while (found.at("running").get<bool>()) {
        std::this_thread::sleep_for(look_again);
        found = wishes.status().at("scrub");
    }
    if (wishes.array.as_json) return fmt::print("{}\n", show_json(found)), done;
    const auto unchecked = found.at("unchecked").get<std::uint64_t>();
    fmt::print("{}: {} stripes looked at, {} mismatches, {} repaired.\n",
               show_foreign(wishes.volume), found.at("done").get<std::uint64_t>(),
               found.at("mismatches").get<std::uint64_t>(),
               found.at("repaired").get<std::uint64_t>());
    if (unchecked != 0)
        fmt::print("{} of them could not be checked: a box is missing or busy.\n", unchecked);
    return done;
}

int events(const Command& self, const Arguments& arguments) {
    CLI::App options;
    ArrayWishes array;
    bool follow = false;
    array.declare(options);
    options.add_flag("--follow", follow, "and go on with what happens next");
    if (auto leave = parse(self, options, arguments)) return *leave;
    for (std::uint64_t last = 0;;) {
        auto found = array.ask({{"do", "list events"}, {"after", last}});
        if (array.as_json && !follow) return fmt::print("{}\n", show_json(found)), done;
        for (const auto& event : found) {
            last = event.at("number").get<std::uint64_t>();
            if (array.as_json)
                fmt::print("{}\n", show_json(event));
            else
                print_event(event);
        }
        if (!follow) return done;
        std::fflush(stdout);
        std::this_thread::sleep_for(look_again);
    }
}

int slow_operations(const Command& self, const Arguments& arguments) {
    CLI::App options;
    ArrayWishes array;
    array.declare(options);
    if (auto leave = parse(self, options, arguments)) return *leave;
    auto found = array.ask({{"do", "list slow operations"}});
    if (array.as_json) return fmt::print("{}\n", show_json(found)), done;
    for (const auto& each : found) {
        fmt::print("{}  {}: {} of {} at {} {} {}\n", word(each, "began"), word(each, "volume"),
                   word(each, "operation"), show_size(each.at("length").get<std::uint64_t>()),
                   each.at("offset").get<std::uint64_t>(),
                   each.at("under_way").get<bool>() ? "has taken" : "took",
                   show_duration(each.at("seconds").get<double>()));
        print_story(each.at("story"));
    }
    if (found.empty()) fmt::print("No request of a host has taken longer than half a second.\n");
    return done;
}

}  // namespace weft::cli
