// SPDX-License-Identifier: Apache-2.0
// See bench_options.hpp. The result is one line of JSON, because the reader is a script.
#include "bench_options.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace weft::bench {
namespace {

const std::map<std::string, Side> sides{{"serve", Side::serve}, {"drive", Side::drive}};
const std::map<std::string, Operation> operations{{"send", Operation::send},
                                                  {"write", Operation::write},
                                                  {"read", Operation::read},
                                                  {"ping-pong", Operation::ping_pong}};
const std::map<std::string, Waiting> waitings{{"polling", Waiting::polling},
                                              {"blocking", Waiting::blocking}};

}  // namespace

std::optional<BenchOptions> parse_bench_options(int argc, char** argv, const char* description) {
    BenchOptions options;
    CLI::App app{description};
    app.add_option("side", options.side, "serve (start this first) or drive")
        ->required()
        ->transform(CLI::CheckedTransformer(sides));
    app.add_option("host", options.host, "an IPv4 address of this machine")->required();
    app.add_option("port", options.port)->required();
    app.add_option("--operation", options.operation)
        ->required()
        ->transform(CLI::CheckedTransformer(operations));
    app.add_option("--waiting", options.waiting)
        ->required()
        ->transform(CLI::CheckedTransformer(waitings));
    app.add_option("--size", options.size, "of a message, in bytes")
        ->required()
        ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30));
    app.add_option("--count", options.count, "messages, or round trips")
        ->required()
        ->check(CLI::PositiveNumber);
    app.add_option("--depth", options.depth, "under way at once")
        ->required()
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1024}));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        app.exit(error);
        return std::nullopt;
    }
    return options;
}

void print_result(const BenchOptions& options, std::chrono::nanoseconds elapsed,
                  std::optional<std::chrono::nanoseconds> middle) {
    using Seconds = std::chrono::duration<double>;
    fmt::print("{{\"size\": {}, \"count\": {}, \"seconds\": {:.9f}", options.size, options.count,
               Seconds(elapsed).count());
    if (middle) fmt::print(", \"middle_seconds\": {:.9f}", Seconds(*middle).count());
    fmt::print("}}\n");
}

void give_up(const char* what, const char* why) {
    fmt::print(stderr, "{}: {}\n", what, why);
    std::exit(1);
}

}  // namespace weft::bench
