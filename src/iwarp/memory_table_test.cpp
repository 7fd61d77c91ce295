// SPDX-License-Identifier: Apache-2.0
// Regions and how they are used. Windows, holding and fast registration: memory_windows_test.cpp,
// memory_revocation_test.cpp.
#include "iwarp/memory_table.hpp"

#include <set>

#include "support/memory_table_fixture.hpp"

namespace weft::iwarp {
namespace {

using test::addresses;
using test::MemoryTableTest;
using enum MemoryFault;

TEST_F(MemoryTableTest, OpensARegionToWhomItBelongs) {
    auto tag = add_all();
    EXPECT_EQ(bytes(tag, base, 64), memory_from(0, 64));
    EXPECT_EQ(bytes(tag, base + 60, 4), memory_from(60, 4));
    EXPECT_EQ(use(tag, base, 64, all_rights), std::nullopt);
    EXPECT_EQ(use(tag, base, 64, Rights::local_read, our_other_pair), std::nullopt);
}

TEST_F(MemoryTableTest, DoesNotOpenARegionToAnotherDomain) {
    auto tag = add_all();
    for (auto right : {Rights::local_read, Rights::local_write, Rights::remote_read})
        EXPECT_EQ(use(tag, base, 1, right, stranger), wrong_domain);
}

TEST_F(MemoryTableTest, OpensToAPeerNoMoreThanItsQueuePairLets) {
    auto tag = add_all();
    auto limit = Rights::remote_read;
    Asker limited = us;
    limited.limit = &limit;
    EXPECT_EQ(use(tag, base, 1, Rights::remote_read, limited), std::nullopt);
    EXPECT_EQ(use(tag, base, 1, Rights::remote_write, limited), no_rights);
    EXPECT_EQ(use(tag, base, 1, Rights::remote_atomic, limited), no_rights);
    limit = {};
    EXPECT_EQ(use(tag, base, 1, Rights::remote_read, limited), no_rights);
    EXPECT_EQ(use(tag, base, 1, Rights::local_write, limited), std::nullopt) << "our own work";
}

TEST_F(MemoryTableTest, KnowsNoTagThatItDidNotGiveOut) {
    EXPECT_EQ(use(SteeringTag{0}, base, 1), invalid_tag);
    EXPECT_EQ(use(SteeringTag{0xffffffff}, base, 1), invalid_tag);
    auto tag = add_all();
    EXPECT_EQ(use(SteeringTag{0}, base, 1), invalid_tag);
    EXPECT_EQ(use(SteeringTag{0xff}, base, 1), invalid_tag) << "an index of 0, whatever the key";
    auto one_index = 0x100u;
    EXPECT_EQ(use(SteeringTag(static_cast<std::uint32_t>(tag) + one_index), base, 1), invalid_tag);
    EXPECT_EQ(use(SteeringTag(static_cast<std::uint32_t>(tag) - one_index), base, 1), invalid_tag);
    for (unsigned other = 1; other < 256; ++other)
        EXPECT_EQ(use(with_key(tag, key(tag) + other), base, 1), invalid_tag);
}

TEST_F(MemoryTableTest, GivesTheRightsThatWereGivenAndNoOthers) {
    std::array each{Rights::local_write, Rights::remote_read, Rights::remote_write,
                    Rights::remote_atomic, Rights::bind_windows};
    for (auto held : each) {
        auto tag = add_all(held);
        EXPECT_EQ(use(tag, base, 1, Rights::local_read), std::nullopt) << "its owner may read it";
        for (auto asked : each)
            EXPECT_EQ(use(tag, base, 1, asked), held == asked ? Fault{} : no_rights);
        EXPECT_EQ(use(tag, base, 1, all_rights), no_rights) << "all that is asked for is needed";
        EXPECT_TRUE(table.remove(tag));
    }
}

TEST_F(MemoryTableTest, KeepsWithinTheBoundsOfARegion) {
    auto tag = add_all();
    EXPECT_EQ(use(tag, base - 1, 1), out_of_bounds);
    EXPECT_EQ(use(tag, base - 1, 66), out_of_bounds);
    EXPECT_EQ(use(tag, base, 65), out_of_bounds);
    EXPECT_EQ(use(tag, base + 63, 1), std::nullopt);
    EXPECT_EQ(use(tag, base + 63, 2), out_of_bounds);
    EXPECT_EQ(use(tag, base + 64, 1), out_of_bounds);
    EXPECT_EQ(use(tag, 0, 1), out_of_bounds);
    EXPECT_EQ(use(tag, 0, SIZE_MAX), out_of_bounds);
    EXPECT_EQ(use(tag, UINT64_MAX, 1), out_of_bounds);
}

TEST_F(MemoryTableTest, NoticesOffsetsThatWrap) {
    auto tag = add_all();
    EXPECT_EQ(use(tag, UINT64_MAX, 2), offset_wraps);
    EXPECT_EQ(use(tag, 2, SIZE_MAX), offset_wraps);
    EXPECT_EQ(use(tag, base, SIZE_MAX), offset_wraps);
    auto wraps_to_the_middle = UINT64_MAX - (base + 32) + 1;
    EXPECT_EQ(use(tag, base + 32, wraps_to_the_middle), out_of_bounds) << "the last that fits";
    EXPECT_EQ(use(tag, base + 32, wraps_to_the_middle + 1), offset_wraps);
}

TEST_F(MemoryTableTest, HasRegionsThatEndWithTheLastAddress) {
    auto last = UINT64_MAX - 63;
    auto add_at = [&](std::uint64_t address, Addressing addressing) {
        return table.add_region(us.domain, std::array{Buffer(memory)}, address, all_rights,
                                addressing);
    };
    auto tag = add_at(last, Addressing::by_address);
    ASSERT_TRUE(tag);
    EXPECT_EQ(bytes(*tag, UINT64_MAX, 1), memory_from(63, 1));
    EXPECT_EQ(bytes(*tag, last, 64), memory_from(0, 64));
    EXPECT_EQ(use(*tag, last - 1, 1), out_of_bounds);
    EXPECT_EQ(fault(add_at(last + 1, Addressing::by_address)), offset_wraps);
    EXPECT_EQ(fault(add_at(last + 1, Addressing::from_zero)), std::nullopt)
        << "an address that is not used cannot be wrong";
}

TEST_F(MemoryTableTest, CountsFromZeroWhereAsked) {
    auto tag = add({memory}, all_rights, Addressing::from_zero);
    EXPECT_EQ(bytes(tag, 0, 64), memory_from(0, 64));
    EXPECT_EQ(bytes(tag, 5, 2), memory_from(5, 2));
    EXPECT_EQ(use(tag, 64, 1), out_of_bounds);
    EXPECT_EQ(use(tag, base, 1), out_of_bounds);
}

TEST_F(MemoryTableTest, DoesNotLookAtUsesOfNoBytes) {
    auto range = table.resolve(SteeringTag{0}, UINT64_MAX, 0, all_rights, stranger);
    ASSERT_TRUE(range);
    EXPECT_TRUE(range->empty());
}

TEST_F(MemoryTableTest, CountsPiecesAsOneRun) {
    Buffer whole(memory);
    auto tag = add({whole.subspan(40, 3), {}, whole.subspan(0, 1), whole.subspan(50, 10)});
    auto expected = memory_from(40, 3);
    for (auto* octet : memory_from(0, 1)) expected.push_back(octet);
    for (auto* octet : memory_from(50, 10)) expected.push_back(octet);
    for (std::size_t start = 0; start < 14; ++start)
        for (std::size_t size = 1; start + size <= 14; ++size) {
            auto first = expected.begin() + static_cast<std::ptrdiff_t>(start);
            EXPECT_EQ(bytes(tag, base + start, size),
                      std::vector(first, first + static_cast<std::ptrdiff_t>(size)));
        }
    EXPECT_EQ(use(tag, base, 15), out_of_bounds);
    EXPECT_EQ(use(tag, base + 13, 2), out_of_bounds);
}

TEST_F(MemoryTableTest, HasRegionsWithoutBytes) {
    auto tag = add({Buffer{}});
    EXPECT_EQ(use(tag, base, 0), std::nullopt);
    EXPECT_EQ(use(tag, base, 1), out_of_bounds);
}

TEST_F(MemoryTableTest, BoundsThePiecesOfARegion) {
    std::vector<Buffer> pieces(pieces_per_region_max + 1, Buffer(memory).first(1));
    auto add_first = [&](std::size_t count) {
        return table.add_region(us.domain, std::span(pieces).first(count), base, all_rights,
                                Addressing::by_address);
    };
    EXPECT_EQ(fault(add_first(pieces_per_region_max + 1)), too_many_pieces);
    EXPECT_EQ(fault(table.allocate(us.domain, pieces_per_region_max + 1)), too_many_pieces);
    EXPECT_EQ(table.size(), 0u);
    auto tag = add_first(pieces_per_region_max);
    ASSERT_TRUE(tag);
    EXPECT_EQ(bytes(*tag, base + pieces_per_region_max - 1, 1), memory_from(0, 1));
}

TEST_F(MemoryTableTest, RefusesPiecesWhoseSizesDoNotAddUp) {
    std::array huge{Buffer(memory.data(), SIZE_MAX), Buffer(memory)};
    auto added = table.add_region(us.domain, huge, 0, all_rights, Addressing::from_zero);
    EXPECT_EQ(fault(added), offset_wraps);
    EXPECT_EQ(table.size(), 0u);
}

TEST_F(MemoryTableTest, IsBounded) {
    for (int i = 0; i < 8; ++i) add_all();
    EXPECT_EQ(table.size(), 8u);
    auto one_more = table.add_region(us.domain, {}, base, all_rights, Addressing::by_address);
    EXPECT_EQ(fault(one_more), table_full);
    EXPECT_EQ(one_more.error().code, Code::exhausted);
    EXPECT_EQ(fault(table.allocate(us.domain, 1)), table_full);
    EXPECT_EQ(fault(table.add_window(us.domain, verbs::WindowKind::by_domain)), table_full);
    EXPECT_EQ(table.size(), 8u);
}

TEST_F(MemoryTableTest, GivesOutTagsThatSayNothingOfTheNext) {
    std::vector<std::uint32_t> indices, keys;
    for (int i = 0; i < 8; ++i) {
        auto tag = add_all();
        indices.push_back(index(tag));
        keys.push_back(key(tag));
    }
    for (int i = 1; i < 8; ++i) EXPECT_NE(indices[i], indices[i - 1] + 1);
    EXPECT_GT(std::set(keys.begin(), keys.end()).size(), 2u);
    MemoryTable other(8, 101);
    EXPECT_NE(index(*other.allocate(us.domain, 1)), indices[0]);
}

TEST_F(MemoryTableTest, LetsDeadTagsStayDead) {
    MemoryTable small(2, 5);
    std::set<std::uint32_t> indices;
    std::vector<SteeringTag> tags;
    for (int i = 0; i < 1000; ++i) {
        auto tag = *small.add_region(us.domain, std::array{Buffer(memory)}, base, all_rights,
                                     Addressing::by_address);
        EXPECT_TRUE(indices.insert(index(tag)).second);
        EXPECT_TRUE(small.resolve(tag, base, 1, Rights::remote_read, us));
        for (auto old : tags) {
            EXPECT_EQ(fault(small.resolve(old, base, 1, Rights::remote_read, us)), invalid_tag);
            EXPECT_EQ(fault(small.remove(old)), invalid_tag);
            EXPECT_FALSE(small.is_held(old));
        }
        tags.push_back(tag);
        ASSERT_TRUE(small.remove(tag));
    }
}

TEST_F(MemoryTableTest, HasAFreshTagForEachUseOfAnAllocatedEntry) {
    auto tag = *table.allocate(us.domain, 4);
    std::set<std::uint32_t> keys{key(tag)};
    bool in_order = true;
    for (std::uint32_t last = key(tag); auto fresh = table.fresh_tag(tag);) {
        EXPECT_EQ(index(*fresh), index(tag));
        EXPECT_TRUE(keys.insert(key(*fresh)).second);
        in_order &= key(*fresh) == ((last + 1) & 0xff);
        last = key(*fresh);
        ASSERT_TRUE(table.fast_register(registration(*fresh), us));
        EXPECT_EQ(use(*fresh, base, 1), std::nullopt);
        ASSERT_TRUE(table.invalidate(*fresh, us));
        tag = *fresh;
    }
    EXPECT_EQ(keys.size(), 256u);
    EXPECT_FALSE(in_order);
    EXPECT_EQ(table.fresh_tag(add_all()), std::nullopt) << "a region has its tag for life";
    ASSERT_TRUE(table.remove(tag));
    EXPECT_EQ(table.fresh_tag(tag), std::nullopt);
}

}  // namespace
}  // namespace weft::iwarp
