// SPDX-License-Identifier: Apache-2.0
#include "block/offset_filter.hpp"

#include <gtest/gtest.h>

#include "support/test_disk.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using test::read_text;
using test::TestDisk;
using test::TestRequest;
using test::write_text;

std::unique_ptr<OffsetFilter> window(BlockDevice& disk, std::uint64_t offset,
                                     std::uint64_t length) {
    auto made = OffsetFilter::make(disk, offset, length);
    EXPECT_TRUE(made);
    return std::move(*made);
}

TEST(OffsetFilter, ShowsAWindowOfTheDevice) {
    TestDisk disk(65536);
    auto part = window(disk, 8192, 4096);
    EXPECT_EQ(part->traits().size, 4096u);
    ASSERT_TRUE(write_text(*part, 100, "weft"));
    EXPECT_EQ(read_text(disk, 8292, 4), "weft");
    EXPECT_EQ(read_text(*part, 100, 4), "weft");
}

TEST(OffsetFilter, LeavesTheRequestAsItWas) {
    TestDisk disk(65536);
    auto part = window(disk, 8192, 4096);
    TestRequest request(BlockOperation::read, 512, 64);
    part->submit(request);
    EXPECT_TRUE(request.succeeded());
    EXPECT_EQ(request.offset, 512u);
    EXPECT_EQ(request.length, 64u);
}

TEST(OffsetFilter, RefusesWhatLiesOutsideTheWindow) {
    TestDisk disk(65536);
    auto part = window(disk, 8192, 4096);
    for (auto [offset, length] : {std::pair<std::uint64_t, std::uint64_t>{4096, 1},
                                  {4095, 2},
                                  {~0ull, 1},
                                  {~0ull - 8191, 8192}}) {
        TestRequest request(BlockOperation::trim, offset, length);
        part->submit(request);
        EXPECT_EQ(request.failure(), Code::out_of_range) << offset;
        EXPECT_TRUE(part->lend(BlockOperation::read, offset, length).empty());
    }
    EXPECT_EQ(disk.submitted, 0);
    TestRequest whole(BlockOperation::trim, 0, 4096);
    part->submit(whole);
    EXPECT_TRUE(whole.succeeded());
}

TEST(OffsetFilter, LendsTheDevicesOwnMemory) {
    TestDisk disk(65536);
    auto part = window(disk, 8192, 4096);
    auto lent = part->lend(BlockOperation::write, 16, 32);
    ASSERT_EQ(lent.size(), 32u);
    EXPECT_EQ(lent.data(), disk.lend(BlockOperation::write, 8208, 32).data());
}

TEST(OffsetFilter, ReportsStatusFromTheWindowsBeginning) {
    TestDisk disk(65536);
    auto part = window(disk, 8192, 12288);
    ASSERT_TRUE(write_text(disk, 12288, "data"));
    std::array<Extent, 8> extents;
    TestRequest request(BlockOperation::status, 0, 12288);
    request.extents = extents;
    part->submit(request);
    ASSERT_EQ(request.extent_count, 3u);
    EXPECT_EQ(extents[0], (Extent{.length = 4096, .hole = true, .zero = true}));
    EXPECT_EQ(extents[1], (Extent{.length = 4096, .hole = false, .zero = false}));
}

TEST(OffsetFilter, IsNotMadeWhereThereIsNoRoom) {
    TestDisk disk(65536);
    EXPECT_EQ(OffsetFilter::make(disk, 65536, 1).error().code, Code::out_of_range);
    EXPECT_EQ(OffsetFilter::make(disk, ~0ull, 2).error().code, Code::out_of_range);
    EXPECT_TRUE(OffsetFilter::make(disk, 65536, 0));
    disk.minimum_block = 512;
    EXPECT_EQ(OffsetFilter::make(disk, 256, 512).error().code, Code::malformed);
    EXPECT_EQ(OffsetFilter::make(disk, 512, 256).error().code, Code::malformed);
}

struct Heard final : SizeWatcher {
    std::vector<std::uint64_t> sizes;
    void size_changed(std::uint64_t size) override { sizes.push_back(size); }
};

TEST(OffsetFilter, KeepsWhatIsLeftWhenTheDeviceShrinks) {
    TestDisk disk(65536);
    auto part = window(disk, 8192, 4096);
    Heard heard;
    part->watch_size(heard);
    disk.resize(10000);
    disk.resize(100);
    disk.resize(65536);
    EXPECT_EQ(heard.sizes, (std::vector<std::uint64_t>{1808, 0, 4096}));
    EXPECT_EQ(part->traits().size, 4096u);
}

}  // namespace
}  // namespace weft::block
