// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>
#include <variant>

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "base/error_text.hpp"
#include "base/fixed_vector.hpp"
#include "base/intrusive_queue.hpp"
#include "base/parity.hpp"
#include "base/ring.hpp"
#include "base/sequence_number.hpp"
#include "support/golden.hpp"
#include "weft/result.hpp"

namespace weft {
namespace {

TEST(Crc32c, GivesTheValuesOfRfc3720) {
    std::vector<std::byte> zeroes(32), ones(32, std::byte{0xff});
    EXPECT_EQ(crc32c(zeroes), 0x8a9136aau);
    EXPECT_EQ(crc32c(ones), 0x62a8ab43u);
}

TEST(Crc32c, DoesNotCareHowItIsCut) {
    auto text = bytes_of("the warp and the weft");
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        Crc32c crc;
        crc.add(text.first(cut));
        crc.add(text.subspan(cut));
        EXPECT_EQ(crc.value(), crc32c(text));
    }
}

struct Stripe {
    static constexpr std::size_t size = 96;
    alignas(parity_alignment) std::array<std::array<std::byte, size>, 5> rows{};
    Stripe() {
        for (std::size_t row = 0; row < 3; ++row)
            for (std::size_t i = 0; i < size; ++i)
                rows[row][i] = static_cast<std::byte>(17 * row + 31 * i + 5);
    }
    std::array<ConstBuffer, 3> sources() const { return {rows[0], rows[1], rows[2]}; }
};

std::byte twice(std::byte value) {  // in GF(2^8) with the polynomial 0x11d
    auto v = std::to_integer<unsigned>(value);
    return static_cast<std::byte>(v << 1 ^ (v & 0x80 ? 0x11d : 0));
}

TEST(Parity, IsTheXorOfItsSources) {
    Stripe stripe;
    ASSERT_TRUE(xor_parity(stripe.sources(), stripe.rows[3]));
    for (std::size_t i = 0; i < Stripe::size; ++i)
        EXPECT_EQ(stripe.rows[3][i], stripe.rows[0][i] ^ stripe.rows[1][i] ^ stripe.rows[2][i]);
}

TEST(Parity, IsAddedInPlace) {
    Stripe stripe;
    for (std::size_t size : {std::size_t{1}, std::size_t{32}, std::size_t{50}, Stripe::size}) {
        auto target = stripe.rows[1];
        alignas(parity_alignment) auto sum = target;
        xor_into(ConstBuffer(stripe.rows[0]).first(size), Buffer(sum).first(size));
        for (std::size_t i = 0; i < Stripe::size; ++i)
            EXPECT_EQ(sum[i], i < size ? target[i] ^ stripe.rows[0][i] : target[i]) << size;
    }
}

TEST(Parity, HasASecondSumOverTheField) {
    Stripe stripe;
    ASSERT_TRUE(pq_parity(stripe.sources(), stripe.rows[3], stripe.rows[4]));
    for (std::size_t i = 0; i < Stripe::size; ++i) {
        EXPECT_EQ(stripe.rows[3][i], stripe.rows[0][i] ^ stripe.rows[1][i] ^ stripe.rows[2][i]);
        EXPECT_EQ(stripe.rows[4][i],
                  stripe.rows[0][i] ^ twice(stripe.rows[1][i]) ^ twice(twice(stripe.rows[2][i])));
    }
}

TEST(Parity, RefusesUnequalOrUnalignedMemory) {
    Stripe stripe;
    EXPECT_FALSE(xor_parity(stripe.sources(), std::span(stripe.rows[3]).first(64)));
    auto sources = stripe.sources();
    EXPECT_FALSE(xor_parity(std::span(sources).first(1), stripe.rows[3]));
    std::array<ConstBuffer, 2> shifted{std::span(stripe.rows[0]).subspan(1, 32),
                                       std::span(stripe.rows[1]).first(32)};
    EXPECT_FALSE(xor_parity(shifted, std::span(stripe.rows[3]).first(32)));
}

TEST(Ring, KeepsOrderRoundTheEnd) {
    Ring<int> ring(3);
    for (int i = 0; i < 10; ++i) {
        ring.push_back(i);
        if (ring.full()) {
            EXPECT_EQ(ring.front(), i - 2);
            EXPECT_EQ(ring.back(), i);
            ring.pop_front();
        }
    }
    EXPECT_EQ(ring.size(), 2u);
    EXPECT_EQ(ring[1], 9);
}

TEST(RingDeathTest, StopsTheProgramWhenOverfilled) {
    Ring<int> ring(1);
    ring.push_back(1);
    EXPECT_DEATH(ring.push_back(2), "this must hold");
}

TEST(FixedVector, HoldsUpToItsCapacity) {
    FixedVector<int, 2> items;
    items.push_back(4);
    items.push_back(5);
    EXPECT_TRUE(items.full());
    EXPECT_EQ(items[1], 5);
    EXPECT_DEATH(items.push_back(6), "this must hold");
}

TEST(IntrusiveQueue, IsFirstInFirstOutAndCanTakeOverAnother) {
    struct Item {
        int value = 0;
        Item* next = nullptr;
    };
    Item items[] = {{1}, {2}, {3}};
    IntrusiveQueue<Item> queue, other;
    queue.push_back(items[0]);
    other.push_back(items[1]);
    other.push_back(items[2]);
    queue.append(other);
    EXPECT_TRUE(other.empty());
    EXPECT_EQ(queue.size(), 3u);
    for (int expected = 1; expected <= 3; ++expected) EXPECT_EQ(queue.pop_front().value, expected);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(items[0].next, nullptr);
    EXPECT_DEATH(queue.pop_front(), "this must hold");
}

TEST(IntrusiveQueue, LetsOneLeaveFromAnywhere) {
    struct Item {
        Item* next = nullptr;
    };
    Item items[4];
    for (std::size_t leaving = 0; leaving < 4; ++leaving) {
        IntrusiveQueue<Item> queue;
        for (auto& item : items) queue.push_back(item);
        queue.remove(items[leaving]);
        EXPECT_EQ(queue.size(), 3u);
        Item late;
        queue.push_back(late);
        for (std::size_t i = 0; i < 4; ++i) {
            if (i == leaving) continue;
            EXPECT_EQ(&queue.pop_front(), &items[i]);
        }
        EXPECT_EQ(&queue.pop_front(), &late);
        EXPECT_TRUE(queue.empty());
    }
}

TEST(SequenceNumber, ComparesRoundTheCircle) {
    SequenceNumber32 before(0xfffffff0), after(0x10);
    EXPECT_LT(before, after);
    EXPECT_GT(after, before);
    EXPECT_EQ(after - before, 0x20u);
    EXPECT_EQ(before + 0x20, after);
    EXPECT_LE(before, before);
    EXPECT_FALSE(before < before);
}

TEST(ErrorText, HasASentenceForEveryCode) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < code_count; ++i) {
        std::string text = to_text(static_cast<Code>(i));
        EXPECT_NE(text, "an unknown error");
        EXPECT_TRUE(seen.insert(text).second) << text << " is said for two codes";
    }
}

