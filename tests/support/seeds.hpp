// SPDX-License-Identifier: Apache-2.0
// Runs a test for many seeds, and says how to run the one that failed again. A crash says so too.
//
//     for_each_seed(300, [](std::uint64_t seed) { sim::World world(seed); ... });
//
// With WEFT_SEED=17 in the environment only that seed is run; with WEFT_SEEDS=5000, or 301-5000,
// these are, however many the test would run by itself.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

namespace weft::test {

inline std::uint64_t running_seed = 0;

/// False when one seed is replayed: what only holds for all of them together is not to be asked.
inline bool runs_all_seeds() {
    return std::getenv("WEFT_SEED") == nullptr && std::getenv("WEFT_SEEDS") == nullptr;
}

inline std::string how_to_replay(std::uint64_t seed) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return "replay: WEFT_SEED=" + std::to_string(seed) +
           " <this program> --gtest_filter=" + test->test_suite_name() + "." + test->name();
}

struct Seeds {
    std::uint64_t first, last;
};

inline Seeds chosen_seeds(std::uint64_t count) {
    if (const char* one = std::getenv("WEFT_SEED")) {
        auto seed = std::strtoull(one, nullptr, 0);
        return {seed, seed};
    }
    const char* many = std::getenv("WEFT_SEEDS");
    if (!many) return {1, count};
    char* rest = nullptr;
    auto number = std::strtoull(many, &rest, 0);
    if (*rest != '-') return {1, number};
    return {number, std::strtoull(rest + 1, nullptr, 0)};
}

/// Stops at the first seed that fails.
inline void for_each_seed(std::uint64_t count, const std::function<void(std::uint64_t)>& body) {
    auto [first, last] = chosen_seeds(count);
    auto previous = std::signal(SIGABRT, [](int) {
        std::fprintf(stderr, "%s\n", how_to_replay(running_seed).c_str());
        std::signal(SIGABRT, SIG_DFL);
        std::abort();
    });
    for (std::uint64_t seed = first; seed <= last && !::testing::Test::HasFailure(); ++seed) {
        running_seed = seed;
        SCOPED_TRACE(how_to_replay(seed));
        body(seed);
    }
    std::signal(SIGABRT, previous);
}

}  // namespace weft::test
