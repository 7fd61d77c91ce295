// SPDX-License-Identifier: Apache-2.0
#include "nbd/export.hpp"

#include <gtest/gtest.h>

#include <array>

#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "nbd/outbox.hpp"
#include "support/golden.hpp"
#include "support/held_disk.hpp"

namespace weft::nbd {
namespace {

class ExportsTest : public testing::Test {
protected:
    std::optional<Code> add(std::string name, std::string description) {
        auto added = exports.add({std::move(name), std::move(description), &disk, false});
        return added ? std::nullopt : std::optional(added.error().code);
    }

    block::MemoryDisk disk{std::make_unique<block::HeapMemory>(4096), 4096};
    Exports exports;
};

TEST_F(ExportsTest, FindByName) {
    EXPECT_EQ(exports.find(""), nullptr);
    add("first", "");
    add("second", "");
    EXPECT_EQ(exports.find("second")->name, "second");
    EXPECT_EQ(exports.find("")->name, "first") << "clients that name none mean the first";
    EXPECT_EQ(exports.find("secon"), nullptr);
    add("", "");
    EXPECT_EQ(exports.find("")->name, "") << "unless one really has no name";
}

TEST_F(ExportsTest, RefuseANameTwice) {
    EXPECT_EQ(add("disk", ""), std::nullopt);
    EXPECT_EQ(add("disk", "another"), Code::malformed);
    EXPECT_EQ(exports.all().size(), 1u);
}

TEST_F(ExportsTest, RefuseStringsLongerThanTheProtocolAllows) {
    std::string longest(wire::nbd::string_max, 'x');
    EXPECT_EQ(add(longest, longest), std::nullopt);
    EXPECT_EQ(add(longest + "x", ""), Code::out_of_range);
    EXPECT_EQ(add("y", longest + "x"), Code::out_of_range);
}

TEST_F(ExportsTest, AreBounded) {
    for (std::size_t i = 0; i < exports_max; ++i)
        ASSERT_EQ(add(std::to_string(i), ""), std::nullopt);
    EXPECT_EQ(add("one more", ""), Code::exhausted);
    EXPECT_EQ(exports.find("1023")->name, "1023");
}

/// All that is pending, asked for in a few pieces.
test::Bytes pending(const Outbox& outbox) {
    std::array<ConstBuffer, 8> pieces;
    test::Bytes octets;
    for (auto piece : std::span(pieces).first(outbox.pending(pieces)))
        octets.insert(octets.end(), piece.begin(), piece.end());
    return octets;
}

TEST(Outbox, HoldsWhatWasAddedUntilItIsSent) {
    Outbox outbox;
    EXPECT_TRUE(outbox.empty());
    outbox.add_octets(test::from_hex("0102"));
    outbox.add_zeroes(2);
    outbox.add(wire::nbd::MetaContextId{7});
    EXPECT_EQ(test::to_hex(pending(outbox)), "01 02 00 00 00 00 00 07");
    outbox.sent(3);
    EXPECT_EQ(outbox.size(), 5u);
    outbox.add_octets(test::from_hex("09"));
    EXPECT_EQ(test::to_hex(pending(outbox)), "00 00 00 00 07 09");
    outbox.sent(6);
    EXPECT_TRUE(outbox.empty());
    EXPECT_TRUE(pending(outbox).empty());
}

TEST(Outbox, LeavesInPlaceWhatItLent) {
    Outbox outbox;
    outbox.add_octets(test::from_hex("0102"));
    std::array<ConstBuffer, 1> first, later;
    ASSERT_EQ(outbox.pending(first), 1u);
    test::Bytes all = test::from_hex("0102");
    for (int i = 0; i < 3000; ++i) {
        outbox.add_octets(test::from_hex("aa"));
        all.push_back(std::byte{0xaa});
    }
    ASSERT_EQ(outbox.pending(later), 1u);
    EXPECT_EQ(later[0].data(), first[0].data());
    EXPECT_EQ(test::to_hex(first[0]), "01 02");
    EXPECT_EQ(pending(outbox), all);
    outbox.sent(2500);
    EXPECT_EQ(pending(outbox).size(), outbox.size());
}

TEST_F(ExportsTest, PromiseNoMoreThanTheDeviceDoes) {
    test::HeldDisk shown(disk);
    Export offered{"disk", "", &shown, false};
    EXPECT_TRUE(offered.flags(false).can_flush);
    EXPECT_TRUE(offered.flags(false).can_write_durably);
    shown.shown.can_flush = false;
    EXPECT_FALSE(offered.flags(false).can_flush);
    EXPECT_TRUE(offered.flags(false).can_write_durably);
    shown.shown.can_write_durably = false;
    EXPECT_FALSE(offered.flags(false).can_write_durably);
}

}  // namespace
}  // namespace weft::nbd
