// SPDX-License-Identifier: Apache-2.0
// Promises in time, on whole arrays of the production objects and in virtual time: how long silence
// means absence, what an order that is not answered means, and when a box says that its own disk
// has failed.
#include <gtest/gtest.h>

#include <set>

#include "support/array_cluster.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using raid::Level;
using raid::VolumeState;
using test::ArrayCluster;
using test::TestRequest;

struct PromisedArray : ArrayCluster {
    PromisedArray(std::uint64_t seed, Duration silence, Level level = Level::raid5,
                  Duration request_patience = 60s)
        : ArrayCluster(seed) {
        box_silence = silence;
        volume_options.request_patience = request_patience;
        world.network().watch([this](const Network::Sending& sending) {
            if (sending.sender == "10.0.0.1" && sending.receiver == machine_of("ash"))
                to_ash.insert(sending.link);
        });
        start_controller();
        for (const char* name : {"oak", "elm", "ash", "fir", "yew"}) add_box(name);
        const auto refusal =
            create("photos", level, {"oak", "elm", "ash", "fir", "yew"}, 16u << 10, 1u << 20);
        EXPECT_FALSE(refusal) << *refusal;
        disk = &attach("photos");
        write(*disk, 0, std::vector<std::byte>(256u << 10, std::byte{7}));
    }
    ~PromisedArray() { world.network().watch({}); }

    void pass(Duration span) {
        const auto until = world.now() + span;
        (void)run_until([&] { return world.now() >= until; }, span + 1s);
    }
    /// As a box that is stopped: whatever is sent arrives, and nothing comes back.
    void stop_hearing_ash() {
        for (auto link : to_ash) world.network().partition(link, Side::acceptor);
    }
    void hang_disks_of(const std::string& name, bool hang) {
        for (const auto& [path, each] : world.disks())
            if (path.starts_with("/" + name + "/")) hang ? each->die(Death::hangs) : each->revive();
    }
    std::size_t told(const std::string& words) const {
        return static_cast<std::size_t>(std::ranges::count_if(
            controller->events().events(), [&](const node::ControllerEvent& event) {
                return event.what.find(words) != std::string::npos;
            }));
    }
    std::string story() const {
        std::string text;
        for (const auto& event : controller->events().events())
            text += event.box + ": " + event.what + "\n";
        return text;
    }
    wire::ArrayMemberState state_of(std::size_t place) const {
        return status("photos").members[place].state;
    }

    std::set<LinkId> to_ash;
    BlockDevice* disk = nullptr;
};

class ABoxThatIsSilent : public ::testing::TestWithParam<Duration> {};
INSTANTIATE_TEST_SUITE_P(ForSo, ABoxThatIsSilent,
                         ::testing::Values(Duration(2s), Duration(10s), Duration(15s)));

/// Whenever it was last heard of, the time from then on is what the option says, to within a ping
/// interval: it may have been about to be pinged.
TEST_P(ABoxThatIsSilent, IsAbsentAfterThatAndNotSooner) {
    const Duration silence = GetParam();
    const Duration interval = std::min(silence / 4, node::BoxSession::ping_interval_most);
    for (const Duration idle : {0ms, 100ms, 900ms, 1700ms, 3300ms, 4900ms, 5100ms, 9900ms}) {
        SCOPED_TRACE(std::to_string(idle / 1ms) + " ms after the last write");
        PromisedArray array(1, silence);
        array.pass(idle);
        ASSERT_EQ(array.status("photos").state, VolumeState::healthy);
        array.stop_hearing_ash();
        const auto stopped = array.world.now();
        ASSERT_TRUE(array.run_until([&] { return array.told("box lost") > 0; })) << array.story();
        const Duration took = array.world.now() - stopped;
        EXPECT_GE(took, silence - interval - 50ms) << array.story();
        EXPECT_LE(took, silence + 50ms) << array.story();
    }
}

TEST(ABoxThatIsPaused, IsAMemberAllTheTimeIfItIsBackBeforeTheSilenceIsOver) {
    PromisedArray array(1, 10s);
    for (int i = 0; i < 10; ++i) {
        array.stop_hearing_ash();
        array.pass(8s + i * 100ms);
        for (auto link : array.to_ash) array.world.network().heal(link);
        array.pass(500ms + i * 333ms);
    }
    EXPECT_EQ(array.told("box lost"), 0u) << array.story();
    EXPECT_EQ(array.status("photos").state, VolumeState::healthy);
}

