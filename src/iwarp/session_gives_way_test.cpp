// SPDX-License-Identifier: Apache-2.0
// Sessions that hold buffers which others wait for: who gets on may keep them, who does not ends.
#include <gtest/gtest.h>

#include "iwarp/session.hpp"
#include "support/buffer_hoard.hpp"
#include "support/session_words.hpp"

namespace weft::iwarp {
namespace {

using namespace test;
using wire::RdmapOpcode;

class ASessionThatHoldsABuffer : public testing::Test {
protected:
    void TearDown() override { side.buffers.forget(other); }
    /// Someone asks for a buffer, and there is none.
    void let_others_wait() {
        hoard.emplace(side.buffers);
        EXPECT_TRUE(side.buffers.take(FpduBuffers::largest, other).empty());
    }
    void pass(int count) {
        for (; count > 0; --count) side.session().tick(now = now + limits::buffer_patience);
    }
    void hold_answer() {
        auto tag = side.add_region(0, 200'000, all_rights);
        side.hear(stream_of(read_header, octets_of(read_of(tag, base, 200'000))));
        std::array<ConstBuffer, 64> pieces;
        ASSERT_GT(side.session().pending(pieces), 0u);
        ASSERT_GT(side.buffers.bytes_lent(), 0u);
    }

    SessionSide side{terms(Role::responder)};
    Instant now = start;
    std::optional<Hoard> hoard;
    struct Other final : FpduBufferWaiter {
        void buffer_available() override { ++told; }
        int told = 0;
    } other;
    Bytes fpdu = stream_of(send_header, pattern(60'000, 1));
};

TEST_F(ASessionThatHoldsABuffer, KeepsItForAnFpduThatNobodyElseSuffersFrom) {
    side.hear(ConstBuffer(fpdu).first(100));
    pass(20);
    EXPECT_FALSE(side.failure);
    EXPECT_TRUE(side.session().deadline()) << "others may come, and nobody tells it";
}

TEST_F(ASessionThatHoldsABuffer, EndsIfOthersWaitAndNothingComes) {
    side.hear(ConstBuffer(fpdu).first(100));
    pass(5);
    let_others_wait();
    auto lent = side.buffers.bytes_lent();
    EXPECT_EQ(other.told, 0);
    pass(2);
    expect_failure(side, fault(wire::MpaError::connection_lost));
    EXPECT_LT(side.buffers.bytes_lent(), lent) << "given back at once";
    EXPECT_EQ(other.told, 1);
    EXPECT_FALSE(side.session().is_stuck()) << "the peer may listen, though it does not speak";
    EXPECT_EQ(opcodes(side.say()), std::vector{RdmapOpcode::terminate});
}

TEST_F(ASessionThatHoldsABuffer, KeepsItAsLongAsEnoughComes) {
    side.hear(ConstBuffer(fpdu).first(100));
    let_others_wait();
    for (std::size_t at = 100; at + limits::buffer_progress < fpdu.size();
         at += limits::buffer_progress) {
        pass(1);
        side.hear(ConstBuffer(fpdu).subspan(at, limits::buffer_progress));
        ASSERT_FALSE(side.failure) << at;
    }
}

TEST_F(ASessionThatHoldsABuffer, EndsIfItOnlyDrips) {
    side.hear(ConstBuffer(fpdu).first(100));
    let_others_wait();
    for (std::size_t at = 100; at < 1000 && !side.failure; at += 100) {
        pass(1);
        side.hear(ConstBuffer(fpdu).subspan(at, 100));
    }
    expect_failure(side, fault(wire::MpaError::connection_lost));
}

TEST_F(ASessionThatHoldsABuffer, EndsIfItsApplicationPostsNoReceiveForIt) {
    side.hear(fpdu);
    ASSERT_TRUE(side.session().waits_for_receive());
    let_others_wait();
    pass(2);
    expect_failure(side, fault(wire::UntaggedBufferError::no_buffer));
    auto said = side.say();
    FpduStream decoded(said, {});
    EXPECT_EQ(to_hex(terminate_in(decoded).segment_header), to_hex(octets_of(send_header)));
}

TEST_F(ASessionThatHoldsABuffer, KeepsItForAnAnswerThatNobodyElseSuffersFrom) {
    hold_answer();
    pass(100);
    EXPECT_FALSE(side.failure);
    EXPECT_TRUE(side.session().deadline());
}

TEST_F(ASessionThatHoldsABuffer, EndsIfOthersWaitAndItsAnswersAreNotTaken) {
    hold_answer();
    let_others_wait();
    pass(3);
    expect_failure(side, fault(wire::MpaError::connection_lost));
    EXPECT_TRUE(side.session().is_stuck()) << "no use in waiting for the last word to go";
}

TEST_F(ASessionThatHoldsABuffer, KeepsItAsLongAsItsAnswersGo) {
    hold_answer();
    let_others_wait();
    for (int i = 0; i < 10; ++i) {
        pass(1);
        side.session().sent(limits::buffer_progress);
        ASSERT_FALSE(side.failure) << i;
    }
}

}  // namespace
}  // namespace weft::iwarp
