// SPDX-License-Identifier: Apache-2.0
// Which work is blamed for what a peer's Terminate says.
#include "support/send_queue_fixture.hpp"

namespace weft::verbs {
namespace {

class SendQueueBlame : public test::SendQueueTest {
protected:
    void begin_anew() {
        queue.stream_gone();
        queue.reset();
        reads = iwarp::OutstandingReads(2);
    }
    Result<void> post_write(std::uint64_t id, std::uint64_t address, std::uint32_t size,
                            Operation operation = Operation::write) {
        std::array local{at(0, size)};
        return post({.id = id,
                     .operation = operation,
                     .local = local,
                     .remote = {address, SteeringTag{0x500}}});
    }
    void begin_all() {
        while (begin()) queue.message_sent();
    }
    static iwarp::Quoted untagged(wire::QueueNumber number_queue, std::uint32_t number) {
        return {.header = wire::UntaggedSegment{.queue = number_queue, .message_number = number}};
    }
    static iwarp::Quoted written(std::uint64_t offset, std::uint32_t tag = 0x500) {
        return {.header = wire::TaggedSegment{true, Opcode::write, SteeringTag{tag},
                                              wire::TaggedOffset{offset}}};
    }
    /// How all ends if the peer complains of this: a letter each.
    std::string ends(const iwarp::Quoted& about) {
        queue.flush({Status::remote_access, about});
        std::string text;
        for (auto& each : completions())
            text += each.status == Status::success         ? '+'
                    : each.status == Status::remote_access ? '!'
                                                           : '-';
        return text;
    }
};

TEST_F(SendQueueBlame, FallsOnTheWriteThatTheOffsetIsIn) {
    for (auto [offset, expected] :
         {std::pair{100u, "-!--"}, {107u, "-!--"}, {108u, "-+!-"}, {200u, "-++!"}}) {
        begin_anew();
        ASSERT_TRUE(post_read(1));
        ASSERT_TRUE(post_write(2, 100, 8));
        ASSERT_TRUE(post_write(3, 108, 8));
        ASSERT_TRUE(post_write(4, 200, 0));
        begin_all();
        EXPECT_EQ(ends(written(offset)), expected) << offset;
    }
}

TEST_F(SendQueueBlame, FallsOnAWriteThatRunsPastAllOffsets) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(post_write(2, UINT64_MAX - 3, 8));
    begin_all();
    EXPECT_EQ(ends(written(2)), "-!");
}

TEST_F(SendQueueBlame, FallsOnTheOldestThatHasBegunIfNothingIsQuotedOrKnown) {
    for (auto& about :
         {iwarp::Quoted{}, written(100, 0x600), written(5000), untagged(wire::QueueNumber::send, 7),
          untagged(wire::QueueNumber::send, 0)}) {
        begin_anew();
        ASSERT_TRUE(post_write(1, 100, 8));
        ASSERT_TRUE(post_read(2));
        ASSERT_TRUE(post_write(3, 100, 8));
        ASSERT_TRUE(begin() && begin() && begin());
        for (int i = 0; i < 3; ++i) queue.message_sent();
        ASSERT_TRUE(post_send(4));
        EXPECT_EQ(ends(about), "+!--");
    }
}

TEST_F(SendQueueBlame, FallsOnTheMessageOfThatNumber) {
    for (auto [number, expected] : {std::pair{1u, "-!--"}, {2u, "-+!-"}, {3u, "-++!"}}) {
        begin_anew();
        ASSERT_TRUE(post_read(1));
        ASSERT_TRUE(post_send(2));
        ASSERT_TRUE(post_write(3, 100, 8, Operation::write_immediate));
        ASSERT_TRUE(post_send(4));
        begin_all();
        EXPECT_EQ(ends(untagged(wire::QueueNumber::send, number)), expected) << number;
    }
}

TEST_F(SendQueueBlame, FallsOnTheReadOrAtomicOfThatNumber) {
    for (auto [number, expected] : {std::pair{1u, "!---"}, {2u, "-+!-"}}) {
        begin_anew();
        ASSERT_TRUE(post_read(1));
        ASSERT_TRUE(post_send(2));
        ASSERT_TRUE(post_read(3, Operation::fetch_and_add));
        ASSERT_TRUE(post_send(4));
        begin_all();
        EXPECT_EQ(ends(untagged(wire::QueueNumber::read_request, number)), expected) << number;
    }
}

TEST_F(SendQueueBlame, FallsOnTheReadThatIsQuotedWhateverItsNumber) {
    ASSERT_TRUE(post_read(1));
    std::array local{at(16, 4)};
    ASSERT_TRUE(post({.id = 2, .operation = Operation::read, .local = local}));
    begin_all();
    auto about = untagged(wire::QueueNumber::read_request, 1);
    about.read_request =
        wire::ReadRequest{.sink_tag = tag, .sink_offset = wire::TaggedOffset{16}, .size = 4};
    EXPECT_EQ(ends(about), "-!");
}

TEST_F(SendQueueBlame, FallsOnNoReadThatWasAnswered) {
    ASSERT_TRUE(post_send(1));
    ASSERT_TRUE(post_read(2));
    ASSERT_TRUE(post_read(3));
    ASSERT_TRUE(begin() && begin() && begin());
    answer();
    for (int i = 0; i < 3; ++i) queue.message_sent();
    EXPECT_EQ(ends(untagged(wire::QueueNumber::read_request, 1)), "++!") << "the oldest unanswered";
}

TEST_F(SendQueueBlame, FallsOnUnsignalledWorkAloud) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(post({.id = 2, .signalled = false}));
    begin_all();
    EXPECT_EQ(ends(untagged(wire::QueueNumber::send, 1)), "-!");
}

}  // namespace
}  // namespace weft::verbs
