// SPDX-License-Identifier: Apache-2.0
// What a part's disk says it is, when the power goes at any moment while that changes, or while it
// is read again.
#include "node/box_part.hpp"

#include <gtest/gtest.h>

#include "support/crash_disk.hpp"
#include "support/manual_world.hpp"
#include "support/seeds.hpp"

namespace weft::node {
namespace {

using test::CrashDisk;
using test::SparseOctets;

wire::ArraySuperblock first_superblock(
    wire::ArrayConsistency consistency = wire::ArrayConsistency::none) {
    wire::ArrayVolume volume{};
    volume.volume.octets[0] = 2;
    volume.generation = wire::Generation{1};
    volume.level = 1;
    volume.boxes = 2;
    volume.chunk_bytes = 4096;
    volume.stripes = 4;
    volume.consistency = consistency;
    for (std::uint8_t place = 0; place < 2; ++place)
        volume.members[place] = {
            .box = {{place}}, .state = wire::ArrayMemberState::current, .rebuilt_stripes = 0};
    return raid::part_superblock({{1}}, wire::Epoch{1}, volume, 0, 4 * 4096);
}

class Owner final : public BoxPartOwner {
    void part_answered(BoxPart&, raid::CommandTicket, const wire::ArrayAnswer&,
                       ConstBuffer) override {}
    void meet(std::span<const wire::ArrayPeer>) override {}
    void admit(const wire::ArrayHostAdmission&) override {}
    void dismiss(wire::HostSession) override {}
};

/// A process that has the part's disk, until its power goes.
struct Life {
    Life(const SparseOctets& octets, std::uint64_t seed,
         const wire::ArraySuperblock& superblock = first_superblock()) {
        auto own = std::make_unique<CrashDisk>(raid::part_length(superblock), seed);
        disk = own.get();
        disk->become(octets);
        part = std::make_unique<BoxPart>(owner, world, std::move(own), BoxPart::Options{});
    }
    Result<wire::ArraySuperblock> load() {
        std::optional<Result<void>> told;
        part->load([&](Result<void> outcome) { told = outcome; });
        disk->run();
        if (!told || !*told) return Error{.code = told ? told->error().code : Code::timed_out};
        return part->superblock();
    }
    SparseOctets power_cut() {
        return disk->after_power_cut(CrashDisk::After::drawn, disk->random);
    }

