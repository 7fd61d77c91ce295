// SPDX-License-Identifier: Apache-2.0
#include "verbs/protection_domain.hpp"

#include <gtest/gtest.h>

#include <array>

#include "support/manual_world.hpp"

namespace weft::verbs {
namespace {

constexpr auto all_rights = Rights::local_write | Rights::remote_read | Rights::remote_write |
                            Rights::remote_atomic | Rights::bind_windows;

class ProtectionDomainTest : public testing::Test {
protected:
    iwarp::Asker asker() const { return {domain->id(), iwarp::QueuePairId{1}}; }
    bool opens(SteeringTag tag, std::uint64_t offset, std::size_t size) const {
        return core->memory.resolve(tag, offset, size, Rights::remote_read, asker()).has_value();
    }
    std::unique_ptr<MemoryRegion> register_whole() {
        return std::move(*domain->register_memory(memory, all_rights, Addressing::from_zero));
    }
    std::unique_ptr<MemoryRegion> allocate(std::size_t pieces) {
        return std::move(*domain->allocate_tag(pieces));
    }
    std::unique_ptr<MemoryWindow> make_window(WindowKind kind) {
        return std::move(*domain->allocate_window(kind));
    }
    bool turn_and_see(const bool& flag) {
        world.advance({});
        return flag;
    }

