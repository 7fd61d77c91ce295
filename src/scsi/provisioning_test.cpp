// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::bench_blocks;
using test::filled;
using test::OctetVector;

struct BlockProvisioning : test::ScsiBench {
    static OctetVector list_of(const std::vector<UnmapDescriptor>& descriptors) {
        const auto length = static_cast<std::uint16_t>(descriptors.size() * 16);
        auto header = encoded(UnmapListHeader{
            .length_after = static_cast<std::uint16_t>(length + 6), .descriptors_length = length});
        OctetVector list(header.begin(), header.end());
        for (const auto& one : descriptors) {
            auto octets = encoded(one);
            list.insert(list.end(), octets.begin(), octets.end());
        }
        return list;
    }
    std::unique_ptr<test::BenchTask> unmap(const std::vector<UnmapDescriptor>& descriptors) {
        auto list = list_of(descriptors);
        const auto length = static_cast<std::uint16_t>(list.size());
        return run(Unmap{.parameter_length = length}, list);
    }
    std::vector<LbaStatusDescriptor> status(std::uint64_t first_block, std::uint32_t room = 4096) {
        auto told = run(GetLbaStatus{.first_block = first_block, .allocation_length = room});
        EXPECT_TRUE(told->good());
        std::vector<LbaStatusDescriptor> runs;
        for (std::size_t at = 8; at + 16 <= told->data.size(); at += 16)
            runs.push_back(*decode<LbaStatusDescriptor>(ConstBuffer(told->data).subspan(at)));
        return runs;
    }
};

TEST_F(BlockProvisioning, UnmappedBlocksReadAsZeroAndTakeNoSpace) {
    set_up();
    put_on_disk(0, filled(32 * 512, 'm'));
    const auto allocated = memory.allocated_bytes();
    EXPECT_TRUE(unmap({{.first_block = 0, .block_count = 8}, {.first_block = 16, .block_count = 8}})
                    ->good());
    EXPECT_EQ(memory.allocated_bytes(), allocated - 8192);
    EXPECT_EQ(on_disk(0, 8), filled(4096, 0));
    EXPECT_EQ(on_disk(8, 8), filled(4096, 'm'));
    using P = Provisioning;
    EXPECT_EQ(status(0),
              (std::vector<LbaStatusDescriptor>{{0, 8, P::deallocated},
                                                {8, 8, P::mapped},
                                                {16, 8, P::deallocated},
                                                {24, 8, P::mapped},
                                                {32, bench_blocks - 32, P::deallocated}}));
    EXPECT_EQ(status(3).front(), (LbaStatusDescriptor{3, 5, P::deallocated}));
    EXPECT_EQ(status(9, 24).size(), 1u);
    EXPECT_EQ(status(bench_blocks - 1).front().block_count, 1u);
}

TEST_F(BlockProvisioning, PartOfAPhysicalBlockIsZeroedAndStaysMapped) {
    set_up();
    put_on_disk(0, filled(4096, 'm'));
    EXPECT_TRUE(unmap({{.first_block = 2, .block_count = 1}})->good());
    EXPECT_EQ(on_disk(2, 1), filled(512, 0));
    EXPECT_EQ(on_disk(3, 1), filled(512, 'm'));
    EXPECT_EQ(status(3).front().provisioning, Provisioning::mapped);
}

TEST_F(BlockProvisioning, UnmapOfNothingIsFine) {
    set_up();
    EXPECT_TRUE(unmap({})->good());
    EXPECT_TRUE(run(Unmap{})->good());
    EXPECT_TRUE(unmap({{.first_block = bench_blocks, .block_count = 0}})->good());
    std::vector<UnmapDescriptor> many(255);
    for (std::size_t i = 0; i < many.size(); ++i) many[i].first_block = i / 2;
    EXPECT_TRUE(unmap(many)->good());
}

TEST_F(BlockProvisioning, UnmapIsRefusedBeforeAnythingIsDone) {
    set_up();
    put_on_disk(0, filled(4096, 'm'));
    EXPECT_EQ(unmap({{.first_block = 0, .block_count = 8},
                     {.first_block = bench_blocks - 1, .block_count = 2}})
                  ->code(),
              0x52100u);
    EXPECT_EQ(on_disk(0, 8), filled(4096, 'm'));
    EXPECT_EQ(unmap(std::vector<UnmapDescriptor>(256))->code(), 0x52400u);
    auto list = list_of({{.first_block = 0, .block_count = 8}});
    EXPECT_EQ(run(Unmap{.parameter_length = 20}, list)->code(), 0x51a00u) << "cut short";
    EXPECT_EQ(run(Unmap{.parameter_length = 7}, list)->code(), 0x51a00u);
    EXPECT_EQ(run(Unmap{.anchor = true, .parameter_length = 24}, list)->code(), 0x52400u);
    list.resize(16);
    EXPECT_EQ(run(Unmap{.parameter_length = 24}, list)->code(), 0x51a00u) << "less came";
    EXPECT_EQ(on_disk(0, 8), filled(4096, 'm'));
}

TEST_F(BlockProvisioning, StatusIsAskedWithinTheUnit) {
    set_up();
    EXPECT_EQ(run(GetLbaStatus{.first_block = bench_blocks, .allocation_length = 24})->code(),
              0x52100u);
    EXPECT_EQ(run(GetLbaStatus{.first_block = ~0ull, .allocation_length = 24})->code(), 0x52100u);
    EXPECT_TRUE(run(GetLbaStatus{.allocation_length = 0})->good());
}

TEST_F(BlockProvisioning, UnitThatIsNotThinKnowsNoUnmap) {
    set_up({.thin = false});
    EXPECT_EQ(unmap({})->code(), 0x52000u);
}

TEST_F(BlockProvisioning, DeviceThatCannotTellIsAllMapped) {
    disk.holding = false;
    disk.shown.can_report_status = false;
    set_up(disk, {});
    EXPECT_EQ(status(1),
              (std::vector<LbaStatusDescriptor>{{1, bench_blocks - 1, Provisioning::mapped}}));
}

}  // namespace
}  // namespace weft::scsi
