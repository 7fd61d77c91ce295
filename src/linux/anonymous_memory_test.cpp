// SPDX-License-Identifier: Apache-2.0
#include "linux/anonymous_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

namespace weft::linux {
namespace {

constexpr std::size_t page = 4096;

std::size_t resident_pages(Buffer memory) {
    std::vector<unsigned char> present((memory.size() + page - 1) / page);
    if (::mincore(memory.data(), memory.size(), present.data()) < 0) return ~std::size_t{0};
    return static_cast<std::size_t>(
        std::count_if(present.begin(), present.end(), [](auto each) { return each & 1; }));
}

TEST(AnonymousMemory, IsZeroAndCostsNothingUntilWritten) {
    auto memory = make_anonymous_memory(64 << 20);
    ASSERT_TRUE(memory);
    auto all = (*memory)->all();
    EXPECT_EQ(all.size(), 64u << 20);
    EXPECT_EQ(resident_pages(all), 0u);
    EXPECT_EQ(all[12'345'678], std::byte{0});
    all[0] = std::byte{1};
    EXPECT_LT(resident_pages(all), 1024u);
}

TEST(AnonymousMemory, MayBeFarLargerThanTheMachine) {
    auto memory = make_anonymous_memory(256ull << 30);
    ASSERT_TRUE(memory);
    (*memory)->all()[(256ull << 30) - 1] = std::byte{1};
    (*memory)->release(0, 256ull << 30);
    EXPECT_EQ((*memory)->all()[(256ull << 30) - 1], std::byte{0});
}

TEST(AnonymousMemory, ReleasesExactlyWhatItIsTold) {
    constexpr std::size_t size = 6 * page + 100;
    auto memory = make_anonymous_memory(size);
    ASSERT_TRUE(memory);
    auto all = (*memory)->all();
    for (std::size_t offset : {0ul, 1ul, page - 1, page, page + 1, 3 * page, 6 * page, size - 1}) {
        for (std::size_t end : {offset, offset + 1, 2 * page, 2 * page + 7, 5 * page, size}) {
            if (end < offset || end > size) continue;
            std::fill(all.begin(), all.end(), std::byte{0xaa});
            (*memory)->release(offset, end - offset);
            auto is = [](std::byte value) { return [value](std::byte b) { return b == value; }; };
            EXPECT_TRUE(std::all_of(all.begin(), all.begin() + offset, is(std::byte{0xaa})));
            EXPECT_TRUE(std::all_of(all.begin() + offset, all.begin() + end, is(std::byte{0})));
            EXPECT_TRUE(std::all_of(all.begin() + end, all.end(), is(std::byte{0xaa})))
                << offset << " to " << end;
        }
    }
}

TEST(AnonymousMemory, GivesWholePagesBack) {
    auto memory = make_anonymous_memory(1 << 20);
    ASSERT_TRUE(memory);
    auto all = (*memory)->all();
    std::fill(all.begin(), all.end(), std::byte{1});
    EXPECT_EQ(resident_pages(all), 256u);
    (*memory)->release(page - 1, 100 * page);
    EXPECT_EQ(resident_pages(all), 256u - 99u);
}

TEST(AnonymousMemory, MayBeNone) {
    auto memory = make_anonymous_memory(0);
    ASSERT_TRUE(memory);
    EXPECT_TRUE((*memory)->all().empty());
    (*memory)->release(0, 0);
}

TEST(AnonymousMemory, RefusesMoreThanThereAreAddresses) {
    EXPECT_FALSE(make_anonymous_memory(~0ull << 12));
}

}  // namespace
}  // namespace weft::linux
