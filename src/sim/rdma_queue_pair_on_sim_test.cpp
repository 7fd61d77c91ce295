// SPDX-License-Identifier: Apache-2.0
// Queue pairs in all their states, two and more of them, over simulated networks.
#include <chrono>

#include "iwarp/limits.hpp"
#include "support/rdma_fixture.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::RdmaSide;
using test::Told;
using verbs::AsyncEvent;
using verbs::Completion;
using verbs::Operation;
using verbs::QueuePairState;
using verbs::SendRequest;
using verbs::Status;

class RdmaQueuePair : public test::RdmaTest {
protected:
    void write_word(RdmaSide& side, std::size_t at, std::uint64_t value) {
        std::memcpy(side.memory.data() + at, &value, sizeof value);
    }
    std::uint64_t word(const RdmaSide& side, std::size_t at) {
        std::uint64_t value = 0;
        std::memcpy(&value, side.memory.data() + at, sizeof value);
        return value;
    }

    RdmaSide a{*here}, b{*there};
};

TEST_F(RdmaQueuePair, HasANumberOfItsOwn) {
    RdmaSide another(*here);
    EXPECT_NE(a.queue_pair->number(), another.queue_pair->number());
    EXPECT_NE(a.queue_pair->number(), 0u);
}

TEST_F(RdmaQueuePair, TakesReceivesButNoSendsBeforeItIsConnected) {
    EXPECT_EQ(a.state(), QueuePairState::idle);
    EXPECT_EQ(a.send(1).error().code, Code::disconnected);
    EXPECT_TRUE(a.receive(2));
    EXPECT_EQ(a.ends(), "");
}

TEST_F(RdmaQueuePair, SaysBeforehandWhetherItWouldTakeABatch) {
    a.make_queue_pair({.sends = 2});
    std::array local{a.region->local(0, 8), a.region->local(8, 8)};
    std::array<SendRequest, 3> batch{};
    for (auto& request : batch) request.local = std::span(local).first(1);
    EXPECT_EQ(a.queue_pair->check(batch).error().code, Code::disconnected);
    join(a, b);
    auto two = std::span(batch).first(2);
    EXPECT_TRUE(a.queue_pair->check(two));
    EXPECT_EQ(a.queue_pair->check(batch).error(), (Error{.code = Code::exhausted, .where = 2}));
    batch[1] = {.operation = Operation::read, .local = local};
    EXPECT_EQ(a.queue_pair->check(two).error().code, Code::out_of_range);
    EXPECT_TRUE(a.queue_pair->check(two.first(1)));
    a.queue_pair->fail();
    EXPECT_TRUE(a.queue_pair->check(two.first(1))) << "taken, to be flushed";
}

TEST_F(RdmaQueuePair, DoesEveryOperation) {
    join(a, b);
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(b.receive(id));
    write_word(a, 0, 77);
    write_word(b, 512, 5);
    ASSERT_TRUE(a.send(1));
    ASSERT_TRUE(a.act(2, Operation::write, b.region->remote(256)));
    run();
    EXPECT_EQ(word(b, 1024), 77u);
    EXPECT_EQ(word(b, 256), 77u);
    ASSERT_TRUE(a.act(3, Operation::read, b.region->remote(512)));
    run();
    EXPECT_EQ(word(a, 0), 5u);
    std::array local{a.region->local(0, 8)};
    ASSERT_TRUE(a.queue_pair->post(SendRequest{.id = 4,
                                               .operation = Operation::fetch_and_add,
                                               .local = local,
                                               .remote = b.region->remote(512),
                                               .operand = 10}));
    run();
    EXPECT_EQ(word(a, 0), 5u);
    EXPECT_EQ(word(b, 512), 15u);
    ASSERT_TRUE(a.queue_pair->post(SendRequest{.id = 5,
                                               .operation = Operation::compare_and_swap,
                                               .local = local,
                                               .remote = b.region->remote(512),
                                               .operand = 1,
                                               .compare = 15}));
    ASSERT_TRUE(a.queue_pair->post(SendRequest{.id = 6,
                                               .operation = Operation::write_immediate,
                                               .solicited = true,
                                               .local = local,
                                               .remote = b.region->remote(768),
                                               .immediate = 0xcafe}));
    run();
    EXPECT_EQ(word(b, 512), 1u);
    EXPECT_EQ(a.ends(), "1:success 2:success 3:success 4:success 5:success 6:success");
    auto received = b.poll();
    ASSERT_EQ(received.size(), 2u);
    EXPECT_EQ(received[0].what, verbs::Ended::received);
    EXPECT_EQ(received[0].bytes, 8u);
    EXPECT_EQ(received[1].what, verbs::Ended::received_immediate);
    EXPECT_EQ(received[1].immediate, 0xcafeu);
    EXPECT_EQ(received[1].bytes, 8u);
    EXPECT_TRUE(received[1].solicited);
    EXPECT_EQ(received[1].queue_pair, b.queue_pair->number());
}

