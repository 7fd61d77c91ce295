// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::bench_blocks;
using test::filled;

using Verifying = test::ScsiBench;
constexpr VerifyFlags every{.byte_check = ByteCheck::every_block};

TEST_F(Verifying, ComparesWhatIsSentWithWhatIsThere) {
    set_up();
    put_on_disk(3, filled(1024, 'v'));
    EXPECT_TRUE(
        run(Verify10{.flags = every, .block_address = 3, .block_count = 2}, filled(1024, 'v'))
            ->good());
    auto wrong = filled(1024, 'v');
    wrong[700] = std::byte{'x'};
    auto refused = run(Verify16{.flags = every, .block_address = 3, .block_count = 2}, wrong);
    EXPECT_EQ(refused->code(), 0xe1d00u);
    EXPECT_EQ(refused->sense().information, 700u);
    EXPECT_EQ(run(Verify12{.flags = every, .block_address = 3, .block_count = 2}, wrong)->code(),
              0xe1d00u);
    auto unasked = run(Verify10{.block_address = 3, .block_count = 2}, wrong);
    EXPECT_TRUE(unasked->good()) << "without BYTCHK only the medium is looked at";
    EXPECT_EQ(unasked->wanted, 0);
    EXPECT_EQ(unasked->heard.length_out, 0u);
}

TEST_F(Verifying, ComparesOneBlockWithMany) {
    set_up();
    put_on_disk(0, filled(4096, 's'));
    const VerifyFlags single{.byte_check = ByteCheck::single_block};
    auto same =
        run(Verify16{.flags = single, .block_address = 0, .block_count = 8}, filled(512, 's'));
    EXPECT_TRUE(same->good());
    EXPECT_EQ(same->heard.length_out, 512u);
    EXPECT_EQ(run(Verify16{.flags = single, .block_address = 0, .block_count = 9}, filled(512, 's'))
                  ->sense()
                  .information,
              4096u);
    const VerifyFlags reserved_value{.byte_check = ByteCheck{2}};
    EXPECT_EQ(run(Verify16{.flags = reserved_value, .block_address = 0, .block_count = 1},
                  filled(512, 's'))
                  ->code(),
              0x52400u);
}

TEST_F(Verifying, IsBoundLikeReading) {
    set_up();
    EXPECT_EQ(run(Verify10{.block_address = bench_blocks, .block_count = 1})->code(), 0x52100u);
    EXPECT_EQ(run(Verify16{.flags = {.protect = 1}, .block_count = 1})->code(), 0x52400u);
    EXPECT_TRUE(run(Verify16{.flags = {.disable_page_out = true}, .block_count = 1})->good());
    EXPECT_TRUE(run(Verify12{.block_count = bench_blocks})->good());
    EXPECT_TRUE(run(Verify10{.flags = every})->good());
}

TEST_F(Verifying, FindsWhatCannotBeRead) {
    set_up(filter, {});
    ASSERT_TRUE(filter.add({.operation = BlockOperation::read, .range = {{2500 * 512, 512}}}));
    EXPECT_EQ(run(Verify12{.block_count = bench_blocks})->code(), 0x31100u);
}

TEST_F(Verifying, WritesFirstIfToldTo) {
    set_up();
    EXPECT_TRUE(run(WriteAndVerify10{.flags = every, .block_address = 9, .block_count = 2},
                    filled(1024, 'n'))
                    ->good());
    EXPECT_EQ(on_disk(9, 2), filled(1024, 'n'));
    EXPECT_TRUE(
        run(WriteAndVerify16{.block_address = 9, .block_count = 1}, filled(512, 'o'))->good());
    EXPECT_TRUE(
        run(WriteAndVerify12{.block_address = 9, .block_count = 2}, filled(512, 'p'))->good());
    EXPECT_EQ(on_disk(9, 1), filled(512, 'p'));
    EXPECT_EQ(on_disk(10, 1), filled(512, 'n'));
    auto odd = run(WriteAndVerify12{.block_address = 9, .block_count = 1}, filled(200, 'q'));
    EXPECT_TRUE(odd->good());
    EXPECT_EQ(odd->heard.length_out, 512u);
    EXPECT_EQ(on_disk(9, 1)[199], std::byte{'q'});
    EXPECT_EQ(on_disk(9, 1)[200], std::byte{'p'});
    EXPECT_EQ(run(WriteAndVerify16{.block_address = bench_blocks + 1})->code(), 0x52100u);
}

}  // namespace
}  // namespace weft::scsi
