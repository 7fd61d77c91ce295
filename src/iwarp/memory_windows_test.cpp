// SPDX-License-Identifier: Apache-2.0
// Windows: parts of a region with a tag, bounds and rights of their own.
#include "support/memory_table_fixture.hpp"

namespace weft::iwarp {
namespace {

using enum MemoryFault;
using verbs::WindowKind;

class MemoryWindowTest : public test::MemoryTableTest {
protected:
    SteeringTag add_window(WindowKind kind) { return *table.add_window(us.domain, kind); }

    /// Sixteen bytes from the eighth on, to be read and written.
    verbs::WindowBinding binding(SteeringTag window) const {
        return {.window = window,
                .region = region,
                .address = base + 8,
                .size = 16,
                .rights = Rights::remote_read | Rights::remote_write};
    }
    SteeringTag bound(WindowKind kind) { return *table.bind(binding(add_window(kind)), us); }
    Fault bind_with(SteeringTag window, auto change, Asker asker = us) {
        auto wanted = binding(window);
        change(wanted);
        return fault(table.bind(wanted, asker));
    }

    SteeringTag region = add_all();
};

TEST_F(MemoryWindowTest, OpensNothingBeforeItIsBound) {
    for (auto kind : {WindowKind::by_domain, WindowKind::by_queue_pair}) {
        auto window = add_window(kind);
        EXPECT_EQ(use(window, base + 8, 1), invalid_tag);
        EXPECT_EQ(fault(table.invalidate(window, us)), invalid_tag);
    }
}

TEST_F(MemoryWindowTest, ShowsItsPartOfTheRegion) {
    for (auto kind : {WindowKind::by_domain, WindowKind::by_queue_pair}) {
        auto window = bound(kind);
        EXPECT_EQ(bytes(window, base + 8, 16), memory_from(8, 16));
        EXPECT_EQ(bytes(window, base + 23, 1), memory_from(23, 1));
        EXPECT_EQ(use(window, base + 7, 1), out_of_bounds);
        EXPECT_EQ(use(window, base + 8, 17), out_of_bounds);
        EXPECT_EQ(use(window, base + 24, 1), out_of_bounds);
        EXPECT_EQ(use(window, base + 23, SIZE_MAX), offset_wraps);
    }
}

TEST_F(MemoryWindowTest, CountsFromItsOwnFirstByteWhereAsked) {
    auto wanted = binding(add_window(WindowKind::by_queue_pair));
    wanted.addressing = Addressing::from_zero;
    auto window = *table.bind(wanted, us);
    EXPECT_EQ(bytes(window, 0, 16), memory_from(8, 16));
    EXPECT_EQ(use(window, 16, 1), out_of_bounds);
    EXPECT_EQ(use(window, base + 8, 1), out_of_bounds);
}

TEST_F(MemoryWindowTest, CountsAsItsRegionDoes) {
    Buffer whole(memory);
    auto pieces =
        add({whole.subspan(30, 10), whole.subspan(0, 10)}, all_rights, Addressing::from_zero);
    auto wanted = binding(add_window(WindowKind::by_domain));
    wanted.region = pieces;
    wanted.address = 8;
    wanted.size = 4;
    auto window = *table.bind(wanted, us);
    EXPECT_EQ(bytes(window, 9, 3), (std::vector{&memory[39], &memory[0], &memory[1]}));
    EXPECT_EQ(use(window, 12, 1), out_of_bounds);
    EXPECT_EQ(use(window, 0, 1), out_of_bounds);
}

TEST_F(MemoryWindowTest, HasTheRightsItWasBoundWith) {
    auto window = bound(WindowKind::by_domain);
    EXPECT_EQ(use(window, base + 8, 1, Rights::remote_write), std::nullopt);
    EXPECT_EQ(use(window, base + 8, 1, Rights::remote_atomic), no_rights);
    EXPECT_EQ(use(window, base + 8, 1, Rights::local_write), no_rights);
    EXPECT_EQ(use(window, base + 8, 1, Rights::local_read), no_rights) << "it is for peers";
}

TEST_F(MemoryWindowTest, StandsOnlyOnARegionThatAllowsIt) {
    auto window = add_window(WindowKind::by_domain);
    auto on = [&](Rights region_rights, Rights window_rights) {
        auto under = add_all(region_rights);
        auto outcome = bind_with(window, [&](auto& wanted) {
            wanted.region = under;
            wanted.rights = window_rights;
        });
        EXPECT_TRUE(!outcome || table.remove(under));
        return outcome;
    };
    EXPECT_EQ(on(Rights::local_write | Rights::remote_read, Rights::remote_read), no_rights);
    EXPECT_EQ(on(Rights::bind_windows, Rights::remote_write), no_rights);
    EXPECT_EQ(on(Rights::bind_windows, Rights::remote_atomic), no_rights);
    EXPECT_EQ(on(all_rights, Rights::remote_read | Rights::local_write), no_rights);
    EXPECT_EQ(on(all_rights, Rights::bind_windows), no_rights);
    EXPECT_EQ(on(Rights::bind_windows, Rights::remote_read), std::nullopt);
}

TEST_F(MemoryWindowTest, MayWriteWhereTheRegionMayBeWrittenLocally) {
    auto under = add_all(Rights::bind_windows | Rights::local_write);
    auto wanted = binding(add_window(WindowKind::by_domain));
    wanted.region = under;
    auto window = table.bind(wanted, us);
    ASSERT_TRUE(window);
    EXPECT_EQ(use(*window, base + 8, 1, Rights::remote_write), std::nullopt);
    EXPECT_EQ(use(under, base + 8, 1, Rights::remote_write), no_rights) << "it adds to the region";
}

TEST_F(MemoryWindowTest, LiesInsideItsRegion) {
    auto window = add_window(WindowKind::by_domain);
    auto at = [&](std::uint64_t address, std::uint64_t size) {
        return bind_with(window, [&](auto& wanted) {
            wanted.address = address;
            wanted.size = size;
        });
    };
    EXPECT_EQ(at(base - 1, 1), out_of_bounds);
    EXPECT_EQ(at(base, 65), out_of_bounds);
    EXPECT_EQ(at(base + 64, 1), out_of_bounds);
    EXPECT_EQ(at(base + 1, UINT64_MAX), offset_wraps);
    EXPECT_EQ(at(base, 64), std::nullopt);
}

TEST_F(MemoryWindowTest, StandsOnNothingButAnOpenRegionOfItsDomain) {
    auto window = add_window(WindowKind::by_queue_pair);
    auto other_window = bound(WindowKind::by_domain);
    auto allocated = *table.allocate(us.domain, 1);
    for (auto wrong :
         {other_window, allocated, window, SteeringTag{0}, with_key(region, key(region) + 1)})
        EXPECT_EQ(bind_with(window, [&](auto& wanted) { wanted.region = wrong; }), invalid_tag);
    auto strange = *table.add_region(stranger.domain, std::array{Buffer(memory)}, base, all_rights,
                                     Addressing::by_address);
    EXPECT_EQ(bind_with(window, [&](auto& wanted) { wanted.region = strange; }), wrong_domain);
    EXPECT_EQ(bind_with(
                  window, [](auto&) {}, stranger),
              wrong_domain);
    EXPECT_EQ(use(window, base + 8, 1), invalid_tag);
}

TEST_F(MemoryWindowTest, IsWhatABindingNeeds) {
    for (auto wrong : {region, fast_register(), SteeringTag{0}})
        EXPECT_EQ(bind_with(wrong, [](auto&) {}), invalid_tag);
}

TEST_F(MemoryWindowTest, OfTheFirstKindIsForItsWholeDomain) {
    auto window = bound(WindowKind::by_domain);
    EXPECT_EQ(use(window, base + 8, 1, Rights::remote_read, our_other_pair), std::nullopt);
    EXPECT_EQ(use(window, base + 8, 1, Rights::remote_read, stranger), wrong_domain);
    EXPECT_EQ(fault(table.invalidate(window, us)), cannot_invalidate);
}

TEST_F(MemoryWindowTest, OfTheFirstKindGetsANewKeyWithEachBinding) {
    auto first = add_window(WindowKind::by_domain);
    auto second = *table.bind(binding(first), us);
    auto third = *table.bind(binding(second), our_other_pair);
    EXPECT_EQ(index(second), index(first));
    EXPECT_EQ(index(third), index(first));
    EXPECT_EQ(use(first, base + 8, 1), invalid_tag);
    EXPECT_EQ(use(second, base + 8, 1), invalid_tag);
    EXPECT_EQ(use(third, base + 8, 1), std::nullopt);
}

TEST_F(MemoryWindowTest, OfTheFirstKindTakesTheKeyAfterTheRequestsOwn) {
    auto window = bound(WindowKind::by_domain);
    // Its owner counted a binding that was flushed, and never came here.
    auto counted = with_key(window, key(window) + 1);
    auto now = table.bind(binding(counted), us);
    ASSERT_TRUE(now);
    EXPECT_EQ(*now, with_key(window, key(window) + 2));
    EXPECT_EQ(use(*now, base + 8, 1), std::nullopt);
    EXPECT_EQ(use(counted, base + 8, 1), invalid_tag);
    EXPECT_EQ(use(window, base + 8, 1), invalid_tag);
}

TEST_F(MemoryWindowTest, OfTheFirstKindIsUnboundByABindingOfNoBytes) {
    auto window = bound(WindowKind::by_domain);
    auto unbound = table.bind({.window = window}, us);
    ASSERT_TRUE(unbound);
    EXPECT_NE(*unbound, window);
    EXPECT_EQ(use(window, base + 8, 1), invalid_tag);
    EXPECT_EQ(use(*unbound, base + 8, 1), invalid_tag);
    EXPECT_TRUE(table.remove(region)) << "nothing stands on it any more";
}

TEST_F(MemoryWindowTest, KeepsItsBindingWhenAnotherIsRefused) {
    auto window = bound(WindowKind::by_domain);
    auto before = table.revocations();
    EXPECT_EQ(bind_with(window, [](auto& wanted) { wanted.size = 65; }), out_of_bounds);
    EXPECT_EQ(bytes(window, base + 8, 16), memory_from(8, 16));
    EXPECT_EQ(table.revocations(), before);
}

TEST_F(MemoryWindowTest, OfTheSecondKindIsForOneQueuePair) {
    auto window = bound(WindowKind::by_queue_pair);
    EXPECT_EQ(use(window, base + 8, 1, Rights::remote_read, our_other_pair), wrong_domain);
    EXPECT_EQ(use(window, base + 8, 1, Rights::remote_read, stranger), wrong_domain);
    EXPECT_EQ(fault(table.invalidate(window, our_other_pair)), wrong_domain);
    EXPECT_EQ(fault(table.invalidate(window, stranger)), wrong_domain);
    EXPECT_EQ(use(window, base + 8, 1), std::nullopt);
    EXPECT_TRUE(table.invalidate(window, us));
    EXPECT_EQ(use(window, base + 8, 1), invalid_tag);
}

TEST_F(MemoryWindowTest, OfTheSecondKindIsInvalidatedBeforeItIsBoundAgain) {
    auto window = bound(WindowKind::by_queue_pair);
    auto chosen = with_key(window, key(window) + 9);
    EXPECT_EQ(bind_with(chosen, [](auto&) {}), already_open);
    ASSERT_TRUE(table.invalidate(window, us));
    EXPECT_EQ(*table.bind(binding(chosen), our_other_pair), chosen);
    EXPECT_EQ(use(chosen, base + 8, 1, Rights::remote_read, our_other_pair), std::nullopt);
    EXPECT_EQ(use(chosen, base + 8, 1), wrong_domain) << "it has gone to another queue pair";
    EXPECT_EQ(use(window, base + 8, 1), invalid_tag);
}

TEST_F(MemoryWindowTest, OfTheSecondKindIsNotBoundToNothing) {
    auto window = add_window(WindowKind::by_queue_pair);
    EXPECT_EQ(bind_with(window, [](auto& wanted) { wanted.size = 0; }), out_of_bounds);
}

TEST_F(MemoryWindowTest, KeepsItsRegionFromBeingTakenAway) {
    auto fast = fast_register();
    auto wanted = binding(add_window(WindowKind::by_queue_pair));
    wanted.region = fast;
    auto window = *table.bind(wanted, us);
    auto refusal = table.remove(fast);
    EXPECT_EQ(fault(refusal), has_windows);
    EXPECT_EQ(fault(table.invalidate(fast, us)), cannot_invalidate);
    EXPECT_EQ(use(window, base + 8, 1), std::nullopt);
    ASSERT_TRUE(table.invalidate(window, us));
    EXPECT_TRUE(table.invalidate(fast, us));
    EXPECT_TRUE(table.remove(fast));
}

TEST_F(MemoryWindowTest, LeavesItsRegionWhenItIsRemoved) {
    auto window = bound(WindowKind::by_domain);
    ASSERT_TRUE(table.remove(window));
    EXPECT_EQ(use(window, base + 8, 1), invalid_tag);
    EXPECT_EQ(table.size(), 1u);
    EXPECT_TRUE(table.remove(region));
}

TEST_F(MemoryWindowTest, LeavesOneRegionForAnother) {
    auto window = bound(WindowKind::by_domain);
    auto other = add({Buffer(memory).subspan(32)});
    auto wanted = binding(window);
    wanted.region = other;
    window = *table.bind(wanted, us);
    EXPECT_EQ(bytes(window, base + 8, 1), memory_from(40, 1));
    EXPECT_TRUE(table.remove(region));
    EXPECT_EQ(fault(table.remove(other)), has_windows);
}

TEST_F(MemoryWindowTest, HoldsTheRegionItShowedWhenItWasLent) {
    auto window = bound(WindowKind::by_domain);
    auto held = table.hold(window);
    EXPECT_EQ(held, region);
    auto other = add_all();
    auto wanted = binding(window);
    wanted.region = other;
    window = *table.bind(wanted, us);
    ASSERT_TRUE(table.remove(region));
    EXPECT_TRUE(table.is_held(region));
    EXPECT_FALSE(table.is_held(other));
    ASSERT_TRUE(table.remove(window));
    table.release(held);
    EXPECT_FALSE(table.is_held(region));
    EXPECT_EQ(table.size(), 1u);
}

}  // namespace
}  // namespace weft::iwarp
