// SPDX-License-Identifier: Apache-2.0
#include "scsi/designators.hpp"
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::bench_blocks;
using test::BenchTask;
using test::filled;
using test::OctetVector;

struct Copying : test::ScsiBench {
    static CopyTargetByIdentification named(LogicalUnit& unit) {
        CopyTargetByIdentification target{
            .designator = {.code_set = CodeSet::binary,
                           .type = DesignatorType::network_address_authority,
                           .length = 8},
            .block_bytes = 512};
        std::array<std::byte, 8> octets{};
        store_big_endian<8>(unit.identity().network_address, octets.data());
        for (std::size_t i = 0; i < octets.size(); ++i)
            target.designator_value[i] = std::to_integer<std::uint8_t>(octets[i]);
        return target;
    }
    static OctetVector list_of(const std::vector<CopyTargetByIdentification>& targets,
                               const std::vector<CopyBlocksToBlocks>& segments,
                               std::uint8_t usage = 0) {
        OctetVector list;
        auto append = [&](const auto& header) {
            auto octets = encoded(header);
            list.insert(list.end(), octets.begin(), octets.end());
        };
        append(CopyListHeader{
            .list_identifier = 1,
            .list_identifier_usage = usage,
            .target_descriptors_length = static_cast<std::uint16_t>(targets.size() * 32),
            .segment_descriptors_length = static_cast<std::uint32_t>(segments.size() * 28)});
        for (const auto& one : targets) append(one);
        for (const auto& one : segments) append(one);
        return list;
    }
    std::unique_ptr<test::BenchTask> copy(const OctetVector& list) {
        return run(ExtendedCopy{.parameter_length = static_cast<std::uint32_t>(list.size())}, list);
    }
    /// The same, on unit 0 and perhaps not done yet.
    void begin(BenchTask& task, Nexus& nexus, const OctetVector& list) {
        task.to_send = list;
        execute(task, nexus,
                ExtendedCopy{.parameter_length = static_cast<std::uint32_t>(list.size())});
    }
    std::unique_ptr<test::BenchTask> results(ReceiveCopyAction action) {
        return run(
            ReceiveCopyResults{.action = action, .list_identifier = 1, .allocation_length = 1024});
    }
};

TEST_F(Copying, MovesBlocksWithinAUnit) {
    auto& unit = set_up();
    put_on_disk(0, filled(1000 * 512, 'c'));
    auto done = copy(list_of(
        {named(unit)},
        {{.block_count = 1000, .source_block = 0, .destination_block = bench_blocks - 1000}}));
    EXPECT_TRUE(done->good());
    EXPECT_EQ(on_disk(bench_blocks - 1000, 1000), filled(1000 * 512, 'c'));
    auto status = results(ReceiveCopyAction::copy_status);
    ASSERT_TRUE(status->good());
    EXPECT_EQ(*decode<CopyStatus>(status->data),
              (CopyStatus{.progress = CopyProgress::completed, .segments_processed = 1}));
    EXPECT_EQ(results(ReceiveCopyAction::copy_status)->code(), 0x52400u) << "it was told";
}

TEST_F(Copying, MovesBlocksBetweenUnitsOfDifferentBlocks) {
    auto& unit = set_up();
    block::MemoryDisk other(std::make_unique<block::HeapMemory>(1 << 20), 1 << 20);
    auto added = target->add_unit(1, other, {.block_bytes = 4096});
    ASSERT_TRUE(added);
    clear_attentions(*first);
    put_on_disk(0, filled(16 * 512, 'd'));
    auto done = copy(list_of({named(unit), named(**added)}, {{.source_target = 0,
                                                              .destination_target = 1,
                                                              .block_count = 16,
                                                              .destination_block = 3}}));
    EXPECT_TRUE(done->good());
    auto there = other.lend(BlockOperation::read, 3 * 4096, 8192);
    EXPECT_TRUE(std::ranges::all_of(there, [](std::byte b) { return b == std::byte{'d'}; }));
    tear_down();
}

