// SPDX-License-Identifier: Apache-2.0
// Boxes that write into a host's memory for reads that others have served meanwhile: they are late,
// and nobody is harmed by it, neither the memory nor the connection.
#include "support/host_fixture.hpp"

namespace weft::sim {
namespace {

using test::TestRequest;

/// A transfer that a box begins whenever it likes.
class LateWrite final : public raid::PeerTransfer {
public:
    LateWrite(wire::HostSession session, SteeringTag tag, std::size_t size)
        : octets_(size, std::byte{0xdd}) {
        peer = {
            .party = raid::the_host, .tag = tag, .base = 0, .identity = wire::identity_of(session)};
        memory = octets_;
    }
    void completed(Result<void> how) override { outcome = how; }
    std::optional<Result<void>> outcome;

private:
    std::vector<std::byte> octets_;
};

/// Of case 15 of the failure table, docs/failures.md.
class FailureTableLateBox : public test::HostTest {
protected:
    /// A read that others have served, and what the late box knows of it.
    wire::HostTransfer superseded(std::uint64_t offset = 0, std::size_t length = 4096) {
        TestRequest read(BlockOperation::read, offset, length);
        controller.leave_writers = true;
        carry_out(read);
        controller.leave_writers = false;
        EXPECT_TRUE(read.succeeded());
        return controller.transfers.back();
    }
    Result<void> write_late(const wire::HostTransfer& asked) {
        LateWrite late(asked.session, asked.tag, asked.length);
        controller.array_links().send(late);
        run_until([&] { return late.outcome.has_value(); });
        return *late.outcome;
    }
    void do_something() {
        TestRequest other(BlockOperation::read, 8192, 4096);
        carry_out(other);
        EXPECT_TRUE(other.succeeded());
    }
    std::size_t kept() const { return host->device().kept(); }
    /// Connections that boxes have lost.
    void attach_and_count() {
        attach();
        host->links().on_event([this](const node::ArrayLinks::Event& event) {
            cuts += event.kind == node::ArrayLinks::Event::Kind::lost;
        });
    }
    unsigned cuts = 0;
};
INSTANTIATE_TEST_SUITE_P(Over, FailureTableLateBox, testing::Bool(),
                         [](const auto& each) { return each.param ? "Rdma" : "Tcp"; });

TEST_P(FailureTableLateBox, Case15_ItWritesIntoASupersededRead_NobodyIsHarmed) {
    attach_and_count();
    std::ranges::fill(controller.memory, std::byte{0x11});
    TestRequest read(BlockOperation::read, 0, 3 * 4096);
    controller.leave_writers = true;
    carry_out(read);
    ASSERT_TRUE(read.succeeded());
    const auto asked = controller.transfers.back();
    std::ranges::fill(read.octets, std::byte{0x22});  // its owner uses it again
    EXPECT_TRUE(write_late(asked)) << "the box is told nothing else";
    EXPECT_TRUE(write_late(asked)) << "in several Writes, perhaps";
    EXPECT_TRUE(
        std::ranges::all_of(read.octets, [](auto octet) { return octet == std::byte{0x22}; }));
    EXPECT_EQ(cuts, 0u);
    EXPECT_EQ(host->links().links(), 1u);
}

TEST_P(FailureTableLateBox, Case15_ItHasConfirmed_ItsTagIsClosed) {
    attach_and_count();
    const auto asked = superseded();
    EXPECT_EQ(kept(), 1u);
    do_something();
    EXPECT_EQ(kept(), 1u) << "nobody has confirmed";
    controller.releases = {asked.command};
    do_something();
    EXPECT_EQ(kept(), 0u);
    EXPECT_EQ(controller.transfers.back().released, 0u);
    do_something();
    EXPECT_EQ(controller.transfers.back().released, 1u) << "and it says that it has heard";
    EXPECT_EQ(cuts, 0u);
    EXPECT_EQ(write_late(asked).error().code, Code::access_denied) << "as any tag that is over";
}

TEST_P(FailureTableLateBox, Case15_ItWritesElsewhere_ItMayOnlyWhatItWasGiven) {
    attach_and_count();
    auto asked = superseded();
    asked.length = 8192;
    EXPECT_EQ(write_late(asked).error().code, Code::access_denied) << "beyond the bounds";
    const auto next = superseded();
    LateWrite fetched(next.session, next.tag, 4096);
    controller.array_links().fetch(fetched);
    run_until([&] { return fetched.outcome.has_value(); });
    EXPECT_EQ(fetched.outcome->error().code, Code::access_denied) << "nor may it read";
}

TEST_P(FailureTableLateBox, Case15_TheControllerIsLost_TheNextSessionEndsIt) {
    attach_and_count();
    const auto before = superseded();
    EXPECT_EQ(kept(), 1u);
    controller.restart();
    EXPECT_EQ(kept(), 1u) << "the box may still write";
    do_something();
    EXPECT_EQ(kept(), 0u) << "its connection was cut";
    // Under a new name, where numbers of releases begin anew.
    const auto asked = superseded();
    EXPECT_NE(asked.session, before.session);
    controller.releases = {asked.command};
    do_something();
    EXPECT_EQ(kept(), 0u);
}

TEST_P(FailureTableLateBox, Case15_ItIsForgottenByTheController_TheNextSessionEndsIt) {
    attach_and_count();
    (void)superseded();
    controller.forget_sessions = true;
    do_something();
    EXPECT_EQ(controller.hellos, 2u);
    EXPECT_EQ(kept(), 0u);
}

TEST_P(FailureTableLateBox, Case15_AnAnswerThatTellsOfItIsLost_TheNextOneTellsAgain) {
    attach_and_count();
    std::vector<std::uint64_t> commands;
    for (int i = 0; i < 12; ++i) commands.push_back(superseded().command);
    EXPECT_EQ(kept(), 12u);
    controller.releases = {commands.begin(), commands.end()};
    for (std::size_t left : {7u, 2u, 0u}) {
        do_something();
        EXPECT_EQ(kept(), left) << "as many as an answer holds";
    }
}

TEST_P(FailureTableLateBox, Case15_TheReadIsAskedForAgain_UnderAnotherTagAndNumber) {
    attach_and_count();
    TestRequest read(BlockOperation::read, 4096, 8192);
    controller.leave_writers = true;
    controller.answer_moves_with = wire::HostOutcome::later;
    submit(read);
    run_until([&] { return controller.transfers.size() >= 3; });
    const auto first = controller.transfers[0], second = controller.transfers[1];
    EXPECT_NE(first.tag, second.tag);
    EXPECT_NE(first.command, second.command);
    EXPECT_EQ(first.offset, second.offset);
    EXPECT_EQ(first.length, second.length);
    controller.answer_moves_with.reset();
    controller.leave_writers = false;
    run_until([&] { return read.done(); });
    EXPECT_TRUE(read.succeeded());
    const auto expected = read.octets;
    EXPECT_TRUE(write_late(first));
    EXPECT_TRUE(write_late(second));
    EXPECT_EQ(read.octets, expected);
    EXPECT_EQ(cuts, 0u);
}

/// 256 tags, and a command each for 64 more. No box needs so long; and if one did, and nobody ever
/// said so, reads would go on after a while.
TEST_P(FailureTableLateBox, Case15_NobodyEverConfirms_ReadsGoOnAllTheSame) {
    attach_and_count();
    controller.leave_writers = true;
    const node::HostDisk::Options options;
    const auto began = world.now();
    std::size_t most = 0;
    for (std::size_t i = 0; i < 2 * (options.kept_max + options.under_way_max) + 10; ++i) {
        TestRequest read(BlockOperation::read, i % 9 * 4096, 4096);
        carry_out(read);
        ASSERT_TRUE(read.succeeded()) << i;
        most = std::max(most, kept());
    }
    EXPECT_EQ(most, options.kept_max + options.under_way_max);
    EXPECT_EQ(controller.hellos, 3u);
    const auto took = world.now() - began;
    EXPECT_GE(took, 2 * options.kept_patience - std::chrono::seconds(1));
    EXPECT_LE(took, 2 * options.kept_patience + std::chrono::seconds(5));
}

TEST_P(FailureTableLateBox, Case15_TooManyAreKept_AConfirmationLetsReadsGoOn) {
    attach_and_count();
    const node::HostDisk::Options options;
    std::vector<std::uint64_t> commands;
    for (std::size_t i = 0; i < options.kept_max + options.under_way_max - 1; ++i)
        commands.push_back(superseded().command);
    controller.releases = {commands.begin(), commands.end()};
    const auto began = world.now();
    for (std::size_t i = 0; i < commands.size() / 5 + 1; ++i) do_something();
    EXPECT_EQ(kept(), 0u);
    EXPECT_LT(world.now() - began, std::chrono::seconds(5));
    EXPECT_EQ(controller.hellos, 1u);
    EXPECT_EQ(cuts, 0u);
}

/// The read fails at the host, and nobody knows what boxes still do for it.
TEST_P(FailureTableLateBox, Case15_TheHostGivesUp_ItsMemoryIsItsOwnAtOnce) {
    patience = std::chrono::seconds(2);
    attach_and_count();
    do_something();
    controller.forget_sessions = controller.refuse_hello = true;
    TestRequest read(BlockOperation::read, 0, 4096);
    carry_out(read);
    EXPECT_EQ(read.failure(), Code::timed_out);
    const auto asked = controller.transfers.back();
    EXPECT_EQ(kept(), 1u);
    const auto expected = read.octets;
    EXPECT_TRUE(write_late(asked));
    EXPECT_EQ(read.octets, expected);
    EXPECT_EQ(cuts, 0u);
    controller.refuse_hello = false;
    run_until([&] { return host->is_attached(); });
    EXPECT_EQ(kept(), 0u);
}

}  // namespace
}  // namespace weft::sim
