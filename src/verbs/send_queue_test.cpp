// SPDX-License-Identifier: Apache-2.0
#include "support/send_queue_fixture.hpp"

namespace weft::verbs {
namespace {

using test::Ids;

class SendQueueWorks : public test::SendQueueTest {};

TEST_F(SendQueueWorks, TurnsEachKindOfSendIntoItsMessage) {
    struct Case {
        Operation operation;
        bool solicited;
        Opcode opcode;
    };
    for (auto each : {Case{Operation::send, false, Opcode::send},
                      Case{Operation::send, true, Opcode::send_solicited},
                      Case{Operation::send_invalidate, false, Opcode::send_invalidate},
                      Case{Operation::send_invalidate, true, Opcode::send_solicited_invalidate}}) {
        std::array local{at(1, 3)};
        ASSERT_TRUE(post({.operation = each.operation,
                          .solicited = each.solicited,
                          .local = local,
                          .invalidate = SteeringTag{0x1234}}));
        EXPECT_EQ(begin(), each.opcode);
        EXPECT_EQ(payload_text(), "bcd");
        bool invalidates = each.operation == Operation::send_invalidate;
        EXPECT_EQ(last.tag, invalidates ? SteeringTag{0x1234} : SteeringTag{});
        queue.message_sent();
        EXPECT_EQ(completions().size(), 1u);
    }
}

TEST_F(SendQueueWorks, GathersItsPiecesAndNamesTheirTags) {
    std::array local{at(2, 3), at(10, 2)};
    ASSERT_TRUE(post(
        {.operation = Operation::write, .local = local, .remote = {0x9000, SteeringTag{0x77}}}));
    EXPECT_EQ(begin(), Opcode::write);
    EXPECT_EQ(payload_text(), "cdekl");
    EXPECT_EQ(last.tag, SteeringTag{0x77});
    EXPECT_EQ(last.offset, 0x9000u);
    for (auto& source : last.payload) EXPECT_EQ(source.tag, tag);
}

TEST_F(SendQueueWorks, SendsNothingWithoutLookingAtTags) {
    std::array empty{LocalMemory{0x1234, 0, SteeringTag{0xbad}}};
    ASSERT_TRUE(post({.id = 1, .local = empty}));
    ASSERT_TRUE(post({.id = 2, .operation = Operation::write}));
    ASSERT_TRUE(post({.id = 3, .inlined = true}));
    for (auto opcode : {Opcode::send, Opcode::write, Opcode::send}) {
        EXPECT_EQ(begin(), opcode);
        EXPECT_TRUE(payload.empty());
        queue.message_sent();
    }
    EXPECT_EQ(completed(), (Ids{1, 2, 3}));
}

TEST_F(SendQueueWorks, CopiesWhatIsInlinedAtOnceAndAsksNoTag) {
    std::string words = "fleeting";
    std::array local{LocalMemory{reinterpret_cast<std::uintptr_t>(words.data()), 5, {}},
                     LocalMemory{reinterpret_cast<std::uintptr_t>(words.data()) + 5, 3, {}}};
    ASSERT_TRUE(post({.id = 1, .inlined = true, .local = local}));
    words = "replaced";
    EXPECT_EQ(begin(), Opcode::send);
    EXPECT_EQ(payload_text(), "fleeting");
    ASSERT_EQ(last.payload.size(), 1u);
    EXPECT_EQ(last.payload[0].tag, SteeringTag{}) << "memory of the queue's own";
}

TEST_F(SendQueueWorks, WritesWithAnImmediateInTwoMessagesThatEndAsOne) {
    std::array local{at(0, 4)};
    ASSERT_TRUE(post({.id = 5,
                      .operation = Operation::write_immediate,
                      .solicited = true,
                      .local = local,
                      .remote = {0x40, SteeringTag{0x9}},
                      .immediate = 0x01020304}));
    EXPECT_EQ(begin(), Opcode::write);
    EXPECT_EQ(payload_text(), "abcd");
    queue.message_sent();
    EXPECT_TRUE(completions().empty()) << "half of it is still to come";
    EXPECT_EQ(begin(), Opcode::immediate_data_solicited);
    EXPECT_EQ(payload_text(), std::string("\1\2\3\4\0\0\0\0", 8));
    EXPECT_EQ(begin(), std::nullopt);
    queue.message_sent();
    auto ended = completions();
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_EQ(ended[0].id, 5u);
    EXPECT_EQ(ended[0].operation, Operation::write_immediate);
    EXPECT_EQ(ended[0].bytes, 4u);
}

TEST_F(SendQueueWorks, AsksForAReadAndRemembersWhereItGoes) {
    std::array local{at(16, 8)};
    ASSERT_TRUE(
        post({.operation = Operation::read, .local = local, .remote = {0x50, SteeringTag{0x9}}}));
    EXPECT_EQ(begin(), Opcode::read_request);
    auto request = decode<wire::ReadRequest>(payload);
    ASSERT_TRUE(request);
    EXPECT_EQ(*request, (wire::ReadRequest{.sink_tag = tag,
                                           .sink_offset = wire::TaggedOffset{16},
                                           .size = 8,
                                           .source_tag = SteeringTag{0x9},
                                           .source_offset = wire::TaggedOffset{0x50}}));
    EXPECT_EQ(reads.oldest().sink_tag, tag);
    EXPECT_EQ(reads.oldest().sink_offset, 16u);
    EXPECT_EQ(reads.oldest().size, 8u);
}

TEST_F(SendQueueWorks, ReadsNothingUnderTagsThatAreNotZero) {
    ASSERT_TRUE(post({.operation = Operation::read}));
    EXPECT_EQ(begin(), Opcode::read_request);
    auto request = decode<wire::ReadRequest>(payload);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->size, 0u);
    EXPECT_NE(request->sink_tag, SteeringTag{});
    EXPECT_NE(request->source_tag, SteeringTag{});
}

TEST_F(SendQueueWorks, AsksForAtomicsAsTheOtherWorldKnowsThem) {
    std::array local{at(0, 8)};
    RemoteMemory remote{0x40, SteeringTag{0x9}};
    ASSERT_TRUE(post({.operation = Operation::compare_and_swap,
                      .local = local,
                      .remote = remote,
                      .operand = 5,
                      .compare = 3}));
    ASSERT_TRUE(post({.operation = Operation::fetch_and_add,
                      .local = local,
                      .remote = remote,
                      .operand = 7,
                      .compare = 99}));
    EXPECT_EQ(begin(), Opcode::atomic_request);
    auto swap = decode<wire::AtomicRequest>(payload);
    ASSERT_TRUE(swap);
    EXPECT_EQ(swap->operation, wire::AtomicOperation::compare_swap);
    EXPECT_EQ(swap->add_or_swap, 5u);
    EXPECT_EQ(swap->add_or_swap_mask, ~0ull);
    EXPECT_EQ(swap->compare, 3u);
    EXPECT_EQ(swap->compare_mask, ~0ull);
    EXPECT_EQ(swap->remote_tag, remote.tag);
    auto first_identifier = reads.oldest().request_identifier;
    EXPECT_EQ(swap->request_identifier, first_identifier);

    EXPECT_EQ(begin(), Opcode::atomic_request);
    auto add = decode<wire::AtomicRequest>(payload);
    ASSERT_TRUE(add);
    EXPECT_EQ(add->operation, wire::AtomicOperation::fetch_add);
    EXPECT_EQ(add->add_or_swap, 7u);
    EXPECT_EQ(add->add_or_swap_mask, 0u) << "all 64 bits are one number";
    EXPECT_EQ(add->compare, 0u);
    EXPECT_NE(add->request_identifier, first_identifier);
}

TEST_F(SendQueueWorks, CompletesInOrderAlthoughAReadEndsLater) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(post_send(2));
    ASSERT_TRUE(begin() && begin());
    queue.message_sent();
    queue.message_sent();
    EXPECT_EQ(completed(), Ids{}) << "the send has ended and waits for the read";
    answer();
    EXPECT_EQ(completed(), (Ids{1, 2}));
}

