// SPDX-License-Identifier: Apache-2.0
// Answers to reads: what is copied before it is sent, for how long, and who waits for room to.
#include <gtest/gtest.h>

#include "iwarp/fpdu_sender.hpp"
#include "support/buffer_hoard.hpp"
#include "support/fpdu_sender_fixture.hpp"
#include "support/fpdu_writer.hpp"

namespace weft::iwarp {
namespace {

using test::Bytes;
using test::Hoard;
using test::OutgoingMessage;
using test::pattern;
using test::SenderFixture;
using wire::RdmapOpcode;

constexpr FpduSenderOptions large{.ulpdu_max = wire::ulpdu_limit};
constexpr auto held_tag = SteeringTag{0x100};

OutgoingMessage answer(std::size_t size, const std::vector<std::size_t>& pieces) {
    return {{RdmapOpcode::read_response, SteeringTag{5}, 0x1000, pattern(size, 1)}, {pieces}};
}
OutgoingMessage send(std::size_t size) {
    return OutgoingMessage({RdmapOpcode::send, {}, 0, pattern(size, 2)});
}

TEST(FpduSender, CopiesAnswersWhereThereAreChecksums) {
    for (bool checksum : {true, false}) {
        SenderFixture fixture({.checksum = checksum, .ulpdu_max = wire::ulpdu_limit});
        auto& message = fixture.source.add(answer(3000, {1000, 2000}));
        fixture.ask(64);
        EXPECT_EQ(fixture.lent()[1].data() == message.memory(0, 0).data(), !checksum);
        EXPECT_EQ(fixture.lent().size(), checksum ? 3u : 4u) << "a copy is in one piece";
        if (checksum) message.memory(0, 1)[7] ^= std::byte{0xff};
        fixture.send_all();
        fixture.expect_all_messages();
        EXPECT_EQ(fixture.buffers.bytes_lent(), 0u);
    }
}

TEST(FpduSender, SendsAShortMessageAsItWasWhateverItsOwnerDoesMeanwhile) {
    for (std::size_t size : {1u, 4u, 95u, 96u}) {
        SenderFixture fixture(large);
        Hoard hoard(fixture.buffers);
        auto& message = fixture.source.add(send(size));
        fixture.ask(64);
        message.memory(0, 0)[0] ^= std::byte{0xff};
        fixture.send_all();
        fixture.expect_all_messages();
    }
}

TEST(FpduSender, NeedsNoBufferForAnAnswerOfNothing) {
    SenderFixture fixture(large);
    Hoard hoard(fixture.buffers);
    fixture.source.add(answer(0, {}));
    fixture.send_all();
    fixture.expect_all_messages();
}

TEST(FpduSender, HasOnlySoMuchCopiedAtOnce) {
    SenderFixture fixture(large);
    fixture.source.add(answer(1u << 20, {1u << 20}));
    fixture.source.add(send(100));
    fixture.ask(64);
    EXPECT_GE(fixture.buffers.bytes_lent(), limits::copied_bytes);
    EXPECT_LT(fixture.buffers.bytes_lent(), limits::copied_bytes + FpduBuffers::largest);
    fixture.send_all();
    fixture.expect_all_messages();
    EXPECT_EQ(fixture.buffers.bytes_lent(), 0u);
}

TEST(FpduSender, WaitsForABufferAndIsToldOfIt) {
    SenderFixture fixture(large);
    Hoard hoard(fixture.buffers);
    fixture.source.add(answer(100'000, {100'000}));
    EXPECT_EQ(fixture.ask(64), 0u);
    EXPECT_TRUE(fixture.waiter.is_waiting_for_buffer);
    hoard.give_back();
    EXPECT_GT(fixture.waiter.told, 0);
    fixture.send_all();
    fixture.expect_all_messages();
    EXPECT_FALSE(fixture.waiter.is_waiting_for_buffer);
}

TEST(FpduSender, DoesNotStandInTheQueueForBuffersWhileSomethingIsLent) {
    // Its stream may be blocked, and then it would keep others from what is there for them.
    SenderFixture fixture(large);
    Hoard hoard(fixture.buffers);
    fixture.source.add(send(50));
    fixture.source.add(answer(1000, {1000}));
    auto lent = fixture.ask(64);
    EXPECT_FALSE(fixture.waiter.is_waiting_for_buffer);
    fixture.send(lent);
    EXPECT_EQ(fixture.ask(64), 0u);
    EXPECT_TRUE(fixture.waiter.is_waiting_for_buffer);
    hoard.give_back();
    fixture.send_all();
    fixture.expect_all_messages();
}

TEST(FpduSender, ThatWindsUpWhileItWaitsEndsWhatItHadLent) {
    SenderFixture fixture(large);
    Hoard hoard(fixture.buffers);
    fixture.source.add(send(50)).hold_under(0, SteeringTag{0x200});
    fixture.source.add(answer(1000, {1000})).hold_under(0, held_tag);
    auto lent = fixture.ask(64);
    ASSERT_EQ(fixture.source.begun, 2u);
    fixture.sender().wind_up(std::nullopt);
    EXPECT_FALSE(fixture.holds.is_held(held_tag)) << "nothing of it is lent";
    EXPECT_TRUE(fixture.holds.is_held(SteeringTag{0x200}));
    fixture.send(lent);
    EXPECT_EQ(fixture.source.ended, 1u);
    EXPECT_TRUE(fixture.sender().is_wound_up());
}

TEST(FpduSender, LeavesTheQueueForBuffersWhenItWindsUpOrGoes) {
    for (bool goes : {true, false}) {
        SenderFixture fixture(large);
        Hoard hoard(fixture.buffers);
        fixture.source.add(answer(1000, {1000})).hold_under(0, held_tag);
        EXPECT_EQ(fixture.ask(64), 0u);
        if (goes)
            fixture.destroy_sender();
        else
            fixture.sender().wind_up(std::nullopt);
        EXPECT_FALSE(fixture.waiter.is_waiting_for_buffer);
        EXPECT_FALSE(fixture.holds.is_held(held_tag));
    }
}

TEST(FpduSender, GivesItsCopiesBackWhenItIsDestroyed) {
    SenderFixture fixture(large);
    fixture.source.add(answer(100'000, {100'000}));
    fixture.ask(64);
    EXPECT_GT(fixture.buffers.bytes_lent(), 0u);
    fixture.destroy_sender();
    EXPECT_EQ(fixture.buffers.bytes_lent(), 0u);
}

}  // namespace
}  // namespace weft::iwarp
