// SPDX-License-Identifier: Apache-2.0
// A host attached to a volume: its bytes go straight between its memory and who keeps them, and
// come through when the controller does not.
#include <set>

#include "support/host_fixture.hpp"

namespace weft::sim {
namespace {

using node::HostNode;
using test::HostController;
using test::HostTest;
using test::TestRequest;

INSTANTIATE_TEST_SUITE_P(Over, HostTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "Rdma" : "Tcp"; });

/// Cases of the failure table, docs/failures.md.
using FailureTableHosts = HostTest;
INSTANTIATE_TEST_SUITE_P(Over, FailureTableHosts, testing::Bool(),
                         [](const auto& each) { return each.param ? "Rdma" : "Tcp"; });

TEST_P(HostTest, WritesAndReadsItsVolume) {
    attach();
    ASSERT_EQ(*opened, std::nullopt);
    EXPECT_EQ(host->device().traits().size, size);
    EXPECT_EQ(host->device().traits().minimum_block, 4096u);
    EXPECT_EQ(host->volume(), HostController::volume);
    EXPECT_EQ(text_of(std::as_bytes(std::span(controller.last_hello.name)).first(4)), "desk");

    TestRequest write(BlockOperation::write, 8192, 12288), flush(BlockOperation::flush, 0, 0);
    fill(write, 3);
    carry_out(write);
    ASSERT_TRUE(write.succeeded());
    EXPECT_TRUE(holds(write));
    carry_out(flush);
    ASSERT_TRUE(flush.succeeded());
    EXPECT_EQ(controller.flushes, 1u);
    EXPECT_FALSE(controller.transfers[0].durable);

    TestRequest read(BlockOperation::read, 8192, 12288);
    carry_out(read);
    ASSERT_TRUE(read.succeeded());
    EXPECT_EQ(read.octets, write.octets);
    TestRequest durable(BlockOperation::write, 0, 4096);
    durable.durable = true;
    carry_out(durable);
    EXPECT_TRUE(controller.transfers.back().durable);
    EXPECT_EQ(controller.repeats, 0u);
}

TEST_P(HostTest, CutsWhatIsLongAndGathersWhatIsScattered) {
    attach();
    TestRequest write(BlockOperation::write, 4096, (3 << 20) + 8192);
    fill(write, 9);
    carry_out(write);
    EXPECT_TRUE(write.succeeded());
    EXPECT_TRUE(holds(write));
    EXPECT_EQ(controller.transfers.size(), 4u);
    for (auto& each : controller.transfers) EXPECT_LE(each.length, 1u << 20);

    // 3000 pieces of 1000 octets or so: more than one tag can have.
    TestRequest read(BlockOperation::read, 4096, 3'000'320);
    read.length = 3'000'320 / 4096 * 4096;
    std::vector<Buffer> pieces;
    for (std::size_t at = 0; at < read.length;) {
        auto part = std::min<std::size_t>(1000 + at % 7, read.length - at);
        pieces.push_back(Buffer(read.octets).subspan(at, part));
        at += part;
    }
    read.memory = pieces;
    carry_out(read);
    EXPECT_TRUE(read.succeeded());
    EXPECT_TRUE(std::ranges::equal(std::span(read.octets).first(read.length),
                                   std::span(write.octets).first(read.length)));
}

TEST_P(HostTest, RefusesWhatEveryDeviceRefuses) {
    attach();
    TestRequest beyond(BlockOperation::read, size, 4096), odd(BlockOperation::write, 512, 4096),
        trim(BlockOperation::trim, 0, 4096), empty(BlockOperation::read, 0, 0);
    for (auto* each : {&beyond, &odd, &trim, &empty}) submit(*each);
    EXPECT_EQ(beyond.failure(), Code::out_of_range);
    EXPECT_EQ(odd.failure(), Code::malformed);
    EXPECT_EQ(trim.failure(), Code::unsupported);
    EXPECT_TRUE(empty.succeeded());
    EXPECT_TRUE(controller.transfers.empty());
}

TEST_P(FailureTableHosts, Case15_ABoxWritesLateIntoAHostsMemory_ItFindsNothingThere) {
    attach();
    TestRequest read(BlockOperation::read, 0, 4096);
    carry_out(read);
    ASSERT_TRUE(read.succeeded());
    // A box that still knows the tag finds nothing there, and nothing in what comes after it.
    const auto old = controller.transfers.back().tag;
    TestRequest second(BlockOperation::read, 0, 4096);
    carry_out(second);
    const auto next = controller.transfers.back().tag;
    EXPECT_NE(old, next);
    for (auto tag : {old, next}) {
        class Late final : public raid::PeerTransfer {
        public:
            std::optional<Result<void>> outcome;
            void completed(Result<void> how) override { outcome = how; }
        } late;
        late.peer = {.party = raid::the_host,
                     .tag = tag,
                     .base = 0,
                     .identity = wire::identity_of(controller.session())};
        std::vector<std::byte> bytes(4096, std::byte{0xff});
        late.memory = bytes;
        controller.array_links().send(late);
        run_until([&] { return late.outcome.has_value(); });
        EXPECT_EQ(late.outcome->error().code, Code::access_denied);
    }
    EXPECT_EQ(read.octets[0], std::byte{0});
    EXPECT_EQ(second.octets[0], std::byte{0});
    TestRequest third(BlockOperation::read, 0, 4096);
    carry_out(third);
    EXPECT_TRUE(third.succeeded()) << "over another connection";
}

TEST_P(FailureTableHosts, Case15_ABoxIsCountedOut_ItIsCutOffBeforeTheRequestEnds) {
    attach();
    const auto self = wire::host_end(controller.session());
    const auto box = controller.box();
    TestRequest first(BlockOperation::read, 0, 4096), second(BlockOperation::read, 0, 4096);
    carry_out(first);
    ASSERT_EQ(host->links().links(), 1u);
    controller.news = {{.number = 1, .box = {{9}}, .may_come = false},
                       {.number = 2, .box = box.identity, .may_come = false}};
    std::size_t links_at_the_end = 9;
    second.then = [&] { links_at_the_end = host->links().links(); };
    carry_out(second);
    EXPECT_TRUE(second.succeeded());
    EXPECT_EQ(links_at_the_end, 0u);
    EXPECT_TRUE(host->links().is_barred(self, box));

    // What the controller has told before is no news; a box that is let in is heard of even where
    // nothing else can be said.
    TestRequest third(BlockOperation::read, 0, 4096);
    submit(third);
    run_until([&] { return controller.transfers.size() > 3; });
    EXPECT_EQ(controller.transfers.back().heard, 2u);
    EXPECT_FALSE(third.done()) << "nobody can reach it";
    controller.news = {{.number = 3, .box = box.identity, .may_come = true}};
    run_until([&] { return third.done(); });
    EXPECT_TRUE(third.succeeded());
    EXPECT_FALSE(host->links().is_barred(self, box));
}

TEST_P(HostTest, RepeatsWhatWasNotAnsweredWhenTheControllerComesBack) {
    attach();
    controller.swallow = true;
    std::vector<std::unique_ptr<TestRequest>> writes;
    for (std::uint8_t i = 0; i < 10; ++i) {
        writes.push_back(std::make_unique<TestRequest>(BlockOperation::write, i * 65536u, 65536));
        fill(*writes.back(), i);
        submit(*writes.back());
    }
    run_until([&] { return controller.seen.size() == 10; });
    const auto before = controller.session();
    controller.restart();
    controller.swallow = false;
    TestRequest read(BlockOperation::read, 1 << 20, 4096);
    submit(read);
    run_until([&] { return read.done(); });
    for (auto& write : writes) run_until([&] { return write->done(); });
    for (auto& write : writes) {
        EXPECT_TRUE(write->succeeded());
        EXPECT_TRUE(holds(*write));
    }
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(controller.last_hello.previous, before);
    EXPECT_GE(controller.repeats, 10u) << "and the read, if the loss was not known yet";
    for (auto& [number, times] : controller.seen) EXPECT_EQ(times, number <= 10 ? 2 : 1) << number;
    EXPECT_EQ(news.size(), 2u);
}

TEST_P(HostTest, LosesNothingWhenConnectionsBreakUnderIt) {
    attach();
    std::vector<std::byte> shadow(size);
    for (int round = 0; round < 30; ++round) {
        std::vector<std::unique_ptr<TestRequest>> requests;
        for (std::uint64_t i = 0; i < 12; ++i) {
            const bool reads = world.random() % 3 == 0;
            const auto length = (1 + world.random() % 40) * 4096;
            const auto offset = i * (size / 12) / 4096 * 4096 + world.random() % 100 * 4096;
            requests.push_back(std::make_unique<TestRequest>(
                reads ? BlockOperation::read : BlockOperation::write, offset, length));
            auto& request = *requests.back();
            if (!reads) {
                fill(request, static_cast<std::uint8_t>(world.random()));
                std::ranges::copy(request.octets, shadow.begin() + offset);
            }
            submit(request);
        }
        for (auto count = world.random() % 3000; count > 0; --count) world.step();
        auto links = world.network().links();
        if (!links.empty()) world.network().reset(links[world.random() % links.size()]);
        for (auto& request : requests) {
            run_until([&] { return request->done(); });
            ASSERT_TRUE(request->succeeded()) << "round " << round;
            ASSERT_TRUE(std::ranges::equal(
                request->octets, std::span(shadow).subspan(request->offset, request->length)));
        }
    }
    EXPECT_EQ(controller.memory, shadow);
    EXPECT_GT(host->device().repeated(), 0u) << "nothing has been lost at all";
}

TEST_P(HostTest, AsksAgainLaterWhenTold) {
    attach();
    controller.answer_later = 5;
    TestRequest write(BlockOperation::write, 0, 4096);
    carry_out(write);
    EXPECT_TRUE(write.succeeded());
    EXPECT_EQ(controller.transfers.size(), 6u);
}

TEST_P(HostTest, SaysHelloAgainWhenItIsForgotten) {
    attach();
    TestRequest one(BlockOperation::read, 0, 4096), other(BlockOperation::read, 4096, 4096);
    controller.forget_sessions = true;
    submit(one);
    submit(other);
    run_until([&] { return one.done() && other.done(); });
    EXPECT_TRUE(one.succeeded());
    EXPECT_TRUE(other.succeeded());
    EXPECT_EQ(controller.hellos, 2u);
}

TEST_P(HostTest, GivesUpAfterAWhileWhenItIsForgottenForGood) {
    patience = std::chrono::seconds(5);
    attach();
    TestRequest read(BlockOperation::read, 0, 4096);
    controller.forget_sessions = true;
    controller.refuse_hello = true;
    carry_out(read);
    EXPECT_EQ(read.failure(), Code::timed_out);
    controller.refuse_hello = false;
    run_until([&] { return host->is_attached() && controller.hellos > 2; });
}

TEST_P(HostTest, UsesNoTagTwice) {
    attach();
    std::set<SteeringTag> tags;
    for (int i = 0; i < 1000; ++i) {
        TestRequest read(BlockOperation::read, 0, 4096);
        carry_out(read);
        ASSERT_TRUE(read.succeeded());
        ASSERT_TRUE(tags.insert(controller.transfers.back().tag).second) << i;
    }
}

TEST_P(HostTest, PassesOnWhatTheVolumeCannotDo) {
    attach();
    TestRequest lost(BlockOperation::read, 0, 4096), beyond(BlockOperation::read, 0, 4096);
    controller.fail_with = wire::HostOutcome::failed;
    carry_out(lost);
    EXPECT_EQ(lost.failure(), Code::io_failed);
    controller.fail_with = wire::HostOutcome::out_of_range;
    carry_out(beyond);
    EXPECT_EQ(beyond.failure(), Code::out_of_range);
}

TEST_P(HostTest, NoticesThatTheVolumeHasGrown) {
    attach();
    controller.memory.resize(2 * size);
    TestRequest read(BlockOperation::read, 0, 4096), behind(BlockOperation::read, size, 4096);
    carry_out(read);
    EXPECT_EQ(host->device().traits().size, 2 * size);
    carry_out(behind);
    EXPECT_TRUE(behind.succeeded());
}

TEST_P(HostTest, GivesUpAfterAWhileAndGoesOnWhenTheControllerIsBack) {
    patience = std::chrono::seconds(5);
    attach();
    controller.halt();
    std::vector<std::unique_ptr<TestRequest>> reads;
    for (std::uint64_t i = 0; i < 100; ++i) {  // more than can be under way
        reads.push_back(std::make_unique<TestRequest>(BlockOperation::read, i * 4096, 4096));
        submit(*reads.back());
    }
    for (auto& read : reads) run_until([&] { return read->done(); });
    for (auto& read : reads) EXPECT_EQ(read->failure(), Code::timed_out);
    TestRequest at_once(BlockOperation::read, 0, 4096);
    submit(at_once);
    EXPECT_EQ(at_once.failure(), Code::timed_out);

    controller.start();
    run_until([&] { return host->is_attached(); });
    TestRequest again(BlockOperation::read, 0, 4096);
    carry_out(again);
    EXPECT_TRUE(again.succeeded());
}

TEST_P(HostTest, IsToldWhyItCannotBeAttached) {
    volume = "music";
    attach();
    EXPECT_EQ(**opened, "there is no volume of that name");
    host.reset();
    volume = "photos";
    opened.reset();
    controller.refuse_hello = true;
    attach();
    EXPECT_EQ(**opened, "the volume is not ready; some of its boxes may not be there");
    host.reset();
    opened.reset();
    controller.halt();
    attach();
    EXPECT_TRUE((*opened)->starts_with("the controller cannot be reached: ")) << **opened;
    TestRequest read(BlockOperation::read, 0, 0);
    submit(read);
    EXPECT_TRUE(read.failure());
}

/// It takes connections, as the kernel of a paused process does, and says nothing.
class Mute {
public:
    explicit Mute(World& world) {
        auto listening =
            world.host("10.0.0.2").listen(where(), [this](std::unique_ptr<Stream> stream) {
                taken_.push_back(std::move(stream));
            });
        EXPECT_TRUE(listening);
        listener_ = std::move(*listening);
    }
    static Address where() { return Address::tcp("10.0.0.2", 3260); }

private:
    std::vector<std::unique_ptr<Stream>> taken_;
    std::unique_ptr<Listener> listener_;
};

TEST_P(HostTest, HearsTheOneInOfficeAndNotADeadOneThatIsAskedLast) {
    volume = "music";
    controllers = {HostController::where(), Address::tcp("10.0.0.1", 9)};
    attach();
    EXPECT_EQ(**opened, "there is no volume of that name");
}

TEST_P(HostTest, AsksAgainWhereOneOfSeveralMayTakeOfficeSoon) {
    const Mute mute(world);
    controllers = {HostController::where(), Mute::where()};
    controller.refuse_hello = true;
    auto timer = world.host("10.0.0.1").make_timer([this] { controller.refuse_hello = false; });
    timer->set(world.now() + std::chrono::seconds(7));
    attach();
    EXPECT_FALSE(*opened) << **opened;
    ASSERT_EQ(news.size(), 1u) << "that it waits, once";
    TearDown();
    opened.reset();
    controller.halt();
    const auto began = world.now();
    attach();
    ASSERT_TRUE(*opened);
    EXPECT_TRUE((*opened)->starts_with("no controller is in office: 10.0.0.1:3260: ")) << **opened;
    EXPECT_TRUE((*opened)->ends_with("; 10.0.0.2:3260: it says nothing")) << **opened;
    EXPECT_NEAR(std::chrono::duration<double>(world.now() - began).count(), 40, 15);
}

/// It is paused perhaps, and the other has taken office meanwhile: who waits for it waits in vain.
TEST_P(HostTest, DoesNotWaitLongForAControllerThatSaysNothing) {
    const Mute mute(world);
    controllers = {Mute::where(), HostController::where()};
    const auto began = world.now();
    attach();
    ASSERT_FALSE(*opened) << **opened;
    EXPECT_LT(world.now() - began, std::chrono::seconds(3));
    // And again, where the one that is left alone is asked first.
    controller.halt();
    run_until([&] { return world.now() - began > std::chrono::seconds(30); });
    controller.start();
    const auto back = world.now();
    TestRequest write(BlockOperation::write, 0, 4096);
    fill(write, 1);
    carry_out(write);
    EXPECT_FALSE(write.failure());
    EXPECT_LT(world.now() - back, std::chrono::seconds(12)) << "patience has grown, to a bound";
}

TEST_P(HostTest, SaysGoodbye) {
    attach();
    host->leave();
    run_until([&] { return host->finished(); });
    EXPECT_EQ(controller.goodbyes, 1u);
}

TEST_P(HostTest, CanBreakOffWhatNobodyAnswers) {
    attach();
    controller.swallow = true;
    std::vector<std::unique_ptr<TestRequest>> reads;
    for (std::uint64_t i = 0; i < 100; ++i) {
        reads.push_back(std::make_unique<TestRequest>(BlockOperation::read, i * 4096, 4096));
        submit(*reads.back());
    }
    run_until([&] { return controller.seen.size() > 20; });
    host->break_off();
    const auto before = world.now();
    for (auto& read : reads) run_until([&] { return read->done(); });
    for (auto& read : reads) EXPECT_EQ(read->failure(), Code::disconnected);
    EXPECT_LT(world.now() - before, std::chrono::seconds(1));
    controller.swallow = false;
}

TEST_P(HostTest, TakesItsMemoryBackFromABoxThatTakesNothing) {
    attach();
    const auto before = world.network().links();
    TestRequest first(BlockOperation::write, 0, 4096), write(BlockOperation::write, 0, 1 << 20);
    carry_out(first);
    for (auto link : world.network().links())
        if (std::ranges::find(before, link) == before.end())
            world.network().partition(link, Side::acceptor);  // what the host sends to the box
    submit(write);
    world.run_for(std::chrono::milliseconds(100));
    const auto start = world.now();
    world.network().lose("10.0.0.9");  // else the box would come again, and the old one end
    controller.fail_moves();
    run_until([&] { return write.done(); });
    EXPECT_EQ(write.failure(), Code::io_failed);
    EXPECT_GE(world.now() - start, std::chrono::seconds(4));
    EXPECT_LE(world.now() - start, std::chrono::seconds(6));
}

TEST_P(HostTest, MayGoWhileItSaysHello) {
    for (int steps = 0; steps < 200; steps += 7) {
        HostNode::Options options;
        options.controller = controllers.front();
        options.others.assign(controllers.begin() + 1, controllers.end());
        options.volume = volume;
        options.over_rdma = GetParam();
        HostNode early(world.host("10.0.0.9"), options, {});
        for (int i = 0; i < steps; ++i) world.step();
    }
    ASSERT_TRUE(world.run_until_quiet(plenty));
}

}  // namespace
}  // namespace weft::sim