TEST_F(RdmaQueuePair, InvalidatesThePeersTagWithASend) {
    join(a, b);
    auto window = std::move(*b.domain->allocate_window(verbs::WindowKind::by_queue_pair));
    verbs::WindowBinding binding{.window = window->tag(),
                                 .region = b.region->tag(),
                                 .size = 8,
                                 .rights = Rights::remote_write};
    ASSERT_TRUE(b.queue_pair->post(
        SendRequest{.id = 1, .operation = Operation::bind_window, .binding = &binding}));
    ASSERT_TRUE(b.receive(2));
    run();
    ASSERT_EQ(b.ends(), "1:success");
    auto tag = window->tag();
    ASSERT_TRUE(a.act(1, Operation::write, {0, tag}));
    ASSERT_TRUE(a.queue_pair->post(
        SendRequest{.id = 2, .operation = Operation::send_invalidate, .invalidate = tag}));
    run();
    auto received = b.poll();
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].invalidated, tag);
    ASSERT_TRUE(a.act(3, Operation::write, {0, tag}));
    run();
    EXPECT_EQ(count(events_there, AsyncEvent::Kind::access_violation), 1u);
}

TEST_F(RdmaQueuePair, FlushesAllInTheOrderOfPostingWhenItFails) {
    join(a, b);
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(a.receive(id));
    ASSERT_TRUE(a.act(4, Operation::read, b.region->remote()));
    ASSERT_TRUE(a.send(5));
    a.queue_pair->fail();
    EXPECT_EQ(a.state(), QueuePairState::terminating);
    auto ended = a.poll();
    ASSERT_EQ(ended.size(), 5u);
    for (auto& each : ended) {
        EXPECT_EQ(each.status, Status::flushed);
        EXPECT_EQ(each.queue_pair, a.queue_pair->number());
    }
    EXPECT_EQ(ended[0].id, 4u);
    EXPECT_EQ(ended[0].operation, Operation::read);
    EXPECT_EQ(ended[0].what, verbs::Ended::sent);
    EXPECT_EQ(ended[1].id, 5u);
    EXPECT_EQ(ended[2].id, 1u);
    EXPECT_EQ(ended[4].id, 3u);
    EXPECT_EQ(ended[4].what, verbs::Ended::received);
    run();
    EXPECT_EQ(a.state(), QueuePairState::failed);
    EXPECT_EQ(b.state(), QueuePairState::failed);
    EXPECT_EQ(a.record.told, (Told{"established", "disconnected"}));
    EXPECT_EQ(b.record.told, (Told{"established", "disconnected"}));
    EXPECT_EQ(count(events_here, AsyncEvent::Kind::queue_pair_failed), 1u);
    EXPECT_EQ(count(events_there, AsyncEvent::Kind::queue_pair_failed), 1u);
}

