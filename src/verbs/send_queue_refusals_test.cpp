// SPDX-License-Identifier: Apache-2.0
// What a send queue does not take, and the number it says why with.
#include "support/send_queue_fixture.hpp"

namespace weft::verbs {
namespace {

class SendQueueRefuses : public test::SendQueueTest {
protected:
    void expect_refused(const SendRequest& request, Code code, std::uint32_t where) {
        auto posted = post(request);
        ASSERT_FALSE(posted);
        EXPECT_EQ(posted.error().code, code);
        EXPECT_EQ(posted.error().where, where);
        EXPECT_TRUE(queue.empty()) << "what is refused leaves no trace";
    }
};

TEST_F(SendQueueRefuses, WhatItHasNoRoomFor) {
    for (std::uint64_t id = 0; id < capacity; ++id) ASSERT_TRUE(post_send(id));
    auto posted = post_send(capacity);
    ASSERT_FALSE(posted);
    EXPECT_EQ(posted.error().code, Code::exhausted);
    EXPECT_EQ(posted.error().where, capacity);
    EXPECT_EQ(begin(), Opcode::send);
    queue.message_sent();
    EXPECT_EQ(completed(), test::Ids{0});
    EXPECT_TRUE(post_send(capacity)) << "who has completed makes room";
}

TEST_F(SendQueueRefuses, MorePiecesThanItWasMadeFor) {
    std::array local{at(0, 1), at(1, 1), at(2, 1)};
    expect_refused({.local = local}, Code::out_of_range, pieces);
}

TEST_F(SendQueueRefuses, MoreBytesThanAMessageCanHave) {
    std::array local{at(0, 0xffff'ffff), at(0, 1)};
    expect_refused({.local = local}, Code::out_of_range, 0xffff'ffff);
}

TEST_F(SendQueueRefuses, AReadIntoTwoPlaces) {
    std::array local{at(0, 1), at(1, 1)};
    for (auto operation : {Operation::read, Operation::read_invalidate})
        expect_refused({.operation = operation, .local = local}, Code::out_of_range, 1);
}

TEST_F(SendQueueRefuses, AtomicsThatAreNotForEightBytesInOnePlace) {
    std::array seven{at(0, 7)}, nine{at(0, 9)};
    std::array two{at(0, 4), at(4, 4)};
    for (auto operation : {Operation::compare_and_swap, Operation::fetch_and_add}) {
        expect_refused({.operation = operation}, Code::malformed, 0);
        expect_refused({.operation = operation, .local = seven}, Code::malformed, 0);
        expect_refused({.operation = operation, .local = nine}, Code::malformed, 0);
        expect_refused({.operation = operation, .local = two}, Code::malformed, 0);
    }
}

TEST_F(SendQueueRefuses, ToCopyMoreThanItHasRoomFor) {
    std::array local{at(0, inline_room + 1)};
    expect_refused({.inlined = true, .local = local}, Code::out_of_range, inline_room);
}

TEST_F(SendQueueRefuses, ToCopyWhereAnAnswerShallCome) {
    std::array local{at(0, 8)};
    for (auto operation : {Operation::read, Operation::fetch_and_add})
        expect_refused({.operation = operation, .inlined = true, .local = local},
                       Code::out_of_range, inline_room);
}

TEST_F(SendQueueRefuses, LocalWorkThatDoesNotSayWhat) {
    expect_refused({.operation = Operation::bind_window}, Code::malformed, 0);
    expect_refused({.operation = Operation::fast_register}, Code::malformed, 0);
}

TEST_F(SendQueueRefuses, WhatThePeerDoesNotKnow) {
    std::array local{at(0, 8)};
    for (auto peer : {iwarp::Peer::unknown, iwarp::Peer::siw}) {
        terms.peer = peer;
        for (auto operation :
             {Operation::write_immediate, Operation::compare_and_swap, Operation::fetch_and_add})
            expect_refused({.operation = operation, .local = local}, Code::unsupported, 0);
    }
}

TEST_F(SendQueueRefuses, ReadsWhereNoneWereAgreedOnAsTheyWouldWaitForEver) {
    terms.outbound_reads = 0;
    std::array local{at(0, 8)};
    for (auto operation : {Operation::read, Operation::read_invalidate, Operation::fetch_and_add})
        expect_refused({.operation = operation, .local = local}, Code::unsupported, 0);
}

}  // namespace
}  // namespace weft::verbs
