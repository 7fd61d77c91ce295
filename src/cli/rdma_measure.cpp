// SPDX-License-Identifier: Apache-2.0
// `weft rdma ping` and `weft rdma bench`: how far away a peer is, and how much it takes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error_text.hpp"
#include "cli/rdma_options.hpp"
#include "cli/text.hpp"
#include "linux/event_loop.hpp"
#include "node/exercise_client.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;
using node::ExerciseKind;

struct Wishes : RdmaWishes {
    std::string where;
    std::string operation = "send", size = "64";
    std::uint32_t count = 5, depth = 16, round_trips = 1000;
    double interval_s = 1, seconds = 5;
};

std::uint32_t message_size(const Wishes& wishes) {
    constexpr std::uint64_t largest = 1u << 30;
    auto size = parse_size(wishes.size);
    if (!size || *size > largest)
        throw Refusal{
            fmt::format("'{}' is not a size of at most {}", wishes.size, show_size(largest))};
    return static_cast<std::uint32_t>(*size);
}

ExerciseKind kind_of(const Wishes& wishes) {
    if (wishes.operation == "write") return ExerciseKind::write;
    return wishes.operation == "read" ? ExerciseKind::read : ExerciseKind::send;
}

/// CLI::Range lets through what is no number at all.
CLI::Validator seconds_up_to(int most) {
    return CLI::Validator(
        [most](const std::string& text) {
            double seconds = -1;
            bool is_number = CLI::detail::lexical_cast(text, seconds);
            return is_number && seconds >= 0 && seconds <= most
                       ? std::string()
                       : fmt::format("{} is not between 0 and {} seconds", text, most);
        },
        fmt::format("SECONDS in [0 - {}]", most));
}

Duration in_seconds(double seconds) {
    return Duration(static_cast<std::int64_t>(seconds * 1e9));
}

/// The value that this part of all are not above; of sorted ones.
Duration percentile(const std::vector<Duration>& sorted, double part) {
    auto at = static_cast<std::size_t>(part * static_cast<double>(sorted.size()));
    return sorted[std::min(at, sorted.size() - 1)];
}

struct Run {
    node::ExerciseResults results;
    verbs::ConnectionFacts facts;
    bool interrupted = false;
};

/// Connects, exercises, and calls `watch` with the results so far, again and again.
Run exercise(const Wishes& wishes, const node::ExerciseOptions& options,
             const std::function<void(const node::ExerciseResults&)>& watch, Duration every) {
    auto world = make_world(world_options(wishes));
    auto device = verbs::make_device(*world, {});
    std::optional<node::ExerciseResults> results;
    auto client = node::ExerciseClient::connect(
        *world, *device, rdma_address(wishes.where), options, [] { return linux::read_clock(); },
        [&](const node::ExerciseResults& how) { results = how; });
    if (!client)
        throw Refusal{
            fmt::format("cannot connect to {}: {}", wishes.where, to_text(client.error()))};
    std::unique_ptr<Timer> timer;
    if (watch) {
        timer = world->make_timer([&] {
            watch((*client)->results());
            timer->set(world->now() + every);
        });
        timer->set(world->now() + every);
    }
    Run run;
    run.interrupted = !drive(*world, wishes, [&] { return results.has_value(); });
    run.results = results ? *results : (*client)->results();
    run.facts = (*client)->facts();
    if (run.results.fault) throw Refusal{fmt::format("{}: {}", wishes.where, *run.results.fault)};
    return run;
}

void show_round_trips(std::vector<Duration> sorted, json* document) {
    if (sorted.empty()) return;
    std::sort(sorted.begin(), sorted.end());
    constexpr std::pair<const char*, double> parts[] = {
        {"lowest", 0}, {"half", 0.5}, {"90%", 0.9}, {"99%", 0.99}, {"highest", 1}};
    std::string line;
    for (auto [name, part] : parts) {
        auto value = percentile(sorted, part);
        if (document)
            (*document)["round_trip_us"][name] = static_cast<double>(value.count()) / 1000;
        line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, show_microseconds(value));
    }
    if (!document) fmt::print("round trips: {} (of {})\n", line, sorted.size());
}

void show_many(const Wishes& wishes, const node::ExerciseResults& results, json* document) {
    if (results.operations == 0 || results.elapsed == Duration{}) return;
    auto seconds = std::chrono::duration<double>(results.elapsed).count();
    auto operations = static_cast<double>(results.operations);
    auto bytes = operations * message_size(wishes);
    if (document) {
        (*document)["operations"] = results.operations;
        (*document)["seconds"] = seconds;
        (*document)["operations_per_second"] = operations / seconds;
        (*document)["bytes_per_second"] = bytes / seconds;
        return;
    }
    fmt::print("{} at a time: {}/s, {:.0f} operations/s for {}\n", wishes.depth,
               show_size(static_cast<std::uint64_t>(bytes / seconds)), operations / seconds,
               show_duration(seconds));
}

}  // namespace

