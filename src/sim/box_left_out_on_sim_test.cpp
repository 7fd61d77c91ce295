// SPDX-License-Identifier: Apache-2.0
// Parts that a box has and cannot serve: what becomes of them, and that nothing is thrown away that
// may be whole.
#include <algorithm>

#include "support/array_boxes.hpp"
#include "support/seeds.hpp"
#include "support/test_request.hpp"

namespace weft::sim {
namespace {

using wire::ArrayAction;
using wire::ArrayOutcome;
using namespace std::chrono_literals;

constexpr std::uint64_t superblocks = 2 * wire::superblock_size;

class LeftOutPart : public test::ArrayBoxes {
protected:
    Disk& disk() { return world.disk(oak.part_path(photos)); }
    void damage() {
        for (const std::uint64_t copy : {0u, 1u}) disk().rot(copy * wire::superblock_size + 99, 3);
    }
    void restart() {
        oak.stop();
        oak.start();
    }
    bool said(const std::string& what) const {
        return std::ranges::any_of(
            oak.news, [&](const auto& each) { return each.find(what) != std::string::npos; });
    }
    std::vector<std::byte> beginning_of(const std::string& path) {
        std::vector<std::byte> octets(superblocks);
        world.disk(path).peek(0, octets);
        return octets;
    }
    void ask(BlockOperation operation, std::uint64_t at, const std::vector<std::byte>& octets) {
        auto device = std::move(*world.open_disk({.path = oak.part_path(photos)}));
        test::TestRequest request(operation, at, octets.size());
        if (operation == BlockOperation::write) request.octets = octets;
        if (operation == BlockOperation::write) request.with_memory(request.octets);
        request.durable = operation == BlockOperation::write;
        device->submit(request);
        oak.run_until([&] { return request.done(); });
        EXPECT_TRUE(request.succeeded());
    }
    void write_superblock(unsigned copy, const wire::ArraySuperblock& superblock) {
        const auto image = raid::encode_superblock(superblock);
        ask(BlockOperation::write, copy * wire::superblock_size, {image.begin(), image.end()});
    }
    /// Another disk is there instead.
    void change_disk(const DiskSpec& spec) {
        bool gone = false;
        world.host(oak.machine).remove_disk(oak.part_path(photos), [&](Result<void>) {
            gone = true;
        });
        oak.run_until([&] { return gone; });
        world.make_disk(oak.part_path(photos), spec);
    }
    std::string replaced_path() const { return oak.part_path(photos) + ".1"; }
};

TEST_F(LeftOutPart, IsKeptWhereItCouldNotBeRead) {
    set_up();
    oak.stop();
    const auto before = beginning_of(oak.part_path(photos));
    disk().make_bad(0, 512, BadFor::reads);
    oak.start();
    EXPECT_TRUE(said("; the box starts without this part, and keeps it as it is"));
    EXPECT_EQ(oak.description().parts, 0);
    EXPECT_EQ(create(oak, 0), ArrayOutcome::disk_failed) << "it may be whole";
    disk().heal();
    EXPECT_EQ(beginning_of(oak.part_path(photos)), before);
    restart();
    EXPECT_EQ(oak.description().parts, 1) << "as if nothing had been";
    EXPECT_EQ(create(oak, 0), ArrayOutcome::already_there);
}

TEST_F(LeftOutPart, GivesItsPlaceToAnotherWhereItIsDamagedAndStaysBesideIt) {
    set_up();
    oak.stop();
    damage();
    const auto damaged = beginning_of(oak.part_path(photos));
    oak.start();
    EXPECT_TRUE(said("no superblock on it is whole; the box starts without this part"));
    EXPECT_EQ(create(oak, 0), ArrayOutcome::done);
    EXPECT_EQ(beginning_of(oak.part_path(photos)), damaged) << "for who wants to look at it";
    EXPECT_EQ(oak.description().free, 62u << 20) << "it is not counted twice";
    restart();
    EXPECT_EQ(oak.description().parts, 1);
    EXPECT_EQ(oak.send(ArrayAction::delete_part, address(oak, photos)), ArrayOutcome::done);
    EXPECT_FALSE(world.disks().contains(oak.part_path(photos)));
    EXPECT_FALSE(world.disks().contains(replaced_path()));
    EXPECT_EQ(oak.description().free, 64u << 20);
    EXPECT_EQ(create(oak, 0), ArrayOutcome::done);
}

TEST_F(LeftOutPart, IsRemovedWhenToldTo) {
    set_up();
    oak.stop();
    disk().make_bad(0, 512, BadFor::reads);
    oak.start();
    EXPECT_EQ(oak.send(ArrayAction::delete_part, address(oak, photos)), ArrayOutcome::done);
    EXPECT_FALSE(world.disks().contains(oak.part_path(photos)));
    EXPECT_EQ(oak.description().free, 64u << 20);
    EXPECT_EQ(create(oak, 0), ArrayOutcome::done);
}

TEST_F(LeftOutPart, IsNotWhatIsAnothersHoweverShortItIs) {
    set_up();
    const auto elms = superblock(elm, 1);
    oak.stop();
    change_disk({.size = 1u << 20});
    for (const unsigned copy : {0u, 1u}) write_superblock(copy, elms);
    const auto refusal = oak.try_start();
    ASSERT_TRUE(refusal) << "its superblock says that it is longer, and whose it is";
    EXPECT_NE(refusal->find("this is a disk of another box"), std::string::npos) << *refusal;
}

TEST_F(LeftOutPart, IsNotWhatThisProgramDoesNotUnderstand) {
    set_up();
    auto of_the_future = superblock(oak, 0);
    of_the_future.volume.level = 77;
    oak.stop();
    write_superblock(1, of_the_future);
    const auto refusal = oak.try_start();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(*refusal, oak.part_path(photos) + ": its superblock is whole, and not understood");
}

TEST_F(LeftOutPart, IsServedWhereOnlyOneCopyOfItsSuperblockCanBeHad) {
    set_up();
    oak.stop();
    disk().rot(99, 3);
    disk().make_bad(0, wire::superblock_size, BadFor::writes);
    oak.start();
    EXPECT_EQ(oak.description().parts, 1);
}

/// Here what finds no room is the mending of a superblock; a journal that has something to bring
/// home is no different.
TEST_F(LeftOutPart, IsServedLaterWhereItWaitsForRoom) {
    set_up();
    const auto known = superblock(oak, 0);
    oak.stop();
    // Much: a disk may keep some of what is trimmed.
    constexpr std::uint64_t filler = 1u << 20;
    const std::vector<std::byte> much(64u << 10);
    change_disk({.size = 2u << 20, .space = wire::superblock_size + much.size()});
    write_superblock(0, known);
    ask(BlockOperation::write, filler, much);
    oak.start();
    EXPECT_TRUE(said("it waits for room; the box starts without this part, and keeps it as it is"));
    EXPECT_EQ(oak.description().parts, 0);
    EXPECT_EQ(create(oak, 0), ArrayOutcome::disk_failed);
    EXPECT_EQ(oak.send(ArrayAction::delete_part, address(oak, photos)), ArrayOutcome::no_room);
    ask(BlockOperation::trim, filler, much);
    oak.run_until([&] { return oak.refusals > 0; });
    EXPECT_TRUE(said("this part is served from now on"));
    oak.run_until([&] { return oak.session->is_up(); });
    EXPECT_EQ(oak.description().parts, 1) << "whoever asks again hears of it";
    EXPECT_EQ(oak.send(ArrayAction::abort, address(oak, photos)), ArrayOutcome::done);
}

TEST_F(LeftOutPart, IsFoundToBeDamagedLaterWhereItWaitsForRoomFirst) {
    consistency = wire::ArrayConsistency::journal;
    set_up();
    const auto known = superblock(oak, 0);
    oak.stop();
    const std::vector<std::byte> much(64u << 10);
    change_disk({.size = raid::part_length(known), .space = wire::superblock_size + much.size()});
    write_superblock(0, known);  // and no journal
    ask(BlockOperation::write, known.data_offset, much);
    oak.start();
    EXPECT_TRUE(said("it waits for room; the box starts without this part, and keeps it as it is"));
    EXPECT_EQ(create(oak, 0), ArrayOutcome::disk_failed);
    ask(BlockOperation::trim, known.data_offset, much);
    oak.run_until([&] { return oak.refusals > 0; });
    EXPECT_TRUE(said("its journal is damaged"));
    oak.run_until([&] { return oak.session->is_up(); });
    EXPECT_EQ(oak.description().parts, 0);
    EXPECT_EQ(oak.description().left_out, 1);
    EXPECT_EQ(create(oak, 0), ArrayOutcome::done);
    EXPECT_TRUE(world.disks().contains(replaced_path()));
}

TEST_F(LeftOutPart, WaitsForRoomNoLongerThanTheBoxIsThere) {
    set_up();
    const auto known = superblock(oak, 0);
    oak.stop();
    change_disk({.size = 2u << 20, .space = 4096});
    write_superblock(0, known);
    oak.start();
    oak.stop();
}

/// A box whose power goes while a new part takes the place of a damaged one.
class CutShort final : public LeftOutPart {
public:
    void TestBody() override {}
    bool replace_for(Duration time) {
        set_up();
        oak.stop();
        damage();
        const auto damaged = beginning_of(oak.part_path(photos));
        oak.start();
        std::vector<std::byte> parameters;
        for (const auto& octet : encoded(address(oak, photos))) parameters.push_back(octet);
        for (const auto& octet : encoded(superblock(oak, 0))) parameters.push_back(octet);
        oak.session->send({.action = ArrayAction::create_part,
                           .parameter_length = static_cast<std::uint32_t>(parameters.size())},
                          parameters, 0, [](Result<node::BoxReply>) {});
        world.run_for(time);
        oak.cut_power_amid();
        oak.start();
        const bool is_there = oak.description().parts == 1;
        EXPECT_EQ(beginning_of(oak.part_path(photos)), damaged);
        EXPECT_EQ(oak.node->facts().parts.size(), 1u) << "it is known in any case";
        EXPECT_EQ(world.disks().contains(replaced_path()), is_there) << "none is left over";
        EXPECT_EQ(create(oak, 0), is_there ? ArrayOutcome::already_there : ArrayOutcome::done);
        return is_there;
    }
};

TEST(LeftOutPartProperty, IsKnownWheneverThePowerGoesWhileItIsReplaced) {
    int replaced = 0, not_yet = 0;
    test::for_each_seed(30, [&](std::uint64_t seed) {
        static auto& left_behind = *new std::vector<CutShort*>;  // see cut_power_amid()
        left_behind.push_back(new CutShort);
        ++(left_behind.back()->replace_for(2ms * seed) ? replaced : not_yet);
    });
    EXPECT_GT(replaced, 0);
    EXPECT_GT(not_yet, 0);
}

}  // namespace
}  // namespace weft::sim