    test::ManualWorld world;
    Owner owner;
    CrashDisk* disk;
    std::unique_ptr<BoxPart> part;
};

SparseOctets new_disk(const wire::ArraySuperblock& superblock = first_superblock()) {
    Life life({}, 1, superblock);
    bool made = false;
    life.part->create(superblock, [&](Result<void> outcome) { made = bool(outcome); });
    life.disk->run();
    EXPECT_TRUE(made);
    return life.power_cut();
}

struct Kept final : raid::SuperblockKeeper::Listener {
    void superblock_kept(Result<void> outcome) override { done = outcome.has_value(); }
    bool done = false;
};

/// What is left when the power goes after so many steps of keeping another; `done`: it was told so.
SparseOctets cut_amid_change(const wire::ArraySuperblock& next, int steps, std::uint64_t seed,
                             bool& done) {
    CrashDisk disk(raid::part_length(first_superblock()), seed);
    disk.become(new_disk());
    Kept kept;
    raid::SuperblockKeeper keeper(disk, kept, first_superblock(), static_cast<unsigned>(seed % 2));
    keeper.keep(next);
    for (int i = 0; i < steps && disk.step(); ++i) {
    }
    done = kept.done;
    return disk.after_power_cut(CrashDisk::After::drawn, disk.random);
}

void rot(SparseOctets& octets, std::uint64_t copy) {
    std::byte octet{};
    const auto at = copy * wire::superblock_size + 64;
    octets.read(at, {&octet, 1});
    octet ^= std::byte{0x40};
    octets.write(at, {&octet, 1});
}

TEST(APartsSuperblock, IsTheSameTwiceOnceItWasReadWheneverThePowerWent) {
    auto next = first_superblock();
    next.epoch = wire::Epoch{7};
    test::for_each_seed(40, [&](std::uint64_t seed) {
        for (int steps = 0; steps <= 4; ++steps) {
            bool done = false;
            const auto left = cut_amid_change(next, steps, seed, done);
            Life life(left, seed);
            const auto found = life.load();
            ASSERT_TRUE(found);
            if (done) EXPECT_EQ(found->epoch, next.epoch);
            for (const std::uint64_t rotten : {0u, 1u}) {
                auto octets = life.power_cut();
                rot(octets, rotten);
                const auto again = Life(octets, seed).load();
                ASSERT_TRUE(again);
                EXPECT_EQ(again->epoch, found->epoch) << "what it obeyed it obeys still";
            }
        }
    });
}

TEST(APartsSuperblock, OutlivesALossOfPowerWhileItIsMended) {
    test::for_each_seed(40, [&](std::uint64_t seed) {
        for (const std::uint64_t rotten : {0u, 1u}) {
            auto octets = new_disk();
            rot(octets, rotten);
            for (int steps = 0; steps <= 2; ++steps) {
                Life life(octets, seed);
                bool told = false;
                life.part->load([&](Result<void> outcome) { told = outcome.has_value(); });
                for (int i = 0; i < steps; ++i) life.disk->step();
                EXPECT_EQ(told, steps == 2);
                auto left = life.power_cut();
                if (told) rot(left, rotten ^ 1);
                life.disk->run();
                const auto found = Life(left, seed).load();
                ASSERT_TRUE(found);
                EXPECT_EQ(found->epoch, wire::Epoch{1});
            }
        }
    });
}

TEST(APartsSuperblock, IsNotWrittenWhenBothAreRight) {
    Life life(new_disk(), 1);
    ASSERT_TRUE(life.load());
    EXPECT_EQ(life.disk->writes, 0u);
}

TEST(APartsSuperblock, IsNotFoundWhereNeitherIsWhole) {
    auto octets = new_disk();
    rot(octets, 0);
    rot(octets, 1);
    const auto found = Life(octets, 1).load();
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Code::not_found);
}

TEST(APartsSuperblock, IsWhatTheGoodCopySaysWhereTheOtherCannotBeMended) {
    for (const std::uint64_t rotten : {0u, 1u}) {
        auto octets = new_disk();
        rot(octets, rotten);
        Life life(octets, 1);
        std::optional<Result<void>> told;
        life.part->load([&](Result<void> outcome) { told = outcome; });
        life.disk->step();  // both are read
        life.disk->fails = true;
        life.disk->run();
        ASSERT_TRUE(told && *told) << "a part that is whole is not thrown away";
        EXPECT_EQ(life.part->superblock(), first_superblock());
    }
}

TEST(APartsSuperblock, IsNotFoundWhereTheDiskEndsBeforeIt) {
    test::ManualWorld world;
    Owner owner;
    BoxPart part(owner, world, std::make_unique<CrashDisk>(4096, 1), {});
    std::optional<Result<void>> told;
    part.load([&](Result<void> outcome) { told = outcome; });
    ASSERT_TRUE(told && !*told);
    EXPECT_EQ(told->error().code, Code::not_found);
}

TEST(APartsSuperblock, IsNotTakenForDamagedWhereItIsOnlyNotUnderstood) {
    auto of_the_future = first_superblock();
    of_the_future.volume.level = 77;
    auto octets = new_disk();
    octets.write(0, raid::encode_superblock(of_the_future));
    Life life(octets, 1);
    const auto found = life.load();
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Code::unsupported);
    EXPECT_EQ(life.disk->writes, 0u);
}

TEST(APartsJournal, IsDamagedWhereItWasReadAndIsNotWhatWasWritten) {
    const auto superblock = first_superblock(wire::ArrayConsistency::journal);
    auto octets = new_disk(superblock);
    {
        Life life(octets, 1, superblock);
        ASSERT_TRUE(life.load());
        EXPECT_FALSE(life.part->has_damaged_journal() || life.part->has_lost_its_journal());
    }
    octets.write(superblock.journal_offset,
                 std::vector<std::byte>(superblock.journal_length, std::byte{0x5a}));
    Life life(octets, 1, superblock);
    EXPECT_TRUE(life.load()) << "whose it is it knows";
    EXPECT_TRUE(life.part->has_damaged_journal());
    EXPECT_EQ(life.disk->writes, 0u) << "for who wants to look at it";
}

TEST(APartsJournal, IsNotTakenForDamagedWhereItOnlyCannotBeRead) {
    const auto superblock = first_superblock(wire::ArrayConsistency::journal);
    Life life(new_disk(superblock), 1, superblock);
    std::optional<Result<void>> told;
    life.part->load([&](Result<void> outcome) { told = outcome; });
    life.disk->step();  // the superblocks are read
    life.disk->fails = true;
    life.disk->run();
    ASSERT_TRUE(told && *told);
    EXPECT_FALSE(life.part->has_damaged_journal());
    EXPECT_TRUE(life.part->has_lost_its_journal());
}

}  // namespace
}  // namespace weft::node
