// SPDX-License-Identifier: Apache-2.0
#include "iwarp/memory_range.hpp"

#include <gtest/gtest.h>

#include <array>

#include "iwarp/piece_list.hpp"

namespace weft::iwarp {
namespace {

class MemoryRangeTest : public testing::Test {
protected:
    std::array<std::byte, 16> memory{};
    // Out of order and of several sizes, as pieces are.
    std::array<Buffer, 3> pieces{Buffer(memory).subspan(8, 3), Buffer(memory).subspan(2, 1),
                                 Buffer(memory).subspan(12, 4)};

    static std::vector<std::byte*> bytes_of(MemoryRange range, std::size_t step) {
        std::vector<std::byte*> all;
        while (!range.empty()) {
            auto here = range.front().first(std::min(step, range.front().size()));
            for (auto& octet : here) all.push_back(&octet);
            range.drop_front(here.size());
        }
        EXPECT_TRUE(range.front().empty());
        return all;
    }
    std::vector<std::byte*> expected() const {
        std::vector<std::byte*> all;
        for (Buffer piece : pieces)
            for (auto& octet : piece) all.push_back(&octet);
        return all;
    }
};

TEST_F(MemoryRangeTest, OfNothingIsEmpty) {
    MemoryRange nothing;
    EXPECT_TRUE(nothing.empty());
    EXPECT_TRUE(nothing.front().empty());
    nothing.drop_front(0);
    EXPECT_EQ(nothing.size(), 0u);
}

TEST_F(MemoryRangeTest, GivesItsBytesInOrderHoweverTheyAreTaken) {
    for (std::size_t step = 1; step <= 8; ++step)
        EXPECT_EQ(bytes_of(MemoryRange(pieces, 0, 8), step), expected()) << "steps of " << step;
}

TEST_F(MemoryRangeTest, EndsAmidAPieceIfItsSizeSaysSo) {
    auto whole = expected();
    for (std::size_t size = 0; size <= 8; ++size)
        EXPECT_EQ(bytes_of(MemoryRange(pieces, 0, size), 8),
                  std::vector(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
}

TEST_F(MemoryRangeTest, BeginsAmidItsFirstPiece) {
    MemoryRange range(pieces, 2, 3);
    EXPECT_EQ(range.front().data(), &memory[10]);
    EXPECT_EQ(range.front().size(), 1u);
    range.drop_front(1);
    EXPECT_EQ(range.front().data(), &memory[2]);
}

TEST_F(MemoryRangeTest, DropsSeveralPiecesAtOnce) {
    MemoryRange range(pieces, 0, 8);
    range.drop_front(5);
    EXPECT_EQ(range.size(), 3u);
    EXPECT_EQ(range.front().data(), &memory[13]);
    range.drop_front(3);
    EXPECT_TRUE(range.empty());
}

using MemoryRangeDeathTest = MemoryRangeTest;

TEST_F(MemoryRangeDeathTest, CannotLoseMoreThanItHas) {
    MemoryRange range(pieces, 0, 8);
    EXPECT_DEATH(range.drop_front(9), "must hold");
}

TEST_F(MemoryRangeDeathTest, CannotBeginBehindItsFirstPiece) {
    EXPECT_DEATH(MemoryRange(pieces, 3, 1), "must hold");
    EXPECT_DEATH(MemoryRange({}, 0, 1), "must hold");
}

using PieceListTest = MemoryRangeTest;

TEST_F(PieceListTest, FindsEveryRangeOfItsPieces) {
    PieceList list;
    list.assign(pieces);
    auto whole = expected();
    for (std::size_t start = 0; start < whole.size(); ++start)
        for (std::size_t size = 1; start + size <= whole.size(); ++size) {
            auto first = whole.begin() + static_cast<std::ptrdiff_t>(start);
            EXPECT_EQ(bytes_of(list.range(start, size), 8),
                      std::vector(first, first + static_cast<std::ptrdiff_t>(size)));
        }
}

TEST_F(PieceListTest, LeavesOutEmptyPieces) {
    PieceList list;
    list.assign(std::array{Buffer{}, pieces[0], Buffer{}, pieces[1], Buffer{}});
    EXPECT_EQ(list.range(2, 2).front().data(), &memory[10]);
    EXPECT_EQ(list.range(3, 1).front().data(), &memory[2]);
    list.assign(std::array{Buffer{}, pieces[2]});
    EXPECT_EQ(list.range(0, 4).front().data(), &memory[12]) << "one is left";
}

TEST_F(PieceListTest, KnowsWhenItsSizeFitsNoNumber) {
    EXPECT_EQ(PieceList::size_of(pieces), 8u);
    EXPECT_EQ(PieceList::size_of({}), 0u);
    auto* anywhere = memory.data();
    std::array huge{Buffer(anywhere, SIZE_MAX), Buffer(anywhere, 1)};
    EXPECT_EQ(PieceList::size_of(std::span(huge).first(1)), SIZE_MAX);
    EXPECT_EQ(PieceList::size_of(huge), std::nullopt);
}

}  // namespace
}  // namespace weft::iwarp