int rdma_ping(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    options.add_option("HOST:PORT", wishes.where, "of weft rdma serve")->required();
    options.add_option("--count", wishes.count, "how often")->check(CLI::Range(1u, 1u << 20));
    options.add_option("--interval", wishes.interval_s, "seconds between two")
        ->check(seconds_up_to(3600));
    options.add_option("--size", wishes.size, "of a message");
    declare(options, wishes);
    if (auto leave = parse(self, options, arguments)) return *leave;
    std::size_t told = 0;
    auto tell = [&](const node::ExerciseResults& results) {
        for (; told < results.round_trips.size() && !wishes.as_json; ++told)
            fmt::print("{} from {}: {}\n", show_size(message_size(wishes)), wishes.where,
                       show_microseconds(results.round_trips[told]));
        std::fflush(stdout);
    };
    auto run = exercise(wishes,
                        {.size = message_size(wishes),
                         .depth = 1,
                         .round_trips = wishes.count,
                         .pause = in_seconds(wishes.interval_s),
                         .connection = connect_options(wishes)},
                        tell, std::chrono::milliseconds(20));
    tell(run.results);
    json document{{"peer", wishes.where}, {"size", message_size(wishes)}};
    show_round_trips(run.results.round_trips, wishes.as_json ? &document : nullptr);
    if (wishes.as_json) fmt::print("{}\n", show_json(document));
    return done;
}

int rdma_bench(const Command& self, const Arguments& arguments) {
    CLI::App options;
    Wishes wishes;
    options.add_option("HOST:PORT", wishes.where, "of weft rdma serve")->required();
    options.add_option("--op", wishes.operation, "what to measure")
        ->check(CLI::IsMember({"send", "write", "read"}));
    options.add_option("--size", wishes.size, "of a message");
    options.add_option("--depth", wishes.depth, "operations at a time")
        ->check(CLI::Range(1u, 1024u));
    options.add_option("--round-trips", wishes.round_trips, "one after the other, before")
        ->check(CLI::Range(0u, 1u << 20));
    options.add_option("--seconds", wishes.seconds, "with that many at a time")
        ->check(seconds_up_to(86400));
    declare(options, wishes);
    if (auto leave = parse(self, options, arguments)) return *leave;
    bool live = isatty(STDERR_FILENO) && !wishes.as_json;
    Instant began = linux::read_clock();
    auto show_progress = [&](const node::ExerciseResults& results) {
        auto elapsed = std::chrono::duration<double>(linux::read_clock() - began).count();
        auto bytes = static_cast<double>(results.operations) * message_size(wishes);
        fmt::print(stderr, "\r\033[K{} round trips, {} moved, {}/s, {} left",
                   results.round_trips.size(), show_size(static_cast<std::uint64_t>(bytes)),
                   show_size(static_cast<std::uint64_t>(bytes / std::max(elapsed, 1e-9))),
                   show_duration(std::max(wishes.seconds - elapsed, 0.0)));
        std::fflush(stderr);
    };
    std::function<void(const node::ExerciseResults&)> watch;
    if (live) watch = show_progress;
    auto run = exercise(wishes,
                        {.kind = kind_of(wishes),
                         .size = message_size(wishes),
                         .depth = wishes.depth,
                         .round_trips = wishes.round_trips,
                         .many_for = in_seconds(wishes.seconds),
                         .connection = connect_options(wishes)},
                        watch, std::chrono::milliseconds(250));
    if (live) fmt::print(stderr, "\r\033[K");
    json document{{"peer", wishes.where},         {"operation", wishes.operation},
                  {"size", message_size(wishes)}, {"depth", wishes.depth},
                  {"wait", wishes.wait},          {"checksums", run.facts.checksums}};
    if (!wishes.as_json)
        fmt::print("{} of {} to {} ({})\n", wishes.operation, show_size(message_size(wishes)),
                   wishes.where, show_facts(run.facts));
    show_round_trips(run.results.round_trips, wishes.as_json ? &document : nullptr);
    show_many(wishes, run.results, wishes.as_json ? &document : nullptr);
    if (wishes.as_json) fmt::print("{}\n", show_json(document));
    return run.interrupted ? refused : done;
}

}  // namespace weft::cli
