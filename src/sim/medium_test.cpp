// SPDX-License-Identifier: Apache-2.0
#include "sim/medium.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace weft::sim {
namespace {

using Reach = Medium::Reach;

/// A medium whose sectors are written and read as one digit each.
struct Digits {
    explicit Digits(std::size_t cache_sectors) : medium(cache_sectors) {}

    void write(std::uint64_t sector, std::string_view digits, Reach reach) {
        std::vector<std::byte> bytes;
        for (char digit : digits)
            bytes.insert(bytes.end(), sector_bytes, static_cast<std::byte>(digit - '0'));
        medium.write(sector * sector_bytes, bytes, reach);
    }
    std::string read(std::uint64_t sector, std::size_t count) const {
        std::vector<std::byte> bytes(count * sector_bytes);
        medium.read(sector * sector_bytes, bytes);
        std::string digits;
        for (std::size_t i = 0; i < count; ++i)
            digits += static_cast<char>('0' + std::to_integer<int>(bytes[i * sector_bytes]));
        return digits;
    }

    Medium medium;
};

TEST(Medium, FlushesWhatCameBeforeTheMarkOnly) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        Digits digits(100);
        Random random(seed);
        digits.write(0, "1", Reach::cache);
        digits.write(0, "2", Reach::cache);
        auto mark = digits.medium.mark();
        digits.write(0, "3", Reach::cache);
        digits.medium.flush(mark);
        EXPECT_EQ(digits.read(0, 1), "3");
        digits.medium.power_cut(random);
        seen.insert(digits.read(0, 1));
    }
    EXPECT_EQ(seen, (std::set<std::string>{"2", "3"}));
}

TEST(Medium, LosesOneWriteAndKeepsALaterOne) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Digits digits(100);
        Random random(seed);
        digits.write(0, "11", Reach::cache);
        digits.write(5, "22", Reach::cache);
        digits.medium.power_cut(random);
        seen.insert(digits.read(0, 2) + digits.read(5, 2));
    }
    for (auto possible : {"1122", "1100", "0022", "0000", "1022", "1120"})
        EXPECT_TRUE(seen.contains(possible)) << possible;
}

TEST(Medium, BoundsItsCache) {
    Digits digits(4);
    Random random(1);
    digits.write(0, "12345678", Reach::cache);  // more than fits: stable at once
    digits.medium.power_cut(random);
    EXPECT_EQ(digits.read(0, 8), "12345678");
}

TEST(Medium, CountsWhatIsAllocated) {
    Digits digits(100);
    digits.write(2, "11", Reach::cache);
    EXPECT_EQ(digits.medium.allocated(), 2 * sector_bytes);
    EXPECT_EQ(digits.medium.unallocated(0, 4 * sector_bytes), 2 * sector_bytes);
    EXPECT_EQ(digits.medium.extent(0, 8 * sector_bytes), (Extent{2 * sector_bytes, true, true}));
    digits.medium.write_zeroes(2 * sector_bytes, sector_bytes, Medium::Zeroes::hole, Reach::cache);
    EXPECT_EQ(digits.medium.allocated(), sector_bytes);
    digits.medium.write_zeroes(0, sector_bytes, Medium::Zeroes::allocated, Reach::cache);
    EXPECT_EQ(digits.medium.extent(0, 8 * sector_bytes), (Extent{sector_bytes, false, true}));
}

TEST(Medium, RotsBehindTheCache) {
    Digits digits(100);
    digits.write(0, "4", Reach::stable);
    digits.medium.rot(0, 0);
    EXPECT_EQ(digits.read(0, 1), "5");
    digits.write(0, "4", Reach::cache);
    digits.medium.rot(0, 1);
    EXPECT_EQ(digits.read(0, 1), "4");
}

}  // namespace
}  // namespace weft::sim