TEST_F(SendQueueWorks, CompletesAReadWhoseAnswerOvertookTheWordThatTheRequestIsSent) {
    ASSERT_TRUE(post_send(1));
    ASSERT_TRUE(post_read(2));
    ASSERT_TRUE(begin() && begin());
    answer();
    queue.message_sent();
    queue.message_sent();
    EXPECT_EQ(completed(), (Ids{1, 2}));
}

TEST_F(SendQueueWorks, DoesNotTakeALateWordAboutAnAnsweredReadForOneAboutWhatCameAfter) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(begin());
    answer();
    EXPECT_EQ(completed(), Ids{1});
    for (std::uint64_t id = 2; id < 2 + capacity; ++id) ASSERT_TRUE(post_send(id));
    queue.message_sent();  // the read's: its place is the last send's now
    EXPECT_EQ(completed(), Ids{});
    for (std::size_t i = 1; i < capacity; ++i) {
        EXPECT_EQ(begin(), Opcode::send);
        queue.message_sent();
    }
    EXPECT_EQ(completed(), (Ids{2, 3, 4})) << "the last has not even begun";
}

TEST_F(SendQueueWorks, SaysNothingOfUnsignalledWorkThatWentWell) {
    ASSERT_TRUE(post({.id = 1, .signalled = false}));
    ASSERT_TRUE(post({.id = 2}));
    ASSERT_TRUE(begin() && begin());
    queue.message_sent();
    queue.message_sent();
    EXPECT_EQ(completed(), Ids{2});
    EXPECT_TRUE(queue.empty());
}

