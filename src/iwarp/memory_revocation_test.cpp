// SPDX-License-Identifier: Apache-2.0
// Memory that is taken back: removed, or invalidated and registered anew, while it is lent or not.
#include "support/memory_table_fixture.hpp"

namespace weft::iwarp {
namespace {

using test::MemoryTableTest;
using enum MemoryFault;

TEST_F(MemoryTableTest, OpensNothingUnderARemovedTag) {
    auto tag = add_all();
    ASSERT_TRUE(table.remove(tag));
    EXPECT_EQ(use(tag, base, 1), invalid_tag);
    EXPECT_EQ(table.size(), 0u);
    EXPECT_EQ(fault(table.remove(tag)), invalid_tag) << "it is gone already";
}

TEST_F(MemoryTableTest, RemovesOnlyWhatIsThere) {
    auto tag = add_all();
    EXPECT_EQ(fault(table.remove(SteeringTag{0})), invalid_tag);
    EXPECT_EQ(fault(table.remove(with_key(tag, key(tag) + 1))), invalid_tag);
    EXPECT_EQ(use(tag, base, 1), std::nullopt);
}

TEST_F(MemoryTableTest, KeepsARemovedEntryUntilTheLastHolderIsDone) {
    auto tag = add_all();
    auto first = table.hold(tag);
    auto second = table.hold(tag);
    EXPECT_EQ(first, tag);
    auto range = *table.resolve(tag, base, 64, Rights::remote_read, us);
    ASSERT_TRUE(table.remove(tag));
    EXPECT_EQ(use(tag, base, 1), invalid_tag) << "at once";
    EXPECT_EQ(fault(table.remove(tag)), invalid_tag);
    EXPECT_TRUE(table.is_held(tag));
    table.release(first);
    EXPECT_TRUE(table.is_held(tag));
    EXPECT_EQ(table.size(), 1u);
    EXPECT_EQ(test::addresses(range), memory_from(0, 64)) << "what is lent stays as it was";
    table.release(second);
    EXPECT_FALSE(table.is_held(tag));
    EXPECT_EQ(table.size(), 0u);
}

TEST_F(MemoryTableTest, DoesNotGiveOutAnIndexThatIsHeld) {
    MemoryTable small(1, 1);
    auto add = [&] {
        return small.add_region(us.domain, std::array{Buffer(memory)}, base, all_rights,
                                Addressing::by_address);
    };
    auto tag = *add();
    auto held = small.hold(tag);
    ASSERT_TRUE(small.remove(tag));
    EXPECT_EQ(fault(add()), table_full);
    small.release(held);
    auto next = *add();
    auto held_again = small.hold(next);
    EXPECT_FALSE(small.is_held(tag)) << "it is another's index now";
    EXPECT_TRUE(small.is_held(next));
    small.release(held_again);
}

TEST_F(MemoryTableTest, StaysOpenWhenItsHoldersAreDone) {
    auto tag = add_all();
    table.release(table.hold(tag));
    EXPECT_EQ(use(tag, base, 1), std::nullopt);
    EXPECT_EQ(table.size(), 1u);
}

TEST_F(MemoryTableTest, CountsWhatItTakesBack) {
    auto tag = add_all();
    auto fast = fast_register();
    auto before = table.revocations();
    EXPECT_TRUE(table.resolve(tag, base, 1, Rights::remote_read, us));
    table.release(table.hold(tag));
    EXPECT_FALSE(table.invalidate(tag, us));
    EXPECT_EQ(table.revocations(), before) << "nothing was";
    EXPECT_TRUE(table.invalidate(fast, us));
    EXPECT_EQ(table.revocations(), before + 1);
    EXPECT_TRUE(table.remove(fast));
    EXPECT_EQ(table.revocations(), before + 1) << "it opened nothing any more";
    EXPECT_TRUE(table.remove(tag));
    EXPECT_EQ(table.revocations(), before + 2);
}

using MemoryTableDeathTest = MemoryTableTest;

TEST_F(MemoryTableDeathTest, ChecksThatHoldsAndReleasesMatch) {
    auto tag = add_all();
    EXPECT_DEATH(table.release(tag), "must hold");
    auto held = table.hold(tag);
    EXPECT_DEATH(table.release(with_key(held, key(held) + 1)), "must hold");
    ASSERT_TRUE(table.remove(tag));
    EXPECT_DEATH((void)table.hold(tag), "must hold");
    table.release(held);
    EXPECT_DEATH(table.release(held), "must hold");
}

TEST_F(MemoryTableTest, OpensAnAllocatedTagOnlyOnceItIsRegistered) {
    auto tag = *table.allocate(us.domain, 4);
    EXPECT_EQ(use(tag, base, 1), invalid_tag);
    EXPECT_EQ(fault(table.invalidate(tag, us)), invalid_tag);
    ASSERT_TRUE(table.fast_register(registration(tag), us));
    EXPECT_EQ(bytes(tag, base, 64), memory_from(0, 64));
    EXPECT_EQ(use(tag, base, 1, Rights::remote_read, stranger), wrong_domain);
}

TEST_F(MemoryTableTest, TakesTheKeyOfAFastRegistration) {
    auto tag = *table.allocate(us.domain, 4);
    auto chosen = with_key(tag, key(tag) + 77);
    ASSERT_TRUE(table.fast_register(registration(chosen), us));
    EXPECT_EQ(use(chosen, base, 1), std::nullopt);
    EXPECT_EQ(use(tag, base, 1), invalid_tag);
    ASSERT_TRUE(table.invalidate(chosen, us));
    auto next = with_key(tag, key(tag) + 78);
    ASSERT_TRUE(table.fast_register(registration(next), us));
    EXPECT_EQ(use(chosen, base, 1), invalid_tag) << "the old tag does not open new memory";
    EXPECT_TRUE(table.remove(tag)) << "its owner need not know the newest key";
    EXPECT_EQ(use(next, base, 1), invalid_tag);
    EXPECT_EQ(table.size(), 0u);
}

TEST_F(MemoryTableTest, ShowsWhatTheLatestRegistrationSays) {
    auto tag = *table.allocate(us.domain, 4);
    auto wanted = registration(tag);
    ASSERT_TRUE(table.fast_register(wanted, us));
    ASSERT_TRUE(table.invalidate(tag, us));
    wanted.pieces = {Buffer(memory).subspan(9, 2), Buffer(memory).subspan(4, 2)};
    wanted.addressing = Addressing::from_zero;
    wanted.rights = Rights::remote_read;
    ASSERT_TRUE(table.fast_register(wanted, us));
    EXPECT_EQ(bytes(tag, 1, 2), (std::vector{&memory[10], &memory[4]}));
    EXPECT_EQ(use(tag, 0, 5), out_of_bounds);
    EXPECT_EQ(use(tag, 0, 1, Rights::remote_write), no_rights);
}

TEST_F(MemoryTableTest, RefusesFastRegistrationsThatDoNotFit) {
    auto tag = *table.allocate(us.domain, 2);
    auto wanted = registration(tag);
    wanted.pieces.assign(3, Buffer(memory).first(1));
    EXPECT_EQ(fault(table.fast_register(wanted, us)), too_many_pieces);
    wanted = registration(tag);
    wanted.address = UINT64_MAX - 62;
    EXPECT_EQ(fault(table.fast_register(wanted, us)), offset_wraps);
    EXPECT_EQ(fault(table.fast_register(registration(tag), stranger)), wrong_domain);
    EXPECT_EQ(use(tag, base, 1), invalid_tag) << "none of them left anything";
    ASSERT_TRUE(table.fast_register(registration(tag), us));
    EXPECT_EQ(fault(table.fast_register(registration(tag), us)), already_open);
    EXPECT_EQ(fault(table.fast_register(registration(with_key(tag, 200)), us)), already_open);
    EXPECT_EQ(use(tag, base, 1), std::nullopt);
}

TEST_F(MemoryTableTest, FastRegistersAllocatedTagsOnly) {
    auto region = add_all();
    auto window = *table.add_window(us.domain, verbs::WindowKind::by_queue_pair);
    auto removed = *table.allocate(us.domain, 1);
    ASSERT_TRUE(table.remove(removed));
    for (auto tag : {region, window, removed, SteeringTag{0}, SteeringTag{0x12345678}})
        EXPECT_EQ(fault(table.fast_register(registration(tag), us)), invalid_tag);
}

TEST_F(MemoryTableTest, InvalidatesOnlyWhatMayBe) {
    auto region = add_all();
    EXPECT_EQ(fault(table.invalidate(region, us)), cannot_invalidate);
    EXPECT_EQ(fault(table.invalidate(region, stranger)), wrong_domain);
    EXPECT_EQ(use(region, base, 1), std::nullopt);

    auto fast = fast_register();
    EXPECT_EQ(fault(table.invalidate(fast, stranger)), wrong_domain);
    EXPECT_EQ(fault(table.invalidate(with_key(fast, key(fast) + 1), us)), invalid_tag);
    EXPECT_EQ(use(fast, base, 1), std::nullopt);
    EXPECT_TRUE(table.invalidate(fast, our_other_pair)) << "the domain decides";
    EXPECT_EQ(use(fast, base, 1), invalid_tag);
    EXPECT_EQ(fault(table.invalidate(fast, us)), invalid_tag);
    EXPECT_EQ(table.size(), 2u) << "the entry stays";
}

TEST_F(MemoryTableTest, InvalidatesForAPeerOnlyWhatIsOpenToPeers) {
    for (auto rights : {Rights::local_read, Rights::local_write}) {
        auto tag = *table.allocate(us.domain, 4);
        auto wanted = registration(tag);
        wanted.rights = rights;
        ASSERT_TRUE(table.fast_register(wanted, us));
        EXPECT_EQ(fault(table.invalidate_for_peer(tag, us)), cannot_invalidate);
        EXPECT_EQ(fault(table.invalidate_for_peer(tag, stranger)), wrong_domain);
        EXPECT_EQ(use(tag, base, 1, rights), std::nullopt);
        EXPECT_TRUE(table.invalidate(tag, us)) << "its owner may";
        EXPECT_EQ(fault(table.invalidate_for_peer(tag, us)), invalid_tag);
    }
    auto open = fast_register();
    EXPECT_TRUE(table.invalidate_for_peer(open, us));
    EXPECT_EQ(use(open, base, 1), invalid_tag);
}

TEST_F(MemoryTableTest, PutsNoNewMemoryUnderATagWhoseOldIsLent) {
    auto tag = fast_register();
    auto lent = *table.resolve(tag, base, 64, Rights::remote_read, us);
    auto held = table.hold(tag);
    ASSERT_TRUE(table.invalidate(tag, us));
    EXPECT_TRUE(table.is_held(tag));
    auto wanted = registration(tag);
    wanted.pieces = {Buffer(memory).first(1)};
    auto refusal = table.fast_register(wanted, us);
    EXPECT_EQ(fault(refusal), still_lent);
    EXPECT_EQ(refusal.error().code, Code::exhausted) << "later it can be done";
    EXPECT_EQ(test::addresses(lent), memory_from(0, 64));
    table.release(held);
    EXPECT_FALSE(table.is_held(tag));
    EXPECT_TRUE(table.fast_register(wanted, us));
    EXPECT_EQ(use(tag, base, 2), out_of_bounds);
}

}  // namespace
}  // namespace weft::iwarp