TEST_F(Copying, OfNothingIsFine) {
    auto& unit = set_up();
    EXPECT_TRUE(run(ExtendedCopy{})->good());
    EXPECT_TRUE(copy(list_of({named(unit)}, {}))->good());
    EXPECT_TRUE(copy(list_of({named(unit)}, {{.block_count = 0}}))->good());
}

TEST_F(Copying, RefusesListsThatAreNot) {
    auto& unit = set_up();
    auto list = list_of({named(unit)}, {{.block_count = 1}});
    auto cut = [&](std::size_t length) {
        OctetVector shorter(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(length));
        return copy(shorter)->code();
    };
    EXPECT_EQ(cut(16 + 31), 0x51a00u);
    EXPECT_EQ(cut(16 + 32 + 27), 0x51a00u);
    EXPECT_EQ(cut(15), 0x51a00u);
    using Targets = std::vector<CopyTargetByIdentification>;
    using Segments = std::vector<CopyBlocksToBlocks>;
    EXPECT_EQ(copy(list_of(Targets(copy_targets_max + 1, named(unit)), {{}}))->code(), 0x52606u);
    EXPECT_EQ(copy(list_of({named(unit)}, Segments(copy_segments_max + 1)))->code(), 0x52608u);
    EXPECT_EQ(copy(list_of(Targets(copy_targets_max + 1, named(unit)), Segments(80)))->code(),
              0x51a00u)
        << "longer than any list may be";
    auto wrong = list;
    wrong[16] = std::byte{0xe0};
    EXPECT_EQ(copy(wrong)->code(), 0x52607u);
    wrong = list;
    wrong[16 + 32] = std::byte{0x03};
    EXPECT_EQ(copy(wrong)->code(), 0x52609u);
}

TEST_F(Copying, EndsAtWhatCannotBeReached) {
    auto& unit = set_up();
    auto stranger = named(unit);
    stranger.designator_value[7] ^= 1;
    EXPECT_EQ(copy(list_of({stranger}, {{.block_count = 1}}))->code(), 0xa0804u);
    EXPECT_EQ(copy(list_of({named(unit)}, {{.destination_target = 1, .block_count = 1}}))->code(),
              0xa0804u);
    EXPECT_EQ(
        copy(list_of({named(unit)}, {{.block_count = 2048, .destination_block = bench_blocks - 1}}))
            ->sense()
            .key,
        SenseKey::copy_aborted);
    auto status = results(ReceiveCopyAction::copy_status);
    EXPECT_EQ(decode<CopyStatus>(status->data)->progress, CopyProgress::failed);
}

TEST_F(Copying, TellsItsLimits) {
    set_up();
    auto told = results(ReceiveCopyAction::operating_parameters);
    ASSERT_TRUE(told->good());
    ASSERT_EQ(told->data.size(), 46u);
    const auto limits = *decode<CopyOperatingParameters>(told->data);
    EXPECT_EQ(limits.length_after + 4u, told->data.size());
    EXPECT_EQ(limits.max_target_descriptors, copy_targets_max);
    EXPECT_EQ(limits.max_segment_descriptors, copy_segments_max);
    EXPECT_EQ(results(ReceiveCopyAction::copy_status)->code(), 0x52400u);
}

TEST_F(Copying, ForgetsResultsNobodyAskedFor) {
    auto& unit = set_up();
    EXPECT_TRUE(copy(list_of({named(unit)}, {}))->good());
    for (std::uint64_t i = 0; i <= copy_results_commands; ++i) run(TestUnitReady{});
    EXPECT_EQ(results(ReceiveCopyAction::copy_status)->code(), 0x52400u);
    EXPECT_TRUE(copy(list_of({named(unit)}, {}, 2))->good());
    EXPECT_EQ(results(ReceiveCopyAction::copy_status)->code(), 0x52400u) << "discarded on wish";
}

