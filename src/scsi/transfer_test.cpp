// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::bench_blocks;
using test::BenchTask;
using test::filled;

struct Transfer : test::ScsiBench {
    template <class CommandBlock>
    CommandBlock at(std::uint64_t block, std::uint64_t count) {
        CommandBlock command{};
        command.block_address = static_cast<decltype(command.block_address)>(block);
        command.block_count = static_cast<decltype(command.block_count)>(count);
        return command;
    }
};

TEST_F(Transfer, ReadsWhatWasWrittenWhateverTheLengthOfTheCommand) {
    set_up({.long_commands = true});
    EXPECT_TRUE(run(at<Write6>(5, 2), filled(1024, 6))->good());
    EXPECT_EQ(run(at<Read10>(5, 2))->data, filled(1024, 6));
    EXPECT_TRUE(run(at<Write10>(5, 2), filled(1024, 10))->good());
    EXPECT_EQ(run(at<Read12>(5, 2))->data, filled(1024, 10));
    EXPECT_TRUE(run(at<Write12>(5, 2), filled(1024, 12))->good());
    EXPECT_EQ(run(at<Read16>(5, 2))->data, filled(1024, 12));
    EXPECT_TRUE(run(at<Write16>(5, 2), filled(1024, 16))->good());
    EXPECT_EQ(run(at<Read32>(5, 2))->data, filled(1024, 16));
    EXPECT_TRUE(run(at<Write32>(5, 2), filled(1024, 32))->good());
    EXPECT_EQ(run(at<Read6>(5, 2))->data, filled(1024, 32));
    EXPECT_EQ(on_disk(4, 1), filled(512, 0));
    EXPECT_EQ(on_disk(7, 1), filled(512, 0));
}

TEST_F(Transfer, OfSixOctetsTakesZeroFor256Blocks) {
    set_up();
    auto read = run(at<Read6>(0, 0));
    EXPECT_TRUE(read->good());
    EXPECT_EQ(read->heard.length_in, 256u * 512);
    EXPECT_EQ(run(at<Read6>(bench_blocks - 255, 0))->code(), 0x52100u);
}

TEST_F(Transfer, BeyondTheEndIsRefused) {
    set_up();
    EXPECT_EQ(run(at<Read10>(bench_blocks, 1))->code(), 0x52100u);
    EXPECT_EQ(run(at<Read10>(bench_blocks - 1, 2))->code(), 0x52100u);
    EXPECT_TRUE(run(at<Read10>(bench_blocks - 1, 1))->good());
    EXPECT_EQ(run(at<Read16>(0x8000000000000000, 1))->code(), 0x52100u);
    EXPECT_EQ(run(at<Read16>(~0ull, 1))->code(), 0x52100u);
    EXPECT_EQ(run(at<Write16>(~0ull, 2), filled(1024, 1))->code(), 0x52100u);
    EXPECT_EQ(run(at<Read16>(~0ull, 0))->code(), 0x52100u) << "even for no blocks at all";
    EXPECT_TRUE(run(at<Read16>(0, 0))->good());
    EXPECT_EQ(run(at<Write10>(bench_blocks + 1, 0))->code(), 0x52100u);
}

TEST_F(Transfer, LongerThanTheUnitAllowsIsRefused) {
    set_up({.transfer_bytes = 64 * 512});
    EXPECT_TRUE(run(at<Read10>(0, 64))->good());
    EXPECT_EQ(run(at<Read10>(0, 65))->code(), 0x52400u);
    EXPECT_EQ(run(at<Read16>(bench_blocks - 64, 65))->code(), 0x52100u);
}

TEST_F(Transfer, WithProtectionInformationIsRefused) {
    set_up({.long_commands = true});
    for (std::uint8_t protect = 1; protect < 8; ++protect) {
        auto command = at<Read10>(0, 1);
        command.flags.protect = protect;
        EXPECT_EQ(run(command)->code(), 0x52400u);
        auto long_command = at<Write32>(0, 1);
        long_command.flags.protect = protect;
        EXPECT_EQ(run(long_command, filled(512, 1))->code(), 0x52400u);
    }
    EXPECT_EQ(on_disk(0, 1), filled(512, 0));
}