TEST_F(RdmaQueuePair, FlushesAtOnceWhatIsPostedAfterTheEnd) {
    join(a, b);
    a.queue_pair->fail();  // terminating, then failed
    for (int round = 0; round < 2; ++round) {
        std::array local{a.region->local(0, 8)};
        ASSERT_TRUE(a.queue_pair->post(SendRequest{.id = 7,
                                                   .operation = Operation::write,
                                                   .signalled = false,
                                                   .local = local,
                                                   .remote = b.region->remote()}));
        ASSERT_TRUE(a.receive(8));
        auto ended = a.poll();
        ASSERT_EQ(ended.size(), 2u);
        EXPECT_EQ(ended[0].id, 7u);
        EXPECT_EQ(ended[0].operation, Operation::write);
        EXPECT_EQ(ended[0].status, Status::flushed);
        EXPECT_EQ(ended[0].queue_pair, a.queue_pair->number());
        EXPECT_EQ(ended[1].status, Status::flushed);
        EXPECT_EQ(ended[1].what, verbs::Ended::received);
        std::array too_many(std::array<verbs::LocalMemory, 5>{});
        EXPECT_FALSE(a.queue_pair->post(SendRequest{.local = too_many})) << "nonsense is refused";
        run();
    }
    EXPECT_EQ(a.state(), QueuePairState::failed);
}

TEST_F(RdmaQueuePair, LeavesAloneWhatIsStillOnItsWayWhenMoreIsPosted) {
    world.network().set_options({.kept_lent_percent = 100});
    a.make_queue_pair({.sends = 4, .inline_bytes = 64});
    join(a, b);
    for (std::uint64_t id = 0; id < 4; ++id) ASSERT_TRUE(b.receive(id));
    std::string words = "these bytes are lent until the network has them";
    std::array local{verbs::LocalMemory{reinterpret_cast<std::uintptr_t>(words.data()),
                                        static_cast<std::uint32_t>(words.size()),
                                        {}}};
    for (std::uint64_t id = 0; id < 4; ++id)
        ASSERT_TRUE(a.queue_pair->post(SendRequest{.id = id, .inlined = true, .local = local}));
    for (int i = 0; i < 6; ++i) world.step();
    a.connection->disconnect();
    words.assign(words.size(), '#');
    bool refused = false;
    for (std::uint64_t id = 0; id < 8; ++id)
        refused |= !a.queue_pair->post(SendRequest{.id = id, .inlined = true, .local = local});
    EXPECT_TRUE(refused) << "what is on its way has its place in the queue";
    run();  // the simulated network checks that lent bytes stay as they are
    for (auto each : b.memory) EXPECT_NE(each, std::byte{'#'});
}

TEST_F(RdmaQueuePair, CanBeUsedAgainAfterEachKindOfEnd) {
    for (int kind = 0; kind < 5; ++kind) {
        a.record.told.clear();
        RdmaSide other(*there);
        join(a, other);
        ASSERT_TRUE(other.receive(1));
        ASSERT_TRUE(a.send(2));
        run();
        EXPECT_EQ(a.ends(), "2:success");
        EXPECT_EQ(other.ends(), "1:success");
        EXPECT_EQ(a.queue_pair->reset().error().code, Code::exhausted) << "it is running";
        if (kind == 0) a.connection->disconnect();
        if (kind == 1) a.connection.reset();
        if (kind == 2) a.queue_pair->fail();
        if (kind == 3) other.connection.reset();
        if (kind == 4) a.queue_pair->fail(), a.connection.reset();
        run();
        EXPECT_EQ(a.state(), QueuePairState::failed) << kind;
        ASSERT_TRUE(a.queue_pair->reset()) << kind;
        EXPECT_EQ(a.state(), QueuePairState::idle);
    }
}

TEST_F(RdmaQueuePair, KeepsItsCompletionsWhenReset) {
    join(a, b);
    ASSERT_TRUE(a.receive(1));
    b.connection.reset();
    run();
    ASSERT_TRUE(a.queue_pair->reset());
    EXPECT_EQ(a.ends(), "1:flushed");
}