/// A box that answers pings is there: an order that takes long is a slow operation.
TEST(AnOrderThatIsNotAnswered, IsSlowAndNoAbsence) {
    PromisedArray array(1, 10s);
    array.pass(1s);  // what was written before is in its final location
    array.hang_disks_of("ash", true);
    TestRequest write(BlockOperation::write, 0, 64u << 10);
    array.disk->submit(write);
    array.pass(28s);
    EXPECT_FALSE(write.outcome);
    EXPECT_EQ(array.told("box lost"), 0u) << array.story();
    EXPECT_EQ(array.told("member absent"), 0u) << array.story();
    EXPECT_EQ(array.told("answers slowly"), 1u) << array.story();
    const auto slow = array.controller->slow_operations();
    ASSERT_FALSE(slow.empty());
    EXPECT_EQ(slow.back().waits_for_names, std::vector<std::string>{"ash"});
    array.hang_disks_of("ash", false);
    ASSERT_TRUE(array.run_until([&] { return write.outcome.has_value(); }));
    EXPECT_TRUE(*write.outcome);
    EXPECT_EQ(array.status("photos").state, VolumeState::healthy);
}

/// The controller says how long a request waits, and not the host, as long as it answers pings.
TEST(ARequest, WaitsAsLongAsTheControllerPromises) {
    PromisedArray array(1, 10s, Level::raid5, 5min);
    array.go_dark({"ash", "elm"});
    TestRequest write(BlockOperation::write, 0, 64u << 10);
    array.disk->submit(write);
    array.pass(250s);
    EXPECT_FALSE(write.outcome) << array.story();
    array.start_box("ash");
    array.start_box("elm");
    ASSERT_TRUE(array.run_until([&] { return write.outcome.has_value(); })) << array.story();
    EXPECT_TRUE(*write.outcome);
}

TEST(ARequest, FailsWhenThatIsOver) {
    PromisedArray array(1, 10s, Level::raid5, 100s);
    array.go_dark({"ash", "elm"});
    TestRequest write(BlockOperation::write, 0, 64u << 10);
    const auto began = array.world.now();
    array.disk->submit(write);
    ASSERT_TRUE(array.run_until([&] { return write.outcome.has_value(); })) << array.story();
    EXPECT_FALSE(*write.outcome);
    EXPECT_GE(array.world.now() - began, 99s);
    EXPECT_LE(array.world.now() - began, 102s);
    array.start_box("ash");
    array.start_box("elm");
}

TEST(ABoxWhoseDiskHangs, SaysSoAsItsOwnFailureAndComesBackWhenItIsReAdded) {
    for (const auto level : {Level::raid5, Level::raid6}) {
        PromisedArray array(1, 10s, level);
        array.hang_disks_of("ash", true);
        TestRequest write(BlockOperation::write, 0, 64u << 10);
        const auto began = array.world.now();
        array.disk->submit(write);
        ASSERT_TRUE(array.run_until([&] { return write.outcome.has_value(); })) << array.story();
        EXPECT_TRUE(*write.outcome) << "the volume goes on without the box";
        const Duration took = array.world.now() - began;
        EXPECT_GE(took, 30s);
        EXPECT_LE(took, 31s);
        EXPECT_EQ(array.told("box failed: disk failed"), 1u) << array.story();
        EXPECT_EQ(array.told("box lost"), 0u) << "it answers pings\n" << array.story();
        EXPECT_EQ(array.state_of(2), wire::ArrayMemberState::absent);
        EXPECT_TRUE(array.status("photos").members[2].failed);
        TestRequest next(BlockOperation::write, 65536, 64u << 10);
        auto ended = array.run(*array.disk, next);
        EXPECT_TRUE(ended && *ended);

        array.hang_disks_of("ash", false);
        array.pass(1s);
        const auto refusal = array.refusal_of(
            [&](auto told) { array.controller->re_add_member("photos", "ash", std::move(told)); });
        EXPECT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.becomes("photos", VolumeState::healthy)) << array.story();
        TestRequest last(BlockOperation::write, 0, 256u << 10);
        ended = array.run(*array.disk, last);
        EXPECT_TRUE(ended && *ended);
        EXPECT_EQ(array.told("box lost"), 0u) << array.story();
    }
}

}  // namespace
}  // namespace weft::sim