TEST_F(SendQueueWorks, HoldsAFencedOneUntilAllReadsBeforeItHaveEnded) {
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(post_read(2, Operation::fetch_and_add));
    ASSERT_TRUE(post({.id = 3, .fenced = true}));
    ASSERT_TRUE(post_send(4));
    ASSERT_TRUE(begin() && begin());
    EXPECT_EQ(begin(), std::nullopt);
    answer();
    EXPECT_EQ(begin(), std::nullopt) << "one is still under way";
    answer();
    EXPECT_EQ(begin(), Opcode::send);
    EXPECT_EQ(begin(), Opcode::send) << "who comes behind a fence is past it too";
}

TEST_F(SendQueueWorks, HoldsFencedLocalWorkToo) {
    auto allocated = *table.allocate(us.domain, 1);
    FastRegistration registration{.tag = allocated, .pieces = {Buffer(memory)}};
    ASSERT_TRUE(post_read(1));
    ASSERT_TRUE(post({.id = 2,
                      .operation = Operation::fast_register,
                      .fenced = true,
                      .registration = &registration}));
    ASSERT_TRUE(begin());
    EXPECT_EQ(begin(), std::nullopt);
    EXPECT_FALSE(table.resolve(allocated, 0, 1, Rights::local_read, us));
    answer();
    EXPECT_EQ(begin(), std::nullopt);
    EXPECT_TRUE(table.resolve(allocated, 0, 1, Rights::local_read, us));
}

TEST_F(SendQueueWorks, StallsAtTheAgreedNumberOfReads) {
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(post_read(id));
    ASSERT_TRUE(post_send(4));
    ASSERT_TRUE(begin() && begin());
    EXPECT_EQ(begin(), std::nullopt) << "also what comes behind it: order is kept";
    queue.message_sent();
    EXPECT_EQ(begin(), std::nullopt) << "that the request is sent makes no room";
    answer();
    EXPECT_EQ(begin(), Opcode::read_request);
    EXPECT_EQ(begin(), Opcode::send);
}

TEST_F(SendQueueWorks, DoesLocalWorkInItsTurn) {
    auto window = *table.add_window(us.domain, WindowKind::by_queue_pair);
    WindowBinding binding{.window = window,
                          .region = tag,
                          .size = 8,
                          .rights = Rights::remote_read,
                          .addressing = Addressing::from_zero};
    ASSERT_TRUE(post_send(1));
    ASSERT_TRUE(post({.id = 2, .operation = Operation::bind_window, .binding = &binding}));
    ASSERT_TRUE(post_send(3));
    ASSERT_TRUE(post({.id = 4, .operation = Operation::local_invalidate, .invalidate = window}));
    EXPECT_EQ(begin(), Opcode::send);
    EXPECT_FALSE(table.resolve(window, 0, 8, Rights::remote_read, us));
    EXPECT_EQ(begin(), Opcode::send);
    EXPECT_TRUE(table.resolve(window, 0, 8, Rights::remote_read, us));
    EXPECT_EQ(begin(), std::nullopt);
    EXPECT_FALSE(table.resolve(window, 0, 8, Rights::remote_read, us));
    EXPECT_EQ(completed(), Ids{}) << "done, and yet not before what was posted before";
    queue.message_sent();
    EXPECT_EQ(completed(), (Ids{1, 2}));
    queue.message_sent();
    EXPECT_EQ(completed(), (Ids{3, 4}));
}

