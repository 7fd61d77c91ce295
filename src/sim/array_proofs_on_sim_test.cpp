// SPDX-License-Identifier: Apache-2.0
// What the array claims of itself, held against whole clusters of the production objects: the
// controller carries no payload, and all ways to parity come to the same parity.
#include <gtest/gtest.h>

#include "support/array_photos.hpp"
#include "support/recording_engine.hpp"

namespace weft::sim {
namespace {

using raid::DataPath;
using raid::Level;
using raid::VolumeState;
using test::ArrayCase;
using test::ArrayCluster;
using test::in_band;
using test::Photos;
using test::star;
using test::tree;

constexpr auto block = Photos::block;
constexpr auto chunk = Photos::chunk;

TEST(PayloadWatch, FindsEveryMarkHoweverTheStreamIsCut) {
    for (const auto cutting : {Cutting::whole, Cutting::anywhere, Cutting::single_bytes}) {
        World world(1);
        world.network().set_options({.cutting = cutting});
        test::PayloadWatch watch(world.network());
        test::RecordingEngine sender, receiver;
        std::unique_ptr<Stream> accepted;
        const auto address = Address::tcp("elm", 1);
        const auto listener = std::move(*world.host("elm").listen(address, [&](auto stream) {
            accepted = std::move(stream);
            accepted->drive(receiver);
        }));
        sender.say(bytes_of("<<weft pay"));
        sender.say(test::marked_octets(100 * test::payload_mark.size()));
        sender.say(bytes_of("load>>"));
        const auto stream = std::move(*world.host("oak").connect(address, sender));
        ASSERT_TRUE(world.run_until_quiet(100'000));
        for (const char* machine : {"oak", "elm"}) {
            EXPECT_EQ(watch.of(machine).marks, 100u);
            EXPECT_EQ(watch.of(machine).octets, 101 * test::payload_mark.size());
        }
        EXPECT_EQ(watch.of("ash").octets, 0u);
    }
}

class ArrayPayload : public testing::TestWithParam<ArrayCase> {
protected:
    /// On blocks that were never written, so that parity is the mark as well, or part of it.
    void write_and_read(std::uint64_t offset, std::size_t size) {
        const auto octets = test::marked_octets(size);
        photos.array.write(*photos.disk, offset, octets);
        EXPECT_EQ(photos.array.read(*photos.disk, offset, size), octets);
    }
    Photos photos{GetParam().level, GetParam().way};
};

TEST_P(ArrayPayload, PassesTheControllerOnlyInBand) {
    write_and_read(block, 2 * block);
    write_and_read(2 * chunk, 11 * chunk);
    write_and_read(1 << 20, 1 << 20);
    ASSERT_NO_FATAL_FAILURE(photos.lose_box("elm"));
    write_and_read(3 << 20, 5 * chunk);
    write_and_read((3 << 20) + 9 * chunk, block);
    EXPECT_EQ(photos.array.read(*photos.disk, 2 * chunk, 11 * chunk),
              test::marked_octets(11 * chunk));
    const auto marks_before = photos.watch.of(ArrayCluster::machine_of("elm")).marks;
    photos.array.start_box("elm");
    ASSERT_TRUE(photos.array.becomes("photos", VolumeState::healthy));
    EXPECT_GT(photos.watch.of(ArrayCluster::machine_of("elm")).marks, marks_before)
        << "what it had missed was brought to it";
    ASSERT_NO_FATAL_FAILURE(photos.scrub());

    const auto controller = photos.watch.of(Photos::controller_machine);
    EXPECT_GT(controller.octets, 0u);
    const auto host = photos.watch.of(Photos::host_machine);
    EXPECT_GT(host.marks, 0u);
    if (GetParam().way.path == DataPath::in_band)
        EXPECT_GT(controller.marks, host.marks) << "what it gets from one it gives to another";
    else
        EXPECT_EQ(controller.marks, 0u);
    for (const auto& name : photos.boxes)
        EXPECT_GT(photos.watch.of(ArrayCluster::machine_of(name)).marks, 0u) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ArrayPayload,
    testing::Values(ArrayCase{Level::raid5, star}, ArrayCase{Level::raid5, tree},
                    ArrayCase{Level::raid5, in_band}, ArrayCase{Level::raid6, star},
                    ArrayCase{Level::raid6, in_band}, ArrayCase{Level::mirror, star},
                    ArrayCase{Level::mirror, in_band}),
    test::name_of);

struct Leavings {
    std::map<std::string, std::vector<std::byte>> disks;  ///< where the data is, by box
    raid::VolumeCounters counters;                        ///< after the writes alone
};

/// Behind the journal, and between checksums and versions.
std::vector<std::byte> data_of(Photos& photos, const std::string& box) {
    const auto volume = photos.status().volume;
    std::vector<std::byte> octets(volume.stripes * volume.chunk_bytes);
    EXPECT_EQ(volume.consistency, wire::ArrayConsistency::journal);
    const std::uint64_t data = raid::part_data_offset + raid::part_journal_length(octets.size());
    const auto columns = raid::layout_of(volume)->data_columns();
    for (std::uint64_t home = 0; home < octets.size(); home += raid::CheckedDisk::group_bytes) {
        const auto rest = Buffer(octets).subspan(home);
        const auto part = rest.first(std::min(rest.size(), raid::CheckedDisk::group_bytes));
        for (const auto& [path, disk] : photos.array.world.disks())
            if (path.starts_with("/" + box + "/"))
                disk->peek(data + raid::CheckedDisk::place_below(home, columns), part);
    }
    return octets;
}

/// The same for all ways: whole stripes and parts of them, over what others have written.
void write_at_random(Photos& photos, std::uint64_t stripe_bytes) {
    Random random(7);
    for (int i = 0; i < 60; ++i) {
        const auto unit = i % 3 == 0 ? stripe_bytes : block;
        const auto count = random.between(1, i % 3 == 0 ? 4 : 24);
        const auto offset = random.below(Photos::size / unit - count) * unit;
        std::vector<std::byte> octets(count * unit);
        for (auto& octet : octets) octet = static_cast<std::byte>(random.next());
        photos.array.write(*photos.disk, offset, octets);
    }
}

void leave_behind(Level level, const test::Way& way, Leavings& left) {
    Photos photos(level, way);
    ASSERT_NE(photos.disk, nullptr);
    const auto volume = photos.status().volume;
    write_at_random(photos, raid::layout_of(volume)->stripe_bytes());
    left.counters = photos.status().counters;
    ASSERT_NO_FATAL_FAILURE(photos.scrub());
    for (const auto& box : photos.boxes) left.disks[box] = data_of(photos, box);
}

class ArrayParity : public testing::TestWithParam<Level> {};

TEST_P(ArrayParity, IsTheSameWhicheverWayItIsMade) {
    Leavings by_star, by_tree, by_controller;
    ASSERT_NO_FATAL_FAILURE(leave_behind(GetParam(), star, by_star));
    ASSERT_NO_FATAL_FAILURE(leave_behind(GetParam(), tree, by_tree));
    ASSERT_NO_FATAL_FAILURE(leave_behind(GetParam(), in_band, by_controller));
    for (const auto& [box, octets] : by_star.disks) {
        EXPECT_NE(octets, std::vector<std::byte>(octets.size())) << box << " has nothing";
        EXPECT_TRUE(octets == by_tree.disks[box]) << box;
        EXPECT_TRUE(octets == by_controller.disks[box]) << box;
    }
    // That there were three ways at all.
    EXPECT_GT(by_tree.counters.orders, by_star.counters.orders) << "round by round";
    EXPECT_EQ(by_star.counters.payload_octets + by_tree.counters.payload_octets, 0u);
    EXPECT_GT(by_controller.counters.payload_octets, 0u);
}

INSTANTIATE_TEST_SUITE_P(Levels, ArrayParity, testing::Values(Level::raid5, Level::raid6),
                         [](const auto& each) {
                             return each.param == Level::raid5 ? "Raid5" : "Raid6";
                         });

}  // namespace
}  // namespace weft::sim
