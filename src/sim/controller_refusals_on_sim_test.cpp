// SPDX-License-Identifier: Apache-2.0
// What a controller must not do though it is asked to: believe the older half of a volume, take a
// box that is too small, or say that a volume grows which cannot.
#include <gtest/gtest.h>

#include "support/array_cluster.hpp"

namespace weft::sim {
namespace {

using raid::Level;
using raid::VolumeState;
using test::ArrayCluster;

constexpr std::uint64_t used = 4u << 20;

struct Refusals : testing::Test, ArrayCluster {
    Refusals() : ArrayCluster(7) { start_controller(); }

    void make(Level level, const std::vector<std::string>& members) {
        for (const auto& name : members) add_box(name);
        const auto refusal = create("photos", level, members, 16u << 10, used);
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(becomes("photos", VolumeState::healthy));
        disk = &attach("photos");
    }
    void lose_state() {
        hosts.begin()->second->leave();
        ASSERT_TRUE(run_until([&] { return hosts.begin()->second->finished(); }));
        hosts.clear();
        stop_controller();
        records = {};
        start_controller();
    }
    void stop_box(const std::string& name) {
        boxes.at(name)->stop();
        ASSERT_TRUE(run_until([&] { return boxes.at(name)->quiet(); }));
        boxes.erase(name);
    }
    std::optional<std::string> join(const std::string& name) {
        return refusal_of([&](auto told) {
            controller->add_box(name, box_address(name), true, std::move(told));
        });
    }
    std::optional<std::string> assemble(bool force) {
        return refusal_of(
            [&](auto told) { controller->assemble_volume("photos", force, std::move(told)); });
    }

    BlockDevice* disk = nullptr;
    const std::vector<std::byte> old_bytes = std::vector<std::byte>(4096, std::byte{1});
    const std::vector<std::byte> new_bytes = std::vector<std::byte>(4096, std::byte{2});
};

/// Cases of the failure table, docs/failures.md.
using FailureTableRefusals = Refusals;

TEST_F(FailureTableRefusals, Case39_HalfAVolumeIsAssembledByMistake_ItIsRefusedAndSaysWhatIsLost) {
    make(Level::mirror, {"oak", "elm"});
    write(*disk, 0, old_bytes);
    stop_box("oak");
    write(*disk, 0, new_bytes);  // elm alone
    lose_state();
    stop_box("elm");
    start_box("oak");
    ASSERT_FALSE(join("oak"));
    EXPECT_EQ(assemble(false),
              "the box of place 1 is not here and may know more of photos than those that are: "
              "add it, or say --force and lose what it knows");
    start_box("elm");
    ASSERT_FALSE(join("elm"));
    const auto refusal = assemble(false);
    ASSERT_FALSE(refusal) << *refusal;
    ASSERT_TRUE(becomes("photos", VolumeState::healthy));
    EXPECT_EQ(read(attach("photos"), 0, 4096), new_bytes);
}

TEST_F(FailureTableRefusals, Case39_HalfAVolumeIsAssembledByForce_ItIsTheTruthFromThenOn) {
    make(Level::mirror, {"oak", "elm"});
    write(*disk, 0, old_bytes);
    stop_box("oak");
    write(*disk, 0, new_bytes);
    lose_state();
    stop_box("elm");
    start_box("oak");
    ASSERT_FALSE(join("oak"));
    const auto refusal = assemble(true);
    ASSERT_FALSE(refusal) << *refusal;
    ASSERT_TRUE(becomes("photos", VolumeState::degraded));
    auto& again = attach("photos");
    EXPECT_EQ(read(again, 0, 4096), old_bytes);
    start_box("elm");
    ASSERT_FALSE(join("elm"));
    ASSERT_TRUE(becomes("photos", VolumeState::healthy));
    EXPECT_EQ(read(again, 0, 4096), old_bytes);
    stop_box("oak");
    EXPECT_EQ(read(again, 0, 4096), old_bytes) << "elm was rebuilt";
}

TEST_F(FailureTableRefusals, Case39_ABoxIsTooSmall_ItTakesNobodysPlace) {
    make(Level::raid5, {"oak", "elm", "ash"});
    box_size = 2u << 20;
    add_box("fir");
    const auto refusal = refusal_of(
        [&](auto told) { controller->replace_member("photos", "oak", "fir", std::move(told)); });
    EXPECT_EQ(refusal, "fir has room for 2097152 octets, and needs 7352320");
    EXPECT_EQ(status("photos").state, VolumeState::healthy);
    ASSERT_FALSE(refusal_of([&](auto told) { controller->add_spare("fir", std::move(told)); }));
    cut_power("oak");
    world.run_for(std::chrono::minutes(2));
    const auto lost = status("photos");
    EXPECT_EQ(lost.members[0].state, wire::ArrayMemberState::absent);
    box_size = 24u << 20;
    start_box("oak");
    EXPECT_TRUE(becomes("photos", VolumeState::healthy)) << "its place was kept";
}

TEST_F(Refusals, AVolumeGrowsOnlyWhereThereIsRoom) {
    make(Level::raid5, {"oak", "elm", "ash"});
    const auto grow = [&](std::uint64_t size) {
        return refusal_of(
            [&](auto told) { controller->grow_volume("photos", size, std::move(told)); });
    };
    EXPECT_EQ(grow(used), "photos has 4194304 octets, which is no less than that");
    const auto refusal = grow(std::uint64_t{1} << 40);
    ASSERT_TRUE(refusal);
    EXPECT_NE(refusal->find("has room for"), std::string::npos) << *refusal;
    EXPECT_TRUE(grow(~std::uint64_t{0}));
    const auto free = controller->boxes().front().free;
    const auto tight = grow(2 * ((used / 2 + free) / 65536 * 65536));
    ASSERT_TRUE(tight) << "the data has room, and the checksums have not";
    EXPECT_NE(tight->find("has room for"), std::string::npos) << *tight;
    EXPECT_EQ(status("photos").size, used);
    ASSERT_FALSE(grow(2 * used));
    EXPECT_TRUE(run_until([&] { return status("photos").size == 2 * used; }));
}

}  // namespace
}  // namespace weft::sim