TEST_F(SendQueueWorks, TakesACopyOfWhatLocalWorkPointsTo) {
    auto allocated = *table.allocate(us.domain, 1);
    {
        FastRegistration registration{.tag = allocated, .pieces = {Buffer(memory)}};
        ASSERT_TRUE(post({.operation = Operation::fast_register, .registration = &registration}));
        registration.tag = {};
    }
    EXPECT_EQ(begin(), std::nullopt);
    EXPECT_EQ(completions().at(0).status, Status::success);
    EXPECT_TRUE(table.resolve(allocated, 0, 1, Rights::local_read, us));
}

TEST_F(SendQueueWorks, WaitsToRegisterWhereBytesOfTheFormerMemoryAreLent) {
    auto allocated = *table.allocate(us.domain, 1);
    FastRegistration registration{
        .tag = allocated, .pieces = {Buffer(memory)}, .addressing = Addressing::from_zero};
    ASSERT_TRUE(table.fast_register(registration, us));
    auto held = table.hold(allocated);
    ASSERT_TRUE(table.invalidate(allocated, us));
    ASSERT_TRUE(
        post({.id = 1, .operation = Operation::fast_register, .registration = &registration}));
    EXPECT_EQ(begin(), std::nullopt);
    EXPECT_FALSE(queue.has_failed());
    EXPECT_EQ(completed(), Ids{});
    table.release(held);
    EXPECT_EQ(begin(), std::nullopt);
    EXPECT_EQ(completions().at(0).status, Status::success);
}

TEST_F(SendQueueWorks, InvalidatesTheSinkOfAReadOnceItIsFilled) {
    auto allocated = *table.allocate(us.domain, 1);
    FastRegistration registration{.tag = allocated,
                                  .pieces = {Buffer(memory)},
                                  .rights = Rights::local_write,
                                  .addressing = Addressing::from_zero};
    ASSERT_TRUE(table.fast_register(registration, us));
    std::array local{LocalMemory{0, 8, allocated}};
    ASSERT_TRUE(post({.operation = Operation::read_invalidate, .local = local}));
    ASSERT_TRUE(begin());
    EXPECT_TRUE(table.resolve(allocated, 0, 8, Rights::local_write, us));
    answer();
    EXPECT_FALSE(table.resolve(allocated, 0, 8, Rights::local_write, us));
    EXPECT_EQ(completions().at(0).status, Status::success);
}

TEST_F(SendQueueWorks, BeginsNoMoreMessagesThanItCanDescribe) {
    constexpr std::uint32_t many = 2 * limits::messages_under_way;
    SendQueue large({many, 1, 0}, table, us);
    for (std::uint64_t id = 0; id < many; ++id) ASSERT_TRUE(large.post({.id = id}, terms));
    std::size_t begun = 0;
    while (large.next_message(reads)) ++begun;
    EXPECT_EQ(begun, limits::messages_under_way);
    large.message_sent();
    EXPECT_TRUE(large.next_message(reads));
    EXPECT_FALSE(large.next_message(reads));
}

TEST_F(SendQueueWorks, UsesItsPlacesAgainAndAgain) {
    std::uint64_t posted = 0, begun = 0, ended = 0;
    std::size_t lent = 0;
    auto seed = 12345u;
    auto draw = [&](unsigned below) {
        return (seed = seed * 1664525 + 1013904223) / 65536 % below;
    };
    for (int step = 0; step < 20'000; ++step) {
        switch (draw(4)) {
            case 0: {
                bool read = draw(3) == 0;
                if (read ? post_read(posted) : post_send(posted, draw(20))) ++posted;
                break;
            }
            case 1:
                if (begin()) ++lent, ++begun;
                break;
            case 2:
                if (lent > 0) queue.message_sent(), --lent;
                break;
            default:
                if (!reads.empty()) answer();
        }
        for (auto& each : completions()) {
            ASSERT_EQ(each.id, ended++);
            ASSERT_EQ(each.status, Status::success);
            ASSERT_LT(each.id, begun);
        }
    }
    EXPECT_GT(ended, 100 * capacity) << "else it proves little";
}

}  // namespace
}  // namespace weft::verbs