TEST(ErrorText, TakesForANumberOfTheSystemOnlyWhatTheSystemKnows) {
    EXPECT_EQ(to_text(Error{.code = Code::io_failed, .detail = ECONNREFUSED}),
              "Connection refused");
    EXPECT_EQ(to_text(Error{.code = Code::access_denied, .detail = 0x2006}),
              "access is not allowed");
    EXPECT_EQ(to_text(Error{.code = Code::malformed, .detail = ECONNREFUSED}),
              "the bytes break a rule of the protocol");
}

TEST(Within, IsNotFooledByOverflow) {
    EXPECT_TRUE(within(0, 10, 10));
    EXPECT_TRUE(within(10, 0, 10));
    EXPECT_FALSE(within(1, 10, 10));
    EXPECT_FALSE(within(~0ull, 2, 10));
    EXPECT_FALSE(within(2, ~0ull, 10));
}

TEST(Result, DoesNotMakeUpAnErrorWhereThereIsNone) {
    EXPECT_THROW(std::ignore = Result<int>(7).error(), std::bad_variant_access);
    EXPECT_THROW(std::ignore = Result<void>().error(), std::bad_optional_access);
    EXPECT_EQ(Result<void>(Error{.code = Code::truncated}).error().code, Code::truncated);
}

}  // namespace
}  // namespace weft
