// SPDX-License-Identifier: Apache-2.0
// The memory model is a checker: here is what it must find fault with, and what it must not.
#include "sim/rdma_memory_model.hpp"

#include <gtest/gtest.h>

namespace weft::sim {
namespace {

class MemoryModelTest : public testing::Test {
protected:
    std::byte other_than(std::byte value) { return value ^ std::byte{1}; }
    Bytes version(const Lease& lease, std::byte flip) {
        auto bytes = lease.last_version();
        for (auto& each : bytes) each ^= flip;
        return bytes;
    }
    void put(const Stretches& where, const Bytes& bytes, std::size_t count) {
        std::size_t i = 0;
        for (auto& stretch : where)
            for (auto at = stretch.at; at < stretch.at + stretch.size && i < count; ++at)
                memory[at] = bytes[i++];
    }

    Bytes memory = Bytes(100);
    Random random{1};
    Complaints complaints;
    MemoryModel model{memory, "elm", random, complaints};
    const Stretches here{{40, 4}, {10, 6}};
};

TEST_F(MemoryModelTest, FindsAByteThatNobodyMayChange) {
    model.check("before");
    EXPECT_TRUE(complaints.all().empty());
    memory[50] = other_than(memory[50]);
    model.check("after");
    ASSERT_EQ(complaints.all().size(), 1u);
    EXPECT_NE(complaints.all()[0].find("byte 50"), std::string::npos);
}

TEST_F(MemoryModelTest, LeasesNoByteTwice) {
    auto lease = model.lease(here);
    EXPECT_EQ(model.lease({{15, 10}}), nullptr);
    EXPECT_NE(model.lease({{16, 10}}), nullptr);
    lease.reset();
    EXPECT_NE(model.lease({{15, 10}}), nullptr);
}

TEST_F(MemoryModelTest, LooksAwayFromWhatIsLeasedAndNotFromItsNeighbours) {
    auto lease = model.lease(here);
    memory[41] = other_than(memory[41]);
    model.check("leased");
    EXPECT_TRUE(complaints.all().empty());
    memory[44] = other_than(memory[44]);
    model.check("beside");
    EXPECT_EQ(complaints.all().size(), 1u);
}

TEST_F(MemoryModelTest, TakesBytesOfAnyVersionButTheFirstWhereWorkWasOvertaken) {
    for (std::size_t changed : {10u, 9u}) {
        auto lease = model.lease(here);
        lease->may_become(version(*lease, std::byte{1}));
        auto read = lease->last_version();
        lease->may_become(version(*lease, std::byte{2}));
        put(here, read, changed);
        put(here, lease->last_version(), 3);
        lease->settle_for_any_since("overtaken");
        EXPECT_EQ(complaints.all().empty(), changed == 10);
    }
}

TEST_F(MemoryModelTest, WantsAllOfTheLastVersionOfWorkThatIsDone) {
    auto lease = model.lease(here);
    auto written = version(*lease, std::byte{0xff});
    lease->may_become(written);
    put(here, written, 9);
    lease->settle("written but for a byte");
    ASSERT_EQ(complaints.all().size(), 1u);
    EXPECT_NE(complaints.all()[0].find("byte 15 "), std::string::npos);
}

TEST_F(MemoryModelTest, LetsFailedWorkLeaveAMixtureAndNothingElse) {
    auto lease = model.lease(here);
    auto written = version(*lease, std::byte{0xff});
    lease->may_become(written);
    put(here, written, 5);
    lease->settle_for_any("half of it");
    EXPECT_TRUE(complaints.all().empty());
    memory[11] ^= std::byte{0x0f};
    lease->settle_for_any("neither");
    EXPECT_EQ(complaints.all().size(), 1u);
}

TEST_F(MemoryModelTest, ExpectsNothingOfALeaseThatEnded) {
    auto lease = model.lease(here);
    lease->may_become(version(*lease, std::byte{0xff}));
    model.end_leases({{10, 1}}, "given back");
    lease->settle("not asked any more");
    EXPECT_TRUE(complaints.all().empty());
    memory[41] = other_than(memory[41]);
    model.check("it is like any other byte");
    EXPECT_EQ(complaints.all().size(), 1u);
}

TEST_F(MemoryModelTest, FindsPartsAcrossStretches) {
    auto part = part_of(here, 3, 3);
    ASSERT_EQ(part.size(), 2u);
    EXPECT_EQ(part[0].at, 43u);
    EXPECT_EQ(part[0].size, 1u);
    EXPECT_EQ(part[1].at, 10u);
    EXPECT_EQ(part[1].size, 2u);
    EXPECT_TRUE(part_of(here, 10, 0).empty());
}

}  // namespace
}  // namespace weft::sim
