// SPDX-License-Identifier: Apache-2.0
#include "iscsi/initiator_disk.hpp"

#include <gtest/gtest.h>

#include "support/initiator_bench.hpp"

namespace weft::iscsi {
namespace {

using namespace std::chrono_literals;
using Bench = InitiatorBench;

TEST(InitiatorDisk, FindsOutWhatTheUnitIs) {
    Bench bench(1);
    bench.unit.attentions = {wire::AdditionalSense::power_on_or_reset_occurred,
                             wire::AdditionalSense::reported_luns_data_has_changed};
    bench.open();
    const auto traits = bench.disk.traits();
    EXPECT_EQ(traits.size, 64u * 512);
    EXPECT_EQ(traits.minimum_block, 512u);
    EXPECT_EQ(traits.maximum_transfer, 64u * 512);
    EXPECT_TRUE(traits.can_trim);
    EXPECT_TRUE(traits.can_report_status);
    EXPECT_FALSE(traits.read_only);
    EXPECT_EQ(bench.disk.facts().vendor, "WEFT");
    EXPECT_EQ(bench.disk.facts().serial, "model-1");
}

TEST(InitiatorDisk, WritesAndReadsBack) {
    Bench bench(2);
    bench.open();
    TestRequest write(BlockOperation::write, 1024, 2048);
    bench.disk.submit(filled(write, 9));
    TestRequest durable(BlockOperation::write, 4096, 512);
    durable.durable = true;
    bench.disk.submit(filled(durable, 8));
    bench.run();
    ASSERT_TRUE(write.succeeded() && durable.succeeded());
    TestRequest read(BlockOperation::read, 512, 4096);
    bench.disk.submit(read);
    bench.run();
    ASSERT_TRUE(read.succeeded());
    EXPECT_EQ(read.octets[511], std::byte{0});
    EXPECT_EQ(read.octets[512], std::byte{9});
    EXPECT_EQ(read.octets[512 + 2047], std::byte{9});
    EXPECT_EQ(read.octets[4096 - 512], std::byte{8});
}

TEST(InitiatorDisk, RefusesWhatEveryDeviceRefuses) {
    Bench bench(3);
    bench.open();
    TestRequest odd(BlockOperation::read, 100, 512), beyond(BlockOperation::read, 64 * 512, 512);
    bench.disk.submit(odd);
    bench.disk.submit(beyond);
    EXPECT_EQ(odd.failure(), Code::malformed);
    EXPECT_EQ(beyond.failure(), Code::out_of_range);
}

TEST(InitiatorDisk, CutsZeroesAndTrimsIntoWhatTheTargetTakes) {
    Bench bench(4);
    bench.open();
    std::ranges::fill(bench.unit.memory, std::byte{0xff});
    bench.unit.seen.clear();
    TestRequest zero(BlockOperation::write_zeroes, 512, 12 * 512);
    TestRequest trim(BlockOperation::trim, 20 * 512, 20 * 512);
    bench.disk.submit(zero);
    bench.disk.submit(trim);
    bench.run();
    ASSERT_TRUE(zero.succeeded() && trim.succeeded());
    using enum wire::ScsiOperation;
    EXPECT_EQ(std::ranges::count(bench.unit.seen, write_same_16), 3);  // of at most five blocks
    EXPECT_EQ(std::ranges::count(bench.unit.seen, unmap), 3);          // of at most eight
    for (std::size_t block = 0; block < 64; ++block) {
        const bool zeroed = (block >= 1 && block < 13) || (block >= 20 && block < 40);
        EXPECT_EQ(bench.unit.memory[block * 512], std::byte(zeroed ? 0 : 0xff)) << block;
    }
}

TEST(InitiatorDisk, TellsHolesFromData) {
    Bench bench(5);
    bench.open();
    TestRequest status(BlockOperation::status, 512, 10 * 512);
    std::array<Extent, 4> room;
    status.extents = room;
    bench.disk.submit(status);
    bench.run();
    ASSERT_TRUE(status.succeeded());
    ASSERT_EQ(status.extent_count, 2u);
    EXPECT_EQ(room[0], (Extent{.length = 3 * 512}));
    EXPECT_EQ(room[1], (Extent{.length = 7 * 512, .hole = true, .zero = true}));
}

TEST(InitiatorDisk, FlushesAndBelievesATargetThatHasNothingToFlush) {
    Bench bench(6);
    bench.open();
    TestRequest flush(BlockOperation::flush, 0, 0);
    bench.disk.submit(flush);
    bench.run();
    EXPECT_TRUE(flush.succeeded());
    bench.unit.knows_flush = false;
    TestRequest again(BlockOperation::flush, 0, 0);
    bench.disk.submit(again);
    bench.run();
    EXPECT_TRUE(again.succeeded());
    EXPECT_FALSE(bench.disk.traits().can_flush);
}

TEST(InitiatorDisk, AsksAgainAfterUnitAttentionsAndWhenTheTargetIsBusy) {
    Bench bench(7);
    bench.open();
    bench.unit.attentions = {wire::AdditionalSense::mode_parameters_changed,
                             wire::AdditionalSense::nexus_loss_occurred};
    bench.unit.busy = 3;
    TestRequest write(BlockOperation::write, 0, 512);
    bench.disk.submit(filled(write, 3));
    for (int i = 0; i < 10; ++i) bench.pass(60ms);
    EXPECT_TRUE(write.succeeded());
    EXPECT_EQ(bench.unit.memory[0], std::byte{3});
}

TEST(InitiatorDisk, NoticesThatTheUnitHasGrown) {
    Bench bench(8);
    bench.open();
    struct Watcher final : SizeWatcher {
        std::uint64_t heard = 0;
        void size_changed(std::uint64_t size) override { heard = size; }
    } watcher;
    bench.disk.watch_size(watcher);
    bench.unit.memory.resize(128 * 512);
    bench.unit.attentions = {wire::AdditionalSense::capacity_data_has_changed};
    TestRequest read(BlockOperation::read, 0, 512);
    bench.disk.submit(read);
    bench.run();
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(watcher.heard, 128u * 512);
    EXPECT_EQ(bench.disk.traits().size, 128u * 512);
    bench.disk.unwatch_size(watcher);
}

TEST(InitiatorDisk, ReadsASerialNumberWithoutWhatFillsItUp) {
    Bench bench(1);
    bench.unit.serial = "  model-1 " + std::string(2, '\0');  // zeros as of LIO
    bench.open();
    EXPECT_EQ(bench.disk.facts().serial, "model-1");
}

TEST(InitiatorDisk, MayBeDroppedInItsLastCompletion) {
    auto drop = [](Bench& bench, TestRequest& request) {
        request.then = [&bench] { bench.held_disk.reset(); };
        bench.disk.submit(request);
    };
    {
        Bench bench(24);
        bench.open();
        TestRequest refused(BlockOperation::read, 100, 512);
        drop(bench, refused);
        EXPECT_EQ(refused.failure(), Code::malformed);
    }
    {
        Bench bench(25);
        bench.open();
        TestRequest read(BlockOperation::read, 0, 512);
        drop(bench, read);
        bench.run();
        EXPECT_TRUE(read.succeeded());
    }
    {
        // Its size may have changed: it is being asked while the disk goes.
        Bench bench(26);
        bench.open();
        TestRequest read(BlockOperation::read, 0, 512);
        bench.unit.attentions = {wire::AdditionalSense::capacity_data_has_changed};
        drop(bench, read);
        bench.run();
        EXPECT_TRUE(read.succeeded());
        EXPECT_TRUE(bench.session.idle());
    }
    {
        Bench bench(27);
        bench.open();
        TestRequest read(BlockOperation::read, 0, 512);
        bench.movers[0]->stuck = true;
        drop(bench, read);
        bench.cut();
        bench.disk.give_up({.code = Code::disconnected});
        EXPECT_EQ(read.failure(), Code::disconnected);
    }
    {
        Bench bench(28);
        bench.open();
        TestRequest write(BlockOperation::write, 0, 512);
        drop(bench, write);
        bench.cut();
        bench.unit.serial = "model-2";
        bench.session.begin();
        bench.run();
        EXPECT_EQ(write.failure(), Code::access_denied);
    }
}

}  // namespace
}  // namespace weft::iscsi