/// Unit 0 is a disk that answers at once, unit 1 one that does so when it is told to.
struct CopyingToAnother : Copying {
    CopyingToAnother()
        : there(std::make_unique<block::HeapMemory>(bench_blocks * 512), bench_blocks * 512),
          other(there) {}
    ~CopyingToAnother() override {
        other.let_all_go();
        tear_down();
    }
    /// A list of one segment from unit 0 to the same blocks of unit 1.
    OctetVector set_up_two(std::uint16_t blocks) {
        here = &set_up();
        auto added = target->add_unit(1, other, {});
        EXPECT_TRUE(added);
        beyond = *added;
        for (auto* nexus : {first, second}) {
            clear_attentions(*nexus);
            for (int i = 0; i < 4; ++i) {
                BenchTask ready;
                execute(ready, *nexus, TestUnitReady{}, 1);
            }
        }
        put_on_disk(0, filled(blocks * std::size_t{512}, 'n'));
        return list_of({named(*here), named(*beyond)},
                       {{.source_target = 0, .destination_target = 1, .block_count = blocks}});
    }
    OctetVector on_other(std::uint64_t block, std::size_t blocks) {
        auto lent = there.lend(BlockOperation::read, block * 512, blocks * 512);
        return {lent.begin(), lent.end()};
    }

    block::MemoryDisk there;
    test::HeldDisk other;
    LogicalUnit* here = nullptr;
    LogicalUnit* beyond = nullptr;
};

TEST_F(CopyingToAnother, LetsAUnitGoOnlyWhenItNeedsItNoMore) {
    other.shown.maximum_transfer = 1024;
    const auto list = set_up_two(6);
    BenchTask task;
    begin(task, *first, list);
    ASSERT_EQ(other.held.size(), 1u) << "the first of three parts";
    bool gone = false;
    ASSERT_TRUE(target->remove_unit(1, [&] { gone = true; }));
    EXPECT_FALSE(gone);
    while (!other.held.empty()) {
        EXPECT_FALSE(gone) << "its device is still in use";
        other.let_go(0);
    }
    EXPECT_TRUE(gone);
    EXPECT_TRUE(task.done());
}

TEST_F(CopyingToAnother, EndsWhenTheUnitItWaitsForIsRemoved) {
    const auto list = set_up_two(4);
    BenchTask swap, task;
    swap.to_send = filled(1024, 0);
    execute(swap, *second, CompareAndWrite{.block_address = 2, .block_count = 1}, 1);
    begin(task, *first, list);
    bool gone = false;
    ASSERT_TRUE(target->remove_unit(1, [&] { gone = true; }));
    EXPECT_FALSE(gone);
    other.let_all_go();
    EXPECT_EQ(task.code(), 0xa0804u);
    EXPECT_TRUE(gone);
}

TEST_F(CopyingToAnother, AbortedWhileItWaitsForTheOtherLeavesNothingBehind) {
    const auto list = set_up_two(4);
    BenchTask swap, task;
    swap.to_send = filled(1024, 0);
    execute(swap, *second, CompareAndWrite{.block_address = 2, .block_count = 1}, 1);
    begin(task, *first, list);
    target->abort(task);
    EXPECT_EQ(task.heard.end, TaskEnd::aborted);
    other.holding = false;
    other.let_all_go();
    EXPECT_TRUE(swap.good());
    BenchTask alone;
    alone.to_send = filled(1024, 0);
    execute(alone, *second, CompareAndWrite{.block_address = 2, .block_count = 1}, 1);
    EXPECT_TRUE(alone.good());
    EXPECT_EQ(on_other(0, 4), filled(2048, 0));
}

TEST_F(CopyingToAnother, DoesNotWriteWhatSomebodyElseReserved) {
    const auto list = set_up_two(4);
    other.holding = false;
    BenchTask reserve;
    execute(reserve, *second, Reserve6{}, 1);
    ASSERT_TRUE(reserve.good());
    EXPECT_EQ(copy(list)->code(), 0xa0d02u);
    EXPECT_EQ(on_other(0, 4), filled(2048, 0));
    BenchTask release;
    execute(release, *second, Release6{}, 1);
    EXPECT_TRUE(copy(list)->good());
    EXPECT_EQ(on_other(0, 4), filled(2048, 'n'));
}

