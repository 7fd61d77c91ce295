// SPDX-License-Identifier: Apache-2.0
// Disks that are not a plain file on the file system at hand: O_DIRECT, tmpfs, a block device.
// The last two need root; where that or the kernel is missing they are skipped, and say so.
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "linux/file_facts.hpp"
#include "support/disk_fixture.hpp"

namespace weft::linux {
namespace {

using test::TestRequest;

std::vector<std::byte> ramp(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 256 + 1);
    return bytes;
}

class DirectDiskTest : public DiskFixture {
protected:
    void SetUp() override {
        DiskFixture::SetUp();
        if (IsSkipped()) return;
        auto path = make_file((4 << 20) + 10);
        auto made = world->open_disk({.path = path, .direct = true});
        if (!made) {
            // Refused is fine, as long as the refusal is clear.
            EXPECT_EQ(made.error(), (Error{.code = Code::io_failed, .detail = EINVAL}));
            GTEST_SKIP() << "no O_DIRECT on this file system";
        }
        disk = std::move(*made);
        block = disk->traits().minimum_block;
    }
    void TearDown() override {
        disk.reset();
        DiskFixture::TearDown();
    }
    std::unique_ptr<BlockDevice> disk;
    std::uint32_t block = 0;
};

TEST_P(DirectDiskTest, CountsInBlocks) {
    EXPECT_GE(block, 512u);
    EXPECT_EQ(disk->traits().size, 4u << 20) << "the last half block is out of reach";
    auto bytes = ramp(block);
    EXPECT_EQ(write(*disk, 1, bytes).error().code, Code::malformed);
    EXPECT_EQ(write(*disk, 0, Buffer(bytes).first(block - 1)).error().code, Code::malformed);
    EXPECT_EQ(change(*disk, BlockOperation::trim, 1, block).error().code, Code::malformed);
}

TEST_P(DirectDiskTest, TakesAlignedMemoryAsItIs) {
    std::size_t size = 1 << 20;
    auto* raw = static_cast<std::byte*>(std::aligned_alloc(4096, size));
    Buffer memory(raw, size);
    auto bytes = ramp(size);
    std::copy(bytes.begin(), bytes.end(), memory.begin());
    EXPECT_TRUE(write(*disk, block, memory));
    std::fill(memory.begin(), memory.end(), std::byte{0});
    TestRequest back(BlockOperation::read, block, size);
    std::array halves{memory.first(size / 2), memory.subspan(size / 2)};
    back.memory = halves;
    EXPECT_TRUE(wait(*disk, back));
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin()));
    std::free(raw);
}

TEST_P(DirectDiskTest, TakesMemoryOfAnyAlignmentInAnyPieces) {
    std::size_t size = 3 << 20;  // more than the bounce buffer
    auto bytes = ramp(size + 1);
    auto odd = Buffer(bytes).subspan(1);
    std::vector<Buffer> pieces;
    for (std::size_t at = 0, part = 1; at < size; at += part, part = std::min(part * 3, size - at))
        pieces.push_back(odd.subspan(at, std::min(part, size - at)));
    TestRequest request(BlockOperation::write, 0, size);
    request.memory = pieces;
    request.durable = true;
    ASSERT_TRUE(wait(*disk, request));
    auto expected = std::vector<std::byte>(odd.begin(), odd.end());
    std::fill(odd.begin(), odd.end(), std::byte{0});
    TestRequest back(BlockOperation::read, 0, size);
    back.memory = pieces;
    ASSERT_TRUE(wait(*disk, back));
    EXPECT_TRUE(std::equal(odd.begin(), odd.end(), expected.begin()));
}

TEST_P(DirectDiskTest, WritesZeroesAndTakesAdvice) {
    auto bytes = ramp(1 << 20);
    ASSERT_TRUE(write(*disk, 0, bytes));
    ASSERT_TRUE(change(*disk, BlockOperation::write_zeroes, 0, 1 << 20));
    EXPECT_EQ(read(*disk, 0, 1 << 20), std::vector<std::byte>(1 << 20));
    EXPECT_TRUE(change(*disk, BlockOperation::prefetch, 0, 1 << 20));
}

WEFT_WITH_BOTH_ENGINES(DirectDiskTest);

class SmallTmpfsTest : public DiskFixture {
protected:
    void SetUp() override {
        DiskFixture::SetUp();
        if (IsSkipped()) return;
        if (::mount("none", folder.c_str(), "tmpfs", 0, "size=1m") < 0)
            GTEST_SKIP() << "only root can mount a tmpfs";
        mounted = true;
    }
    void TearDown() override {
        if (mounted) ::umount2(folder.c_str(), MNT_DETACH);
        DiskFixture::TearDown();
    }
    bool mounted = false;
};

TEST_P(SmallTmpfsTest, ReportsAFullFileSystem) {
    auto disk = open({.path = make_file(4 << 20)});
    auto bytes = ramp(2 << 20);
    EXPECT_EQ(write(*disk, 0, bytes).error(), (Error{.code = Code::exhausted, .detail = ENOSPC}));
}

