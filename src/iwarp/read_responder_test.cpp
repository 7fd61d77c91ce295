// SPDX-License-Identifier: Apache-2.0
#include "iwarp/read_responder.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "iwarp/fault.hpp"
#include "support/memory_table_fixture.hpp"

namespace weft::iwarp {
namespace {

using wire::AtomicOperation;
using wire::AtomicRequest;

TEST(Atomic, AddsAllBitsAsOneNumberWithoutAMask) {
    AtomicRequest request{.operation = AtomicOperation::fetch_add, .add_or_swap = 1};
    EXPECT_EQ(apply_atomic(request, 41), 42u);
    EXPECT_EQ(apply_atomic(request, UINT64_MAX), 0u);
}

TEST(Atomic, KeepsTheCarryOfEachFieldInIt) {
    // Four fields of sixteen bits: a set bit of the mask is the top of one.
    AtomicRequest request{.operation = AtomicOperation::fetch_add,
                          .add_or_swap = 0x0001'ffff'8000'0001,
                          .add_or_swap_mask = 0x8000'8000'8000'8000};
    EXPECT_EQ(apply_atomic(request, 0xffff'0001'8000'7fff), 0x0000'0000'0000'8000u);
}

TEST(Atomic, AddsFieldsAsTheStandardsLoopDoes) {
    // RFC 7306 section 5.1.1, bit by bit: the carry out of a masked bit is dropped.
    auto bit_by_bit = [](std::uint64_t original, std::uint64_t add, std::uint64_t mask) {
        std::uint64_t sum = 0;
        unsigned carry = 0;
        for (unsigned bit = 0; bit < 64; ++bit) {
            auto total = static_cast<unsigned>((original >> bit & 1) + (add >> bit & 1)) + carry;
            sum |= static_cast<std::uint64_t>(total & 1) << bit;
            carry = (mask >> bit & 1) != 0 ? 0 : total >> 1;
        }
        return sum;
    };
    std::uint64_t state = 1;
    auto next = [&] { return state = state * 6364136223846793005u + 1442695040888963407u; };
    for (int i = 0; i < 1000; ++i) {
        auto original = next(), add = next(), mask = next() & next();
        AtomicRequest request{
            .operation = AtomicOperation::fetch_add, .add_or_swap = add, .add_or_swap_mask = mask};
        ASSERT_EQ(apply_atomic(request, original), bit_by_bit(original, add, mask));
    }
}

TEST(Atomic, SwapsMaskedBitsIfTheMaskedBitsCompareEqual) {
    AtomicRequest request{.operation = AtomicOperation::compare_swap,
                          .add_or_swap = 0xaaaa,
                          .add_or_swap_mask = 0xff00,
                          .compare = 0x0012,
                          .compare_mask = 0x00ff};
    EXPECT_EQ(apply_atomic(request, 0x5512), 0xaa12u);
    EXPECT_EQ(apply_atomic(request, 0x5513), 0x5513u);
}

class ReadResponderTest : public test::MemoryTableTest {
protected:
    wire::ReadRequest read(SteeringTag tag, std::uint64_t offset, std::uint32_t size) {
        return {.sink_tag = SteeringTag{9},
                .sink_offset = wire::TaggedOffset{90},
                .size = size,
                .source_tag = tag,
                .source_offset = wire::TaggedOffset{offset}};
    }
    ReadResponder responder{table, us, 3};
};

TEST_F(ReadResponderTest, AnswersInTheOrderOfTheRequests) {
    auto tag = add_all();
    ASSERT_TRUE(responder.add_read({read(tag, base + 8, 4), 1}));
    ASSERT_TRUE(responder.add_atomic({.request_identifier = 5,
                                      .remote_tag = tag,
                                      .remote_offset = wire::TaggedOffset{base},
                                      .add_or_swap = 7}));
    EXPECT_EQ(memory[0], std::byte{7}) << "done at once; only its answer waits";
    ASSERT_TRUE(responder.add_read({read(tag, base, 0), 3}));
    EXPECT_TRUE(responder.full());
    EXPECT_EQ(responder.add_read({read(tag, base, 4), 4}).error(),
              iwarp::fault(wire::UntaggedBufferError::no_buffer));

    auto first = *responder.next_message();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->opcode, wire::RdmapOpcode::read_response);
    EXPECT_EQ(first->tag, SteeringTag{9});
    EXPECT_EQ(first->offset, 90u);
    EXPECT_EQ(test::addresses(first->payload[0].bytes), memory_from(8, 4));
    EXPECT_EQ(first->payload[0].tag, tag) << "to be held";
    auto second = *responder.next_message();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->opcode, wire::RdmapOpcode::atomic_response);
    EXPECT_EQ(second->payload[0].bytes.size(), 12u);
    auto third = *responder.next_message();
    ASSERT_TRUE(third);
    EXPECT_TRUE(third->payload[0].bytes.empty());
    EXPECT_FALSE(*responder.next_message());

    EXPECT_FALSE(responder.full()) << "the peer may have the answers before we know";
    ASSERT_TRUE(responder.add_read({read(tag, base, 4), 4}));
    EXPECT_FALSE(*responder.next_message()) << "as many are with the sender as may be";
    responder.message_sent();
    EXPECT_TRUE(*responder.next_message());
    for (int sent = 0; sent < 3; ++sent) responder.message_sent();
    EXPECT_TRUE(responder.idle());
}

TEST_F(ReadResponderTest, RefusesToAnswerFromMemoryThatWentAway) {
    auto tag = add_all();
    ASSERT_TRUE(responder.add_read({read(tag, base, 4), 11}));
    ASSERT_TRUE(table.remove(tag));
    EXPECT_FALSE(responder.next_message());
    EXPECT_EQ(responder.next_read().message_number, 11u);
    EXPECT_EQ(responder.next_read().request, read(tag, base, 4));
}

}  // namespace
}  // namespace weft::iwarp