TEST_F(Transfer, HonoursCacheFlagsOnlyIfTheUnitDoes) {
    for (bool honoured : {true, false}) {
        set_up({.cache_control = honoured});
        auto read = at<Read16>(0, 1);
        read.flags.disable_page_out = true;
        EXPECT_EQ(run(read)->code(), honoured ? 0u : 0x52400u);
        auto write = at<Write10>(0, 1);
        write.flags.force_unit_access = true;
        EXPECT_EQ(run(write, filled(512, 1))->code(), honoured ? 0u : 0x52400u);
        tear_down();
    }
}

TEST_F(Transfer, IsDurableIfAskedToOrWithoutCache) {
    auto& unit = set_up(disk, {});
    auto submitted = [&](bool forced) {
        BenchTask task;
        task.to_send = filled(512, 1);
        auto command = at<Write10>(0, 1);
        command.flags.force_unit_access = forced;
        execute(task, *first, command);
        bool durable = disk.held.at(0)->durable;
        disk.let_all_go();
        EXPECT_TRUE(task.good());
        return durable;
    };
    EXPECT_FALSE(submitted(false));
    EXPECT_TRUE(submitted(true));
    unit.state().mode.write_cache = false;
    EXPECT_TRUE(submitted(false));
}

TEST_F(Transfer, LeavesResidualsToItsCarrier) {
    set_up();
    put_on_disk(0, filled(2048, 'a'));
    auto none = run(at<Read10>(0, 1), {}, 0);
    EXPECT_TRUE(none->good());
    EXPECT_EQ(none->heard.length_in, 512u);
    EXPECT_TRUE(none->data.empty());
    auto more = run(at<Read10>(0, 1), {}, 10000);
    EXPECT_EQ(more->data.size(), 512u);
    auto less = run(at<Read10>(0, 1), {}, 200);
    EXPECT_TRUE(less->good());
    EXPECT_EQ(less->data, filled(200, 'a'));
    EXPECT_EQ(less->heard.length_in, 512u);
    auto half = run(at<Read10>(0, 2), {}, 512);
    EXPECT_EQ(half->data.size(), 512u);
    EXPECT_EQ(half->heard.length_in, 1024u);
    auto wrong_way = run(at<Read10>(0, 1), filled(512, 'x'), 0);
    EXPECT_TRUE(wrong_way->good());
    EXPECT_EQ(wrong_way->wanted, 0);
    EXPECT_EQ(wrong_way->heard.length_out, 0u);
}

TEST_F(Transfer, WritesNoMoreThanIsOfferedAndNoMoreThanItSays) {
    set_up();
    put_on_disk(0, filled(2048, 'a'));
    auto much = run(at<Write10>(0, 1), filled(10000, 'b'));
    EXPECT_TRUE(much->good());
    EXPECT_EQ(much->heard.length_out, 512u);
    EXPECT_EQ(much->place_bytes(), 512u);
    EXPECT_EQ(on_disk(1, 1), filled(512, 'a'));
    auto little = run(at<Write10>(0, 2), filled(512, 'c'));
    EXPECT_TRUE(little->good());
    EXPECT_EQ(little->heard.length_out, 1024u);
    EXPECT_EQ(on_disk(1, 1), filled(512, 'a'));
    auto odd = run(at<Write10>(2, 2), filled(712, 'd'));
    EXPECT_TRUE(odd->good());
    auto expected = filled(1024, 'a');
    std::fill_n(expected.begin(), 712, std::byte{'d'});
    EXPECT_EQ(on_disk(2, 2), expected);
    EXPECT_TRUE(run(at<Write10>(0, 1))->good()) << "nothing offered, nothing written";
    EXPECT_EQ(on_disk(0, 1), filled(512, 'c'));
}

TEST_F(Transfer, GoesThroughADeviceThatTakesLittleAtATime) {
    disk.holding = false;
    disk.shown.maximum_transfer = 1024;
    set_up(disk, {});
    std::vector<std::byte> pattern(512 * 9);
    for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<std::byte>(i / 7);
    EXPECT_TRUE(run(at<Write10>(3, 9), pattern)->good());
    EXPECT_EQ(on_disk(3, 9), pattern);
    EXPECT_EQ(run(at<Read10>(3, 9))->data, pattern);
}