TEST_P(SmallTmpfsTest, WritesZeroesByHandWhereTheFileSystemCannotKeepSpace) {
    auto disk = open({.path = make_file(600'000)});
    auto bytes = ramp(600'000);
    ASSERT_TRUE(write(*disk, 0, bytes));
    for (bool fast_only : {true, false, true}) {
        TestRequest zero(BlockOperation::write_zeroes, 100, 500'000);
        zero.keep_space = true;
        zero.fast_only = fast_only;
        auto outcome = wait(*disk, zero);
        if (fast_only) {
            EXPECT_EQ(outcome.error().code, Code::unsupported);
        } else {
            EXPECT_TRUE(outcome);
        }
    }
    auto now = read(*disk, 0, 600'000);
    std::fill(bytes.begin() + 100, bytes.begin() + 500'100, std::byte{0});
    EXPECT_EQ(now, bytes);
}

TEST_P(SmallTmpfsTest, AnswersALongQueueOfWhatItCannotDo) {
    auto disk = open({.path = make_file(600'000)});
    std::vector<std::unique_ptr<TestRequest>> requests;
    for (int i = 0; i < 20'000; ++i) {
        requests.push_back(std::make_unique<TestRequest>(BlockOperation::write_zeroes, 0, 4096));
        requests.back()->keep_space = requests.back()->fast_only = true;
        disk->submit(*requests.back());
    }
    world->run_until([&] {
        return std::all_of(requests.begin(), requests.end(), [](auto& r) { return r->done(); });
    });
    EXPECT_EQ(requests.back()->outcome->error().code, Code::unsupported);
}

WEFT_WITH_BOTH_ENGINES(SmallTmpfsTest);

/// A loop device over a file: the block device anyone with root can have.
class BlockDeviceTest : public DiskFixture {
protected:
    void SetUp() override {
        DiskFixture::SetUp();
        if (IsSkipped()) return;
        Descriptor control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
        int number = control.is_open() ? ::ioctl(control.number(), LOOP_CTL_GET_FREE) : -1;
        if (number < 0) GTEST_SKIP() << "no loop devices here";
        device = "/dev/loop" + std::to_string(number);
        loop = Descriptor(::open(device.c_str(), O_RDWR | O_CLOEXEC));
        Descriptor file(::open(make_file(8 << 20).c_str(), O_RDWR | O_CLOEXEC));
        if (!loop.is_open() || ::ioctl(loop.number(), LOOP_SET_FD, file.number()) < 0) {
            loop.close();
            GTEST_SKIP() << "no loop devices here";
        }
    }
    void TearDown() override {
        if (loop.is_open()) ::ioctl(loop.number(), LOOP_CLR_FD, 0);
        loop.close();
        DiskFixture::TearDown();
    }
    std::string device;
    Descriptor loop;
};

TEST_P(BlockDeviceTest, IsADiskToo) {
    auto disk = open({.path = device});
    auto traits = disk->traits();
    EXPECT_EQ(traits.size, 8u << 20);
    EXPECT_FALSE(traits.can_report_status);
    auto bytes = ramp(1'000'000);
    ASSERT_TRUE(write(*disk, 12'345, bytes));
    EXPECT_TRUE(change(*disk, BlockOperation::flush, 0, 0));
    EXPECT_EQ(read(*disk, 12'345, bytes.size()), bytes);
    if (traits.can_trim) {
        EXPECT_TRUE(change(*disk, BlockOperation::trim, 100'001, 300'001));
    }
    EXPECT_TRUE(change(*disk, BlockOperation::trim, 513, 100)) << "less than a sector";
    EXPECT_EQ(change(*disk, BlockOperation::status, 0, 512).error().code, Code::unsupported);
}

TEST_P(BlockDeviceTest, WritesZeroesAlignedOrNot) {
    auto disk = open({.path = device});
    auto bytes = ramp(1 << 20);
    struct Case {
        std::uint64_t offset, length;
        bool keep_space;
    };
    for (auto [offset, length, keep_space] :
         {Case{4096, 65536, false}, {4096, 65536, true}, {1000, 5000, false}, {1, 3, true}}) {
        ASSERT_TRUE(write(*disk, 0, bytes));
        TestRequest zero(BlockOperation::write_zeroes, offset, length);
        zero.keep_space = keep_space;
        ASSERT_TRUE(wait(*disk, zero));
        auto expected = bytes;
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(offset), length, std::byte{0});
        EXPECT_EQ(read(*disk, 0, bytes.size()), expected) << offset << " " << keep_space;
    }
    TestRequest fast(BlockOperation::write_zeroes, 1000, 5000);
    fast.fast_only = true;
    EXPECT_EQ(wait(*disk, fast).error().code, Code::unsupported) << "unaligned is never fast";
}

WEFT_WITH_BOTH_ENGINES(BlockDeviceTest);

}  // namespace
}  // namespace weft::linux
