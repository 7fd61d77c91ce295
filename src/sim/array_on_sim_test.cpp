// SPDX-License-Identifier: Apache-2.0
// Whole arrays of the production objects: two hosts at random on one volume, a box that is lost
// under them and comes back, and then every byte is looked at, and every row.
#include <gtest/gtest.h>

#include "support/array_cluster.hpp"

namespace weft::sim {
namespace {

using raid::Level;
using raid::VolumeState;
using test::ArrayCluster;
using test::TestRequest;

constexpr std::uint64_t block = 4096;
/// What belongs to one host or the other, in turn: no multiple of a row, so that both meet in rows
/// all the time, and never in a block.
constexpr std::uint64_t share = 12 * block;
constexpr std::uint64_t volume_size = 4 << 20;

/// A host that always has some requests under way, and knows what its blocks must hold.
class BusyHost {
public:
    BusyHost(ArrayCluster& array, BlockDevice& device, unsigned which,
             std::vector<std::byte>& shadow)
        : array_(array), device_(device), which_(which), shadow_(shadow) {}

    void go_on(std::size_t under_way_max) {
        std::erase_if(requests_, [&](auto& each) { return is_over(*each); });
        while (requests_.size() < under_way_max) begin();
    }
    bool is_idle() {
        std::erase_if(requests_, [&](auto& each) { return is_over(*each); });
        return requests_.empty();
    }
    std::uint64_t ended() const { return ended_; }
    std::uint64_t failed() const { return failed_; }

private:
    void begin() {
        auto& chance = array_.world.chance();
        const auto shares = volume_size / share / 2;
        const auto at = (chance.next() % shares * 2 + which_) * share;
        const auto skip = chance.next() % 12;
        const auto offset = at + skip * block;
        const auto length = (1 + chance.next() % (12 - skip)) * block;
        for (auto& other : requests_)
            if (offset < other->offset + other->length && other->offset < offset + length) return;
        const bool reads = chance.next() % 3 == 0;
        requests_.push_back(std::make_unique<TestRequest>(
            reads ? BlockOperation::read : BlockOperation::write, offset, length));
        auto& request = *requests_.back();
        request.durable = chance.next() % 8 == 0;
        if (!reads) {
            for (auto& octet : request.octets) octet = static_cast<std::byte>(chance.next());
            std::ranges::copy(request.octets,
                              shadow_.begin() + static_cast<std::ptrdiff_t>(offset));
        }
        device_.submit(request);
    }
    bool is_over(const TestRequest& request) {
        if (!request.done()) return false;
        ++ended_;
        failed_ += !request.succeeded();
        EXPECT_TRUE(std::ranges::equal(request.octets,
                                       std::span(shadow_).subspan(request.offset, request.length)))
            << "at " << request.offset;
        return true;
    }

