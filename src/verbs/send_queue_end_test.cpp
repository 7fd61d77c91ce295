// SPDX-License-Identifier: Apache-2.0
// How work ends that does not end well.
#include "support/send_queue_fixture.hpp"

namespace weft::verbs {
namespace {

class SendQueueEnds : public test::SendQueueTest {
protected:
    struct End {
        std::uint64_t id;
        Status status;
        bool operator==(const End&) const = default;
    };
    std::vector<End> ends() {
        std::vector<End> all;
        for (auto& each : completions()) all.push_back({each.id, each.status});
        return all;
    }
    void expect_stopped_by(Status status) {
        EXPECT_EQ(begin(), std::nullopt);
        EXPECT_TRUE(queue.has_failed());
        ASSERT_TRUE(post_send(99));
        EXPECT_EQ(begin(), std::nullopt) << "nothing goes after a failure";
        EXPECT_EQ(ends(), (std::vector<End>{{1, status}}));
        queue.flush({});
        EXPECT_EQ(ends(), (std::vector<End>{{99, Status::flushed}}));
    }
};

TEST_F(SendQueueEnds, WithLocalProtectionWhereATagOfOursDoesNotAllowIt) {
    std::array local{LocalMemory{0, 8, SteeringTag{0xbad00}}};
    ASSERT_TRUE(post({.id = 1, .local = local}));
    expect_stopped_by(Status::local_protection);
}

TEST_F(SendQueueEnds, WithLocalProtectionWhereTheMemoryEndsTooEarly) {
    std::array local{at(0, 4), at(60, 5)};
    ASSERT_TRUE(post({.id = 1, .operation = Operation::write, .local = local}));
    expect_stopped_by(Status::local_protection);
}

TEST_F(SendQueueEnds, WithLocalProtectionWhereAnAnswerMayNotBeWritten) {
    auto read_only = *table.add_region(us.domain, std::array{Buffer(memory)}, 0,
                                       Rights::remote_read, Addressing::from_zero);
    std::array local{LocalMemory{0, 8, read_only}};
    ASSERT_TRUE(post({.id = 1, .operation = Operation::fetch_and_add, .local = local}));
    expect_stopped_by(Status::local_protection);
    EXPECT_TRUE(reads.empty()) << "the peer was not asked";
}

TEST_F(SendQueueEnds, WithWindowBindingWhereAWindowCannotBeBound) {
    WindowBinding binding{.window = tag, .region = tag, .size = 8};
    ASSERT_TRUE(post({.id = 1, .operation = Operation::bind_window, .binding = &binding}));
    expect_stopped_by(Status::window_binding);
}

TEST_F(SendQueueEnds, WithLocalOperationWhereATagCannotBeRegistered) {
    FastRegistration registration{.tag = tag, .pieces = {Buffer(memory)}};
    ASSERT_TRUE(
        post({.id = 1, .operation = Operation::fast_register, .registration = &registration}));
    expect_stopped_by(Status::local_operation);
}

TEST_F(SendQueueEnds, WithLocalOperationWhereATagCannotBeInvalidated) {
    ASSERT_TRUE(post({.id = 1, .operation = Operation::local_invalidate, .invalidate = tag}));
    expect_stopped_by(Status::local_operation);
}

TEST_F(SendQueueEnds, UnsignalledWorkAloudIfItFails) {
    ASSERT_TRUE(post({.id = 1,
                      .operation = Operation::local_invalidate,
                      .signalled = false,
                      .invalidate = tag}));
    EXPECT_EQ(begin(), std::nullopt);
    EXPECT_EQ(ends(), (std::vector<End>{{1, Status::local_operation}}));
}

TEST_F(SendQueueEnds, AReadWithLocalProtectionIfItsSinkCannotBeInvalidated) {
    ASSERT_TRUE(post_read(1, Operation::read_invalidate));
    ASSERT_TRUE(begin());
    answer();
    EXPECT_TRUE(queue.has_failed());
    EXPECT_EQ(ends(), (std::vector<End>{{1, Status::local_protection}}));
}

TEST_F(SendQueueEnds, AReadWithLocalProtectionIfItsSinkIsGoneWhenTheAnswerComes) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(post_read(2));
    ASSERT_TRUE(begin() && begin());
    answer();
    reads.pop();
    queue.read_failed();
    EXPECT_TRUE(queue.has_failed());
    queue.flush({});
    EXPECT_EQ(ends(), (std::vector<End>{{1, Status::success}, {2, Status::local_protection}}));
}

TEST_F(SendQueueEnds, AFailureBehindWorkThatIsNotDoneInItsTurn) {
    ASSERT_TRUE(post_send(0));
    ASSERT_TRUE(post({.id = 1, .operation = Operation::local_invalidate, .invalidate = tag}));
    ASSERT_TRUE(begin());
    EXPECT_EQ(begin(), std::nullopt);
    EXPECT_EQ(ends(), std::vector<End>{});
    queue.flush({});
    queue.message_sent();
    EXPECT_EQ(ends(), (std::vector<End>{{0, Status::flushed}, {1, Status::local_operation}}));
}

TEST_F(SendQueueEnds, AllThatIsFlushedInTheOrderOfPosting) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(post({.id = 2, .signalled = false}));
    ASSERT_TRUE(post_send(3));
    ASSERT_TRUE(post_send(4));
    ASSERT_TRUE(begin() && begin());
    queue.message_sent();
    queue.message_sent();
    queue.flush({Status::remote_access});
    EXPECT_EQ(ends(), (std::vector<End>{{1, Status::remote_access},
                                        {2, Status::flushed},
                                        {3, Status::flushed},
                                        {4, Status::flushed}}))
        << "the second had gone to a peer that listened no more";
    EXPECT_TRUE(queue.empty());
    EXPECT_FALSE(queue.has_unbegun());
}

