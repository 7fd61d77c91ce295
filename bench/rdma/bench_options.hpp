// SPDX-License-Identifier: Apache-2.0
// The command line and the result that every program of bench/rdma shares, so that bench/rdma.py
// can drive them all alike. Both sides are given the same options, hence nothing of a run needs to
// be agreed over the connection that is being measured.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weft::bench {

enum class Side : std::uint8_t {
    serve,  ///< waits for the one connection, and answers
    drive,  ///< connects, does the work, takes the time
};

enum class Operation : std::uint8_t { send, write, read, ping_pong };

enum class Waiting : std::uint8_t {
    polling,   ///< asks again and again, and never sleeps
    blocking,  ///< sleeps in the kernel until there is something to do
};

struct BenchOptions {
    Side side = Side::serve;
    std::string host;
    std::uint16_t port = 0;
    Operation operation = Operation::send;
    Waiting waiting = Waiting::polling;
    std::size_t size = 0;     ///< of a message
    std::uint64_t count = 0;  ///< of messages, or of round trips, in the measured part
    std::uint64_t depth = 0;  ///< how many may be under way at once

    /// A tenth of the run goes before it, unmeasured: the congestion window opens, pages are
    /// touched.
    std::uint64_t warm_up_count() const { return count / 10 + 1; }
};

/// Nothing: the command line was wrong, or asked for help, which has been said.
std::optional<BenchOptions> parse_bench_options(int argc, char** argv, const char* description);

/// What the driving side took for the measured part, as one line of JSON on standard output; and
/// for the round trip in the middle of all, if somebody timed each.
void print_result(const BenchOptions& options, std::chrono::nanoseconds elapsed,
                  std::optional<std::chrono::nanoseconds> middle = {});

/// The driving side's run: a tenth of it first, unmeasured, and then the whole. `drive` may have
/// found the middle round trip by then.
template <typename Drive>
void drive_measured(const BenchOptions& options, Drive drive,
                    const std::optional<std::chrono::nanoseconds>& middle = {}) {
    drive(options.warm_up_count());
    const auto began = std::chrono::steady_clock::now();
    drive(options.count);
    print_result(options, std::chrono::steady_clock::now() - began, middle);
}

/// Says what failed, on standard error, and ends the program: a bench has nothing to recover.
[[noreturn]] void give_up(const char* what, const char* why);

}  // namespace weft::bench
