// SPDX-License-Identifier: Apache-2.0
#include "sim/trace.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::sim {
namespace {

TEST(Trace, HashesEverythingItIsTold) {
    auto hash = [](std::int64_t when, const char* kind, unsigned subject, unsigned size,
                   unsigned crc) {
        Trace trace;
        trace.note({when}, kind, subject, size, crc);
        return trace.hash();
    };
    auto usual = hash(1, "sent", 2, 3, 4);
    EXPECT_EQ(usual, hash(1, "sent", 2, 3, 4));
    EXPECT_NE(usual, hash(9, "sent", 2, 3, 4));
    EXPECT_NE(usual, hash(1, "lost", 2, 3, 4));
    EXPECT_NE(usual, hash(1, "sent", 9, 3, 4));
    EXPECT_NE(usual, hash(1, "sent", 2, 9, 4));
    EXPECT_NE(usual, hash(1, "sent", 2, 3, 9));
}

TEST(Trace, ShowsALineForEverythingItIsTold) {
    std::vector<std::string> lines;
    Trace trace;
    trace.show([&](const std::string& line) { lines.push_back(line); });
    trace.note({1500}, "sent", 4, 10, 77);
    trace.note({1600}, "tick", 5, 0, 0);
    EXPECT_EQ(lines, (std::vector<std::string>{"1500 sent 4 size 10 crc 77", "1600 tick 5"}));
}

}  // namespace
}  // namespace weft::sim