TEST_F(Transfer, MovesNothingThroughPooledMemoryWhereTheDeviceLends) {
    set_up();
    BenchTask write;
    write.to_send = filled(4096, 7);
    write.holds_data = true;
    execute(write, *first, at<Write10>(8, 8));
    EXPECT_EQ(pool.lent_bytes(), 0u);
    write.bring_data();
    EXPECT_TRUE(write.good());
    BenchTask read;
    read.accepted_in = 4096;
    read.keeps_answer = true;
    execute(read, *first, at<Read10>(8, 8));
    ASSERT_TRUE(read.good());
    EXPECT_EQ(read.answer.data_in[0].data(),
              memory.lend(BlockOperation::read, 8 * 512, 4096).data());
    read.release();
}

TEST_F(Transfer, ThatFailsBelowSaysWhatFailed) {
    set_up(filter, {});
    ASSERT_TRUE(filter.add({.operation = BlockOperation::read, .range = {{10 * 512, 512}}}));
    ASSERT_TRUE(filter.add({.operation = BlockOperation::write,
                            .range = {{20 * 512, 512}},
                            .error = {.code = Code::exhausted}}));
    auto read = run(at<Read10>(10, 1));
    EXPECT_EQ(read->code(), 0x31100u);
    EXPECT_EQ(read->sense().information, 10u);
    EXPECT_TRUE(read->data.empty());
    EXPECT_EQ(run(at<Write10>(20, 1), filled(512, 1))->code(), 0x72707u);
}

TEST_F(Transfer, WhoseDataNeverCameIsWrittenIfSomeMayBeInTheDevice) {
    disk.lending = true;
    set_up(disk, {});
    BenchTask task;
    task.to_send = filled(512, 1);
    task.holds_data = true;
    execute(task, *first, at<Write10>(0, 1));
    ASSERT_EQ(task.wanted, 1);
    task.data_failed(SenseKey::aborted_command, AdditionalSense::protocol_service_crc_error);
    ASSERT_EQ(disk.held.size(), 1u) << "the device must know that its memory changed";
    EXPECT_FALSE(task.done());
    disk.let_all_go();
    EXPECT_EQ(task.code(), 0xb4705u);
}

TEST_F(Transfer, WhoseDataNeverCameIsForgottenIfItWasPooled) {
    set_up(disk, {});
    BenchTask task;
    task.to_send = filled(512, 1);
    task.holds_data = true;
    execute(task, *first, at<Write10>(0, 1));
    task.data_failed(SenseKey::aborted_command, AdditionalSense::protocol_service_crc_error);
    EXPECT_TRUE(disk.held.empty());
    EXPECT_EQ(task.code(), 0xb4705u);
    EXPECT_EQ(pool.lent_bytes(), 0u);
}

TEST_F(Transfer, Of32OctetsIsForUnitsThatOfferIt) {
    set_up();
    EXPECT_EQ(run(at<Read32>(0, 1))->code(), 0x52000u);
}

TEST_F(Transfer, WorksInBlocksOf4096) {
    set_up({.block_bytes = 4096});
    EXPECT_TRUE(run(at<Write10>(1, 1), filled(4096, 9))->good());
    EXPECT_EQ(on_disk(8, 8), filled(4096, 9));
    EXPECT_EQ(run(at<Read10>(bench_blocks / 8, 1))->code(), 0x52100u);
}

TEST_F(Transfer, IsReadIntoMemoryNobodyChangesIfItsCarrierWantsThat) {
    set_up();
    put_on_disk(8, filled(4096, 7));
    BenchTask read;
    read.accepted_in = 4096;
    read.stable_data_in = true;
    read.keeps_answer = true;
    execute(read, *first, at<Read10>(8, 8));
    ASSERT_TRUE(read.good());
    EXPECT_TRUE(run(*second, at<Write10>(8, 8), filled(4096, 9))->good());
    EXPECT_EQ(read.answer.data_in[0][0], std::byte{7}) << "a checksum of it may be on its way";
    read.release();
}

}  // namespace
}  // namespace weft::scsi