TEST_F(SendQueueEnds, WithThePeersComplaintOnlyWhatThePeerCanHaveSeen) {
    ASSERT_TRUE(post_send(1));
    queue.flush({Status::remote_access});
    EXPECT_EQ(ends(), (std::vector<End>{{1, Status::flushed}}));
}

TEST_F(SendQueueEnds, FlushedWorkWithItsOperation) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(post({.id = 2, .operation = Operation::local_invalidate, .invalidate = tag}));
    queue.flush({});
    auto all = completions();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].operation, Operation::read);
    EXPECT_EQ(all[1].operation, Operation::local_invalidate);
    EXPECT_EQ(all[0].what, Ended::sent);
}

TEST_F(SendQueueEnds, WorkThatWasFlushedOnlyWhenItsBytesAreSent) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(post_send(2));
    ASSERT_TRUE(post({.id = 3, .operation = Operation::write_immediate}));
    ASSERT_TRUE(post_send(4));
    ASSERT_TRUE(begin() && begin() && begin() && begin());
    queue.message_sent();
    queue.flush({});
    EXPECT_EQ(ends(), (std::vector<End>{{1, Status::flushed}})) << "of a read nothing is lent";
    queue.message_sent();
    EXPECT_EQ(ends(), (std::vector<End>{{2, Status::flushed}}));
    queue.message_sent();
    EXPECT_EQ(ends(), std::vector<End>{}) << "one of its two messages is left";
    queue.message_sent();
    EXPECT_EQ(ends(), (std::vector<End>{{3, Status::flushed}, {4, Status::flushed}}));
    EXPECT_TRUE(queue.empty());
}

TEST_F(SendQueueEnds, WorkWhoseBytesNeverWentWithTheStream) {
    ASSERT_TRUE(post_send(1));
    ASSERT_TRUE(post_send(2));
    ASSERT_TRUE(begin());
    queue.flush({});
    EXPECT_EQ(ends(), std::vector<End>{});
    queue.stream_gone();
    EXPECT_EQ(ends(), (std::vector<End>{{1, Status::flushed}, {2, Status::flushed}}));
    queue.stream_gone();
    EXPECT_EQ(ends(), std::vector<End>{});
}

TEST_F(SendQueueEnds, WhatIsPostedAfterTheFlushInItsTurn) {
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(post_send(id));
    ASSERT_TRUE(begin());
    queue.flush({});
    ASSERT_TRUE(queue.post_flushed({.id = 4, .operation = Operation::write}));
    EXPECT_EQ(queue.post_flushed({.id = 5}).error().code, Code::exhausted);
    EXPECT_EQ(ends(), std::vector<End>{});
    EXPECT_EQ(begin(), std::nullopt);
    queue.message_sent();
    EXPECT_EQ(ends().size(), 4u);
    ASSERT_TRUE(queue.post_flushed({.id = 6}));
    EXPECT_EQ(ends(), (std::vector<End>{{6, Status::flushed}}));
}

TEST_F(SendQueueEnds, AndBeginsAfreshWhenReset) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(begin());
    ASSERT_TRUE(post({.id = 2, .operation = Operation::local_invalidate, .invalidate = tag}));
    EXPECT_EQ(begin(), std::nullopt);
    queue.flush({});
    queue.stream_gone();
    EXPECT_EQ(ends().size(), 2u);
    queue.reset();
    reads = iwarp::OutstandingReads(2);
    EXPECT_FALSE(queue.has_failed());
    for (std::uint64_t id = 10; id < 10 + capacity; ++id) ASSERT_TRUE(post_send(id));
    for (std::size_t i = 0; i < capacity; ++i) {
        EXPECT_EQ(begin(), Opcode::send);
        queue.message_sent();
    }
    EXPECT_EQ(completed(), (test::Ids{10, 11, 12, 13}));
}

}  // namespace
}  // namespace weft::verbs