    test::ManualWorld world;
    std::shared_ptr<DeviceCore> core = std::make_shared<DeviceCore>(world, DeviceOptions{});
    std::shared_ptr<ProtectionDomainObject> domain = std::make_shared<ProtectionDomainObject>(core);
    std::array<std::byte, 64> memory{};
};

TEST_F(ProtectionDomainTest, RegistersMemoryByItsAddressOrFromZero) {
    auto by_address = domain->register_memory(memory, all_rights, Addressing::by_address);
    ASSERT_TRUE(by_address);
    auto& region = **by_address;
    auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    EXPECT_EQ(region.address(), address);
    EXPECT_EQ(region.size(), memory.size());
    EXPECT_TRUE(opens(region.tag(), address, 64));
    EXPECT_FALSE(opens(region.tag(), address, 65));
    EXPECT_EQ(region.local(8, 4).address, address + 8);
    EXPECT_EQ(region.local(8, 4).size, 4u);
    EXPECT_EQ(region.remote(3).address, address + 3);

    auto from_zero = domain->register_memory(memory, all_rights, Addressing::from_zero);
    ASSERT_TRUE(from_zero);
    EXPECT_EQ((*from_zero)->address(), 0u);
    EXPECT_TRUE(opens((*from_zero)->tag(), 63, 1));
    EXPECT_FALSE(opens((*from_zero)->tag(), address, 1));
    EXPECT_NE((*from_zero)->tag(), region.tag());
}

TEST_F(ProtectionDomainTest, RegistersPiecesAsOneRegion) {
    std::array pieces{Buffer(memory).first(8), Buffer(memory).last(8)};
    auto region = domain->register_pieces(pieces, 0x1000, all_rights);
    ASSERT_TRUE(region);
    EXPECT_EQ((*region)->size(), 16u);
    auto range = core->memory.resolve((*region)->tag(), 0x1004, 8, Rights::remote_read, asker());
    ASSERT_TRUE(range);
    EXPECT_EQ(range->front().data(), &memory[4]);
    range->drop_front(4);
    EXPECT_EQ(range->front().data(), &memory[56]);
}

TEST_F(ProtectionDomainTest, RefusesMorePiecesThanARegionMayHave) {
    std::vector<Buffer> pieces(limits::pieces_per_region + 1, Buffer(memory).first(1));
    Error expected{.code = Code::out_of_range, .where = limits::pieces_per_region};
    auto region = domain->register_pieces(pieces, 0, all_rights);
    ASSERT_FALSE(region);
    EXPECT_EQ(region.error(), expected);
    auto allocated = domain->allocate_tag(limits::pieces_per_region + 1);
    ASSERT_FALSE(allocated);
    EXPECT_EQ(allocated.error(), expected);
}

TEST_F(ProtectionDomainTest, ShowsAnAllocatedTagAsItWasLastRegistered) {
    auto region = allocate(1);
    EXPECT_FALSE(opens(region->tag(), 0, 1));
    auto other_key = SteeringTag{static_cast<std::uint32_t>(region->tag()) ^ 0x55};
    ASSERT_TRUE(core->memory.fast_register({.tag = other_key,
                                            .pieces = {Buffer(memory)},
                                            .rights = all_rights,
                                            .addressing = Addressing::from_zero},
                                           asker()));
    EXPECT_EQ(region->tag(), other_key);
    EXPECT_TRUE(opens(region->tag(), 0, 1));
}

TEST_F(ProtectionDomainTest, ClosesTheTagAtOnceAndSaysSoFromTheLoop) {
    auto region = register_whole();
    bool done = false;
    ASSERT_TRUE(region->deregister([&] { done = true; }));
    EXPECT_FALSE(opens(region->tag(), 0, 1));
    EXPECT_FALSE(done);
    EXPECT_TRUE(turn_and_see(done));
    EXPECT_EQ(region->deregister({}).error().code, Code::not_found) << "it was the last time";
}

TEST_F(ProtectionDomainTest, SaysThatMemoryMayGoOnlyWhenNoByteOfItIsLent) {
    auto region = register_whole();
    auto first = core->memory.hold(region->tag()), second = core->memory.hold(region->tag());
    bool done = false;
    ASSERT_TRUE(region->deregister([&] { done = true; }));
    region.reset();
    EXPECT_FALSE(turn_and_see(done));
    core->memory.release(first);
    EXPECT_FALSE(turn_and_see(done));
    core->memory.release(second);
    EXPECT_FALSE(done) << "not from inside a call";
    EXPECT_TRUE(turn_and_see(done));
}

TEST_F(ProtectionDomainTest, SaysSoOfFastRegisteredMemoryToo) {
    auto region = allocate(1);
    auto other_key = SteeringTag{static_cast<std::uint32_t>(region->tag()) ^ 0x55};
    ASSERT_TRUE(core->memory.fast_register(
        {.tag = other_key, .pieces = {Buffer(memory)}, .rights = all_rights}, asker()));
    auto held = core->memory.hold(other_key);
    bool done = false;
    ASSERT_TRUE(region->deregister([&] { done = true; }));
    EXPECT_FALSE(turn_and_see(done));
    core->memory.release(held);
    EXPECT_TRUE(turn_and_see(done));
}

TEST_F(ProtectionDomainTest, DoesNotDeregisterWhatAWindowShows) {
    auto region = register_whole();
    auto window = make_window(WindowKind::by_domain);
    auto before = window->tag();
    ASSERT_TRUE(core->memory.bind({.window = before,
                                   .region = region->tag(),
                                   .size = 8,
                                   .rights = Rights::remote_read,
                                   .addressing = Addressing::from_zero},
                                  asker()));
    EXPECT_NE(window->tag(), before) << "a binding changes the key";
    EXPECT_TRUE(opens(window->tag(), 0, 8));
    bool done = false;
    EXPECT_FALSE(region->deregister([&] { done = true; }));
    EXPECT_TRUE(opens(region->tag(), 0, 8));
    window.reset();
    EXPECT_TRUE(region->deregister([&] { done = true; }));
    EXPECT_TRUE(turn_and_see(done));
}

TEST_F(ProtectionDomainTest, ClosesTheWindowsOfARegionThatIsDestroyed) {
    auto region = register_whole();
    auto window = make_window(WindowKind::by_domain);
    ASSERT_TRUE(core->memory.bind({.window = window->tag(),
                                   .region = region->tag(),
                                   .size = 8,
                                   .rights = Rights::remote_read},
                                  asker()));
    region.reset();
    EXPECT_FALSE(opens(window->tag(), 0, 8));
}

TEST_F(ProtectionDomainTest, LeavesNothingBehindInWhateverOrderItsObjectsGo) {
    auto region = register_whole();
    auto allocated = allocate(4);
    auto window = make_window(WindowKind::by_queue_pair);
    EXPECT_EQ(core->memory.size(), 3u);
    domain.reset();
    window.reset();
    region.reset();
    allocated.reset();
    EXPECT_EQ(core->memory.size(), 0u);
}

TEST_F(ProtectionDomainTest, HasTagsThatMeanNothingInAnother) {
    auto region = register_whole();
    ProtectionDomainObject other(core);
    EXPECT_FALSE(core->memory.resolve(region->tag(), 0, 1, Rights::remote_read,
                                      {other.id(), iwarp::QueuePairId{1}}));
}

TEST_F(ProtectionDomainTest, WakesWorkThatWaitedForMemory) {
    struct Work final : MemoryWaiter {
        void memory_released() override { ++told; }
        int told = 0;
    } work;
    auto region = allocate(1);
    FastRegistration registration{.tag = region->tag(), .pieces = {Buffer(memory)}};
    ASSERT_TRUE(core->memory.fast_register(registration, asker()));
    auto held = core->memory.hold(region->tag());
    core->memory_waiters.add(work);
    ASSERT_TRUE(core->memory.invalidate(region->tag(), asker()));
    EXPECT_EQ(work.told, 0);
    core->memory.release(held);
    EXPECT_EQ(work.told, 1);
}

TEST_F(ProtectionDomainTest, OpensAnAllocatedTagUnderAKeyOfItsOwnersChoice) {
    auto region = allocate(1);
    auto other = allocate(1);
    auto with_key = [&](std::uint32_t key) {
        return SteeringTag{(static_cast<std::uint32_t>(region->tag()) & ~0xffu) | key};
    };
    auto registration = [&](SteeringTag tag) {
        return FastRegistration{.tag = tag,
                                .pieces = {Buffer(memory)},
                                .address = 0,
                                .rights = all_rights,
                                .addressing = Addressing::from_zero};
    };
    EXPECT_EQ(region->close().error().code, Code::access_denied) << "it is not open";
    ASSERT_TRUE(region->open(registration(with_key(0x5a))));
    EXPECT_TRUE(opens(with_key(0x5a), 0, 64));
    EXPECT_FALSE(opens(with_key(0x5b), 0, 64));
    EXPECT_FALSE(region->open(registration(with_key(0x5b)))) << "it is open already";
    EXPECT_EQ(other->open(registration(with_key(0x5b))).error().code, Code::not_found)
        << "the tag is somebody else's";

    ASSERT_TRUE(region->close());
    EXPECT_FALSE(opens(with_key(0x5a), 0, 64));
    ASSERT_TRUE(region->open(registration(with_key(0x5b))));
    EXPECT_TRUE(opens(with_key(0x5b), 0, 64));
    EXPECT_FALSE(opens(with_key(0x5a), 0, 64));

    auto held = core->memory.hold(region->tag());
    ASSERT_TRUE(region->close());
    EXPECT_EQ(region->open(registration(with_key(1))).error().code, Code::exhausted);
    core->memory.release(held);
    EXPECT_TRUE(region->open(registration(with_key(1))));
}

TEST_F(ProtectionDomainTest, DropsWhatPeersWriteToATagItsOwnerIsDoneWith) {
    auto region = allocate(1);
    const FastRegistration opening{.tag = region->tag(),
                                   .pieces = {memory},
                                   .address = 0,
                                   .rights = Rights::local_write | Rights::remote_write,
                                   .addressing = Addressing::from_zero};
    auto writes = [&] {
        return core->memory.resolve(region->tag(), 0, 64, Rights::remote_write, asker());
    };
    EXPECT_EQ(region->discard().error().code, Code::access_denied) << "it is not open";
    ASSERT_TRUE(region->open(opening));
    auto held = core->memory.hold(region->tag());
    ASSERT_TRUE(region->discard());
    EXPECT_TRUE(region->is_still_lent()) << "as after close()";
    core->memory.release(held);
    EXPECT_FALSE(region->is_still_lent());
    ASSERT_TRUE(writes());
    EXPECT_NE(writes()->front().data(), memory.data());
    EXPECT_FALSE(opens(region->tag(), 0, 1));
    EXPECT_FALSE(region->open(opening)) << "it is still in use";
    ASSERT_TRUE(region->close());
    EXPECT_FALSE(writes());
    EXPECT_TRUE(region->open(opening));
    ASSERT_TRUE(region->discard());
    bool freed = false;
    ASSERT_TRUE(region->deregister([&] { freed = true; }));
    EXPECT_TRUE(turn_and_see(freed));
    EXPECT_FALSE(writes());
    EXPECT_EQ(region->discard().error().code, Code::not_found);
}

}  // namespace
}  // namespace weft::verbs