    ArrayCluster& array_;
    BlockDevice& device_;
    unsigned which_;
    std::vector<std::byte>& shadow_;
    std::vector<std::unique_ptr<TestRequest>> requests_;
    std::uint64_t ended_ = 0, failed_ = 0;
};

struct Case {
    Level level;
    bool in_band;
    std::uint64_t seed;
};

class ArrayOnSim : public testing::TestWithParam<Case> {
protected:
    void make_volume() {
        array.in_band = GetParam().in_band;
        array.start_controller();
        for (const auto& name : names) array.add_box(name);
        const auto refusal =
            array.create("photos", GetParam().level, names, 16u << 10, volume_size);
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
        ASSERT_GE(array.status("photos").size, volume_size);
        one = std::make_unique<BusyHost>(array, array.attach("photos", "10.0.0.50"), 0, shadow);
        other = std::make_unique<BusyHost>(array, array.attach("photos", "10.0.0.51"), 1, shadow);
    }
    /// Amid whatever it does; nobody is told.
    void kill_box(const std::string& name) {
        auto& box = *array.boxes.at(name);
        box.stop();
        ASSERT_TRUE(array.run_until([&] { return box.quiet(); }));
        array.boxes.erase(name);
    }
    /// Both go on until so many more have ended.
    void keep_busy(std::uint64_t count) {
        const auto until = one->ended() + other->ended() + count;
        ASSERT_TRUE(array.run_until([&] {
            one->go_on(6);
            other->go_on(6);
            return one->ended() + other->ended() >= until;
        }));
    }
    void rest() {
        ASSERT_TRUE(array.run_until([&] { return one->is_idle() && other->is_idle(); }));
        EXPECT_EQ(one->failed() + other->failed(), 0u);
    }
    void look_at_everything() {
        auto& disk = array.hosts.at("10.0.0.50")->device();
        for (std::uint64_t at = 0; at < volume_size; at += 512 * 1024)
            ASSERT_TRUE(std::ranges::equal(array.read(disk, at, 512 * 1024),
                                           std::span(shadow).subspan(at, 512 * 1024)))
                << at;
    }
    void scrub() {
        const auto refusal = array.refusal_of(
            [&](auto told) { array.controller->scrub("photos", false, false, std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.run_until([&] { return !array.status("photos").scrub.running; }));
        const auto& said = array.status("photos").scrub;
        EXPECT_EQ(said.mismatches, 0u);
        EXPECT_EQ(said.done, said.to_do);
    }

    const std::vector<std::string> names =
        GetParam().level == Level::mirror
            ? std::vector<std::string>{"oak", "elm", "ash"}
            : std::vector<std::string>{"oak", "elm", "ash", "fir", "yew"};
    ArrayCluster array{GetParam().seed};
    std::vector<std::byte> shadow = std::vector<std::byte>(volume_size);
    std::unique_ptr<BusyHost> one, other;
};

TEST_P(ArrayOnSim, KeepsEveryByteWhenABoxIsLostAndComesBack) {
    ASSERT_NO_FATAL_FAILURE(make_volume());
    ASSERT_NO_FATAL_FAILURE(keep_busy(100));
    ASSERT_NO_FATAL_FAILURE(kill_box("elm"));
    ASSERT_NO_FATAL_FAILURE(keep_busy(150));
    ASSERT_NO_FATAL_FAILURE(rest());
    EXPECT_NE(array.status("photos").state, VolumeState::healthy);
    ASSERT_NO_FATAL_FAILURE(look_at_everything());

    array.start_box("elm");
    ASSERT_NO_FATAL_FAILURE(keep_busy(100));
    ASSERT_NO_FATAL_FAILURE(rest());
    ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
    ASSERT_NO_FATAL_FAILURE(look_at_everything());
    ASSERT_NO_FATAL_FAILURE(scrub());
    const auto report = array.controller->volumes().front();
    if (!GetParam().in_band) {
        EXPECT_EQ(report.payload_octets, 0u);
    }
}

TEST_P(ArrayOnSim, KeepsEveryByteWhenTheControllerStopsUnderItsHosts) {
    ASSERT_NO_FATAL_FAILURE(make_volume());
    ASSERT_NO_FATAL_FAILURE(keep_busy(100));
    array.stop_controller();
    array.start_controller();
    ASSERT_NO_FATAL_FAILURE(keep_busy(100));
    ASSERT_NO_FATAL_FAILURE(rest());
    ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
    ASSERT_NO_FATAL_FAILURE(look_at_everything());
    ASSERT_NO_FATAL_FAILURE(scrub());
}

INSTANTIATE_TEST_SUITE_P(Levels, ArrayOnSim,
                         testing::Values(Case{Level::raid5, false, 1}, Case{Level::raid5, true, 2},
                                         Case{Level::raid6, false, 3},
                                         Case{Level::mirror, false, 4},
                                         Case{Level::raid5, false, 5}));

}  // namespace
}  // namespace weft::sim