TEST_F(RdmaQueuePair, NamesTheRightReasonAlsoTheSecondTime) {
    join(a, b);
    ASSERT_TRUE(b.act(1, Operation::write, {0, SteeringTag{0x12345678}}));
    run();
    EXPECT_EQ(count(events_here, AsyncEvent::Kind::access_violation), 1u);
    ASSERT_TRUE(a.queue_pair->reset());
    a.record.told.clear();
    RdmaSide other(*there);
    join(a, other);
    world.network().reset(world.network().links().at(0));
    run();
    EXPECT_EQ(count(events_here, AsyncEvent::Kind::access_violation), 1u);
    EXPECT_EQ(count(events_here, AsyncEvent::Kind::queue_pair_failed), 1u);
}

TEST_F(RdmaQueuePair, MayBeDestroyedWhileConnectedWithWorkUnderWay) {
    join(a, b);
    ASSERT_TRUE(b.receive(1));
    for (std::uint64_t id = 1; id <= 20; ++id) ASSERT_TRUE(a.send(id, 4096 / 8));
    for (int i = 0; i < 10; ++i) world.step();
    a.poll();
    a.queue_pair.reset();
    run();
    EXPECT_EQ(a.record.told, (Told{"established", "disconnected"}));
    EXPECT_EQ(b.record.told, (Told{"established", "disconnected"}));
}

TEST_F(RdmaQueuePair, FailsWhenItsCompletionQueueOverflowsAndHarmsNoOther) {
    RdmaSide c{*here}, d{*there};
    join(c, d);
    auto tiny = *here->make_completion_queue(2, {});
    a.make_queue_pair({.send_completions = tiny});
    join(a, b);
    for (std::uint64_t id = 1; id <= 4; ++id)
        ASSERT_TRUE(a.act(id, Operation::write, b.region->remote()));
    run();
    EXPECT_EQ(a.state(), QueuePairState::failed);
    EXPECT_EQ(count(events_here, AsyncEvent::Kind::completions_overflowed), 1u);
    EXPECT_EQ(count(events_here, AsyncEvent::Kind::queue_pair_failed), 1u);
    EXPECT_EQ(RdmaSide::poll(*tiny).size(), 2u);
    ASSERT_TRUE(d.receive(1));
    ASSERT_TRUE(c.send(1));
    run();
    EXPECT_EQ(d.ends(), "1:success");
}

TEST_F(RdmaQueuePair, SharesACompletionQueueWithManyOthers) {
    constexpr std::size_t many = 20;
    int notified = 0;
    auto shared = *there->make_completion_queue(256, [&] { ++notified; });
    std::vector<std::unique_ptr<RdmaSide>> from, to;
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < many; ++i) {
        from.push_back(std::make_unique<RdmaSide>(*here));
        to.push_back(std::make_unique<RdmaSide>(*there));
        to[i]->make_queue_pair({.send_completions = shared, .receive_completions = shared});
        join(*from[i], *to[i]);
        ASSERT_TRUE(to[i]->receive(i));
        numbers.push_back(to[i]->queue_pair->number());
    }
    shared->arm(verbs::CompletionQueue::Wanted::any);
    for (auto& each : from) ASSERT_TRUE(each->send(1));
    run();
    EXPECT_EQ(notified, 1);
    auto all = RdmaSide::poll(*shared);
    ASSERT_EQ(all.size(), many);
    for (auto& each : all) {
        EXPECT_EQ(each.status, Status::success);
        EXPECT_EQ(each.queue_pair, numbers[each.id]) << "each says whose it is";
    }
}

TEST_F(RdmaQueuePair, WaitsForAReceiveAndGivesUpInTheEnd) {
    join(a, b);
    ASSERT_TRUE(a.send(1));
    world.run_for(iwarp::limits::receive_patience * 3 / 4);
    ASSERT_TRUE(b.receive(1));
    run();
    EXPECT_EQ(b.ends(), "1:success");
    ASSERT_TRUE(a.send(2));
    run();
    EXPECT_EQ(b.state(), QueuePairState::failed);
    EXPECT_EQ(count(events_there, AsyncEvent::Kind::request_violation), 1u);
}