TEST_F(CopyingToAnother, DoesNotGoThroughAPortThatIsInStandby) {
    const auto list = set_up_two(4);
    other.holding = false;
    beyond->state().groups.push_back({.group = 1, .state = AccessState::standby, .set = true});
    EXPECT_EQ(copy(list)->code(), 0xa0d02u);
    EXPECT_EQ(on_other(0, 4), filled(2048, 0));
}

TEST_F(CopyingToAnother, ComesBetweenNobodysReadAndWrite) {
    const auto list = set_up_two(4);
    BenchTask swap, task;
    swap.to_send = filled(512, 0);
    swap.to_send.resize(1024, std::byte{'s'});
    execute(swap, *second, CompareAndWrite{.block_address = 2, .block_count = 1}, 1);
    begin(task, *first, list);
    ASSERT_EQ(other.held.size(), 1u) << "the comparison's read, and no write of the copy";
    other.let_go(0);
    other.let_go(0);
    EXPECT_TRUE(swap.good());
    EXPECT_EQ(on_other(2, 1), filled(512, 's'));
    other.let_all_go();
    EXPECT_TRUE(task.good());
    EXPECT_EQ(on_other(0, 4), filled(2048, 'n'));
}

TEST_F(CopyingToAnother, DoesNotUndoAnErasureThatBeganMeanwhile) {
    const auto list = set_up_two(4);
    BenchTask write, erase, task;
    write.to_send = filled(512, 'w');
    execute(write, *second, Write10{.block_address = 9, .block_count = 1}, 1);
    execute(erase, *second, Sanitize{.immediate = true, .action = SanitizeAction::block_erase}, 1);
    EXPECT_FALSE(erase.done()) << "it waits for the write";
    begin(task, *first, list);
    EXPECT_FALSE(task.done()) << "and the copy for it";
    other.let_go(0);
    EXPECT_TRUE(erase.good());
    EXPECT_EQ(task.code(), 0xa0d02u);
    other.holding = false;
    pass_time(std::chrono::seconds(1));
    EXPECT_EQ(on_other(0, 16), filled(16 * 512, 0));
}

TEST_F(CopyingToAnother, KeepsNobodyFromBlocksItDoesNotCopy) {
    const auto list = set_up_two(4);
    BenchTask task;
    begin(task, *first, list);
    ASSERT_EQ(other.held.size(), 1u) << "its write there";
    auto elsewhere =
        run(*second, CompareAndWrite{.block_address = 100, .block_count = 1}, filled(1024, 0));
    EXPECT_TRUE(elsewhere->good());
    OctetVector swap = filled(512, 'n');
    swap.resize(1024, std::byte{'m'});
    EXPECT_TRUE(run(*second, CompareAndWrite{.block_address = 2, .block_count = 1}, swap)->good())
        << "it has been read";
    other.let_all_go();
    EXPECT_TRUE(task.good());
    EXPECT_EQ(on_other(0, 4), filled(2048, 'n'));
}

TEST_F(Copying, RefusesSegmentsLongerThanItSaysItTakes) {
    constexpr std::uint64_t bytes = 256u << 20;
    block::MemoryDisk large(std::make_unique<block::HeapMemory>(bytes), bytes);
    auto& unit = set_up(large, {.block_bytes = 65536});
    constexpr auto most = static_cast<std::uint16_t>(copy_segment_bytes_max / 65536);
    EXPECT_TRUE(
        copy(list_of({named(unit)}, {{.block_count = most, .destination_block = most}}))->good());
    auto refused =
        copy(list_of({named(unit)}, {{.block_count = 1, .destination_block = 1},
                                     {.block_count = most + 1, .destination_block = 2 * most}}));
    EXPECT_EQ(refused->code(), 0x52600u);
    tear_down();
}

}  // namespace
}  // namespace weft::scsi