TEST_F(RdmaQueuePair, ReportsAMessageThatIsLongerThanItsReceiveOnBothSides) {
    join(a, b);
    ASSERT_TRUE(b.receive(1, 16));
    ASSERT_TRUE(b.receive(2, 64));
    ASSERT_TRUE(a.act(5, Operation::read, b.region->remote()));
    ASSERT_TRUE(a.send(6, 17));
    ASSERT_TRUE(a.act(7, Operation::read, b.region->remote()));
    run();
    EXPECT_EQ(b.ends(), "1:local_length 2:flushed");
    EXPECT_EQ(a.state(), QueuePairState::failed);
    auto ended = a.poll();
    ASSERT_EQ(ended.size(), 3u);
    EXPECT_EQ(ended.back().id, 7u);
    EXPECT_EQ(ended.back().status, Status::remote_invalid) << "the oldest that was not done";
    for (auto byte : std::span(b.memory).subspan(1024, 64)) EXPECT_EQ(byte, std::byte{});
}

TEST_F(RdmaQueuePair, ReportsAReceiveWhoseMemoryIsGone) {
    join(a, b);
    ASSERT_TRUE(b.receive(1));
    b.region.reset();
    ASSERT_TRUE(a.send(2));
    run();
    EXPECT_EQ(b.ends(), "1:local_protection");
    EXPECT_EQ(b.state(), QueuePairState::failed);
    EXPECT_EQ(count(events_there, AsyncEvent::Kind::queue_pair_failed), 1u) << "our own fault";
}

TEST_F(RdmaQueuePair, DrawsFromASharedQueueInItsOwnDomain) {
    auto shared = *there->make_shared_receive_queue(8, 1);
    RdmaSide c{*here}, d{*there};
    for (auto* side : {&b, &d}) side->make_queue_pair({.shared_receives = shared});
    join(a, b);
    join(c, d);
    EXPECT_EQ(b.receive(1).error().code, Code::unsupported);
    std::array of_b{b.region->local(1024, 64)};
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(shared->post({id, of_b}));
    ASSERT_TRUE(a.send(1));
    run();
    EXPECT_EQ(b.ends(), "1:success");
    ASSERT_TRUE(c.send(1));
    run();
    EXPECT_EQ(d.ends(), "2:local_protection") << "the memory is not of its domain";
    EXPECT_EQ(d.state(), QueuePairState::failed);
    EXPECT_EQ(count(events_there, AsyncEvent::Kind::last_receive_reached), 1u);
    EXPECT_EQ(b.state(), QueuePairState::running);
    EXPECT_EQ(shared->posted(), 1u);
    (void)d.send(9);
    run();
    EXPECT_EQ(count(events_there, AsyncEvent::Kind::last_receive_reached), 1u) << "told once";
}

TEST_F(RdmaQueuePair, ServesThoseWhoWaitForASharedReceiveInTurnAndSkipsTheFailed) {
    auto shared = *there->make_shared_receive_queue(8, 1);
    std::vector<std::unique_ptr<RdmaSide>> from, to;
    for (std::size_t i = 0; i < 4; ++i) {
        from.push_back(std::make_unique<RdmaSide>(*here));
        to.push_back(std::make_unique<RdmaSide>(*there, b.domain));
        to[i]->make_queue_pair({.shared_receives = shared});
        join(*from[i], *to[i]);
    }
    for (auto& each : from) {  // all of them wait, in this order
        ASSERT_TRUE(each->send(1));
        world.run_for(100ms);
    }
    to[0]->queue_pair->fail();
    to[2]->queue_pair.reset();
    std::array local{b.region->local(0, 64)};
    ASSERT_TRUE(shared->post({7, local}));
    world.run_for(100ms);
    EXPECT_EQ(to[1]->ends(), "7:success");
    EXPECT_EQ(to[3]->ends(), "");
    ASSERT_TRUE(shared->post({8, local}));
    world.run_for(100ms);
    EXPECT_EQ(to[3]->ends(), "8:success");
}

TEST_F(RdmaQueuePair, GivesBackTheSharedReceiveItWasFillingWhenItFails) {
    auto shared = *there->make_shared_receive_queue(1, 1);
    b.make_queue_pair({.shared_receives = shared});
    std::vector<std::byte> much(1 << 20);
    auto from = std::move(*a.domain->register_memory(much, test::every_right));
    auto into = std::move(*b.domain->register_memory(much, test::every_right));
    join(a, b);
    std::array target{into->local(0, 1 << 20)}, source{from->local(0, 1 << 20)};
    ASSERT_TRUE(shared->post({1, target}));
    ASSERT_TRUE(a.queue_pair->post(SendRequest{.id = 1, .local = source}));
    run_until([&] { return shared->posted() == 0; });
    EXPECT_EQ(shared->post({2, target}).error().code, Code::exhausted);
    b.queue_pair->fail();
    EXPECT_EQ(b.ends(), "1:flushed");
    EXPECT_TRUE(shared->post({2, target}));
    run();
}

TEST_F(RdmaQueuePair, RegistersAnewUnderATagAsSoonAsTheOldMemoryIsBack) {
    join(a, b);
    auto allocated = std::move(*a.domain->allocate_tag(1));
    std::vector<std::byte> first(60'000, std::byte{1}), second(60'000, std::byte{2}), into(60'000);
    auto target = std::move(*b.domain->register_memory(into, test::every_right));
    for (auto* memory : {&first, &second, &first, &second}) {
        verbs::FastRegistration registration{.tag = allocated->tag(),
                                             .pieces = {Buffer(*memory)},
                                             .rights = test::every_right,
                                             .addressing = Addressing::from_zero};
        std::array local{verbs::LocalMemory{0, 60'000, allocated->tag()}};
        ASSERT_TRUE(a.queue_pair->post(SendRequest{
            .id = 1, .operation = Operation::fast_register, .registration = &registration}));
        ASSERT_TRUE(a.queue_pair->post(SendRequest{
            .id = 2, .operation = Operation::write, .local = local, .remote = target->remote()}));
        ASSERT_TRUE(a.queue_pair->post(SendRequest{
            .id = 3, .operation = Operation::local_invalidate, .invalidate = allocated->tag()}));
    }
    run();
    auto ended = a.poll();
    ASSERT_EQ(ended.size(), 12u);
    for (auto& each : ended) EXPECT_EQ(each.status, Status::success);
    EXPECT_EQ(into, second);
}

TEST_F(RdmaQueuePair, IsNotMadeOfWhatCannotBe) {
    auto refused = [&](verbs::QueuePairOptions options) {
        return here->make_queue_pair(options).error();
    };
    verbs::QueuePairOptions good{.domain = a.domain,
                                 .send_completions = a.completions,
                                 .receive_completions = a.completions};
    auto bad = good;
    bad.domain.reset();
    EXPECT_EQ(refused(bad).code, Code::malformed);
    bad = good, bad.send_completions.reset();
    EXPECT_EQ(refused(bad).code, Code::malformed);
    bad = good, bad.sends = 0;
    EXPECT_EQ(refused(bad).code, Code::out_of_range);
    bad = good, bad.sends = 32'769;
    EXPECT_EQ(refused(bad), (Error{.code = Code::out_of_range, .where = 32'768}));
    bad = good, bad.pieces = 17;
    EXPECT_EQ(refused(bad), (Error{.code = Code::out_of_range, .where = 16}));
    bad = good, bad.inline_bytes = 1025;
    EXPECT_EQ(refused(bad), (Error{.code = Code::out_of_range, .where = 1024}));
    bad = good, bad.domain = b.domain;
    EXPECT_EQ(refused(bad).code, Code::malformed) << "that domain is another device's";
    bad = good, bad.receive_completions = b.completions;
    EXPECT_EQ(refused(bad).code, Code::malformed) << "so is that queue";
    bad = good, bad.shared_receives = *there->make_shared_receive_queue(1, 1);
    EXPECT_EQ(refused(bad).code, Code::malformed);
    EXPECT_FALSE(here->make_completion_queue(0, {}));
    EXPECT_FALSE(here->make_completion_queue(3'276'801, {}));
    EXPECT_FALSE(here->make_shared_receive_queue(327'681, 1));
    EXPECT_FALSE(here->make_shared_receive_queue(1, 17));
}

}  // namespace
}  // namespace weft::sim
