// SPDX-License-Identifier: Apache-2.0
#include "linux/file_disk.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <deque>
#include <random>

#include "linux/disk_operation.hpp"
#include "support/disk_fixture.hpp"

namespace weft::linux {
namespace {

using test::TestRequest;

std::vector<std::byte> noise(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(size);
    for (auto& octet : bytes) octet = static_cast<std::byte>(random() | 1);  // never zero
    return bytes;
}

class FileDiskTest : public DiskFixture {};

TEST_P(FileDiskTest, TellsWhatItIs) {
    auto disk = open({.path = make_file(1'000'001)});
    auto traits = disk->traits();
    EXPECT_EQ(traits.size, 1'000'001u);
    EXPECT_EQ(traits.minimum_block, 1u);
    EXPECT_FALSE(traits.read_only);
    EXPECT_TRUE(traits.can_report_status);
    EXPECT_EQ(std::filesystem::file_size(folder / "disk"), 1'000'001u);
}

TEST_P(FileDiskTest, CanDoTheSameHoweverItIsOpenedAndIsNotChangedByTheQuestion) {
    auto path = make_file(10'000);
    timespec long_ago[] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
    auto writable = open({.path = path})->traits();
    auto read_only = open({.path = path, .read_only = true})->traits();
    EXPECT_EQ(read_only.can_trim, writable.can_trim);
    EXPECT_EQ(read_only.can_write_zeroes, writable.can_write_zeroes);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mtim.tv_sec, 1000) << "asking is not writing";
    std::filesystem::directory_iterator entries(folder);
    EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "nothing is left behind";
}

TEST_P(FileDiskTest, AgreesWithMemoryAboutScatteredReadsAndWrites) {
    constexpr std::size_t size = 3'000'000;
    auto disk = open({.path = make_file(size)});
    std::vector<std::byte> model(size);
    std::mt19937 random(1);
    for (int step = 0; step < 200; ++step) {
        auto offset = random() % size;
        auto length = 1 + random() % std::min<std::size_t>(size - offset, 200'000);
        auto bytes = noise(length, static_cast<unsigned>(step));
        // Up to a hundred pieces, some of them empty: more than one system call takes.
        std::vector<Buffer> pieces;
        for (std::size_t at = 0; at < length;) {
            auto part = std::min<std::size_t>(random() % (1 + length / 50), length - at);
            pieces.push_back(Buffer(bytes).subspan(at, part));
            at += part;
        }
        bool writes = random() % 2;
        auto expected = model.begin() + static_cast<std::ptrdiff_t>(offset);
        if (writes) std::copy(bytes.begin(), bytes.end(), expected);
        TestRequest request(writes ? BlockOperation::write : BlockOperation::read, offset, length);
        request.memory = pieces;
        request.durable = step % 40 == 0;
        ASSERT_TRUE(wait(*disk, request));
        ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), expected)) << "at step " << step;
    }
    EXPECT_EQ(read(*disk, 0, size), model);
}

TEST_P(FileDiskTest, MovesMoreThanOneOperationTakes) {
    constexpr std::size_t size = 40 << 20;
    auto disk = open({.path = make_file(size)});
    auto bytes = noise(size, 2);
    EXPECT_TRUE(write(*disk, 0, bytes));
    EXPECT_EQ(read(*disk, 0, size), bytes);
}

TEST_P(FileDiskTest, AnswersEveryRequestOfALongQueueOnce) {
    constexpr std::size_t count = 2000, block = 512;  // far more than a disk's depth
    auto disk = open({.path = make_file(count * block)});
    auto bytes = noise(count * block, 3);
    std::vector<std::unique_ptr<TestRequest>> requests;
    for (std::size_t i = 0; i < count; ++i) {
        auto at = i * 7919 % count * block;
        requests.push_back(std::make_unique<TestRequest>(BlockOperation::write, at, block));
        requests.back()->with_memory(Buffer(bytes).subspan(at, block));
        disk->submit(*requests.back());
    }
    world->run_until([&] {
        return std::all_of(requests.begin(), requests.end(), [](auto& r) { return r->done(); });
    });
    for (auto& request : requests) {
        EXPECT_TRUE(*request->outcome);
    }
    EXPECT_EQ(read(*disk, 0, count * block), bytes);
}

TEST_P(FileDiskTest, BoundsItsQueue) {
    auto disk = open({.path = make_file(4096)});
    std::vector<std::unique_ptr<TestRequest>> requests;
    auto bound = limits::waiting_requests_per_disk + limits::operations_per_disk;
    for (std::size_t i = 0; i <= bound; ++i) {
        requests.push_back(std::make_unique<TestRequest>(BlockOperation::read, 0, 16));
        disk->submit(*requests.back());
    }
    ASSERT_TRUE(requests.back()->done()) << "one more than fits must be told at once";
    EXPECT_EQ(requests.back()->outcome->error().code, Code::exhausted);
    requests.pop_back();
    world->run_until([&] { return requests.back()->done(); });
    world->run_until([&] {
        return std::all_of(requests.begin(), requests.end(), [](auto& r) { return r->done(); });
    });
    EXPECT_TRUE(*requests.back()->outcome);
}

TEST_P(FileDiskTest, MayBeDroppedByTheLastAnswer) {
    struct Dropper final : BlockRequest {
        std::unique_ptr<BlockDevice> disk;
        bool done = false;
        void completed(Result<void>) override {
            disk.reset();
            done = true;
        }
    } dropper;
    dropper.disk = open({.path = make_file(4096)});
    dropper.operation = BlockOperation::flush;
    dropper.disk->submit(dropper);
    world->run_until([&] { return dropper.done; });
    EXPECT_FALSE(dropper.disk);
}

TEST_P(FileDiskTest, RefusesWhatLiesOutside) {
    auto disk = open({.path = make_file(1000)});
    for (std::uint64_t offset : {985ull, 1000ull, ~0ull - 7, 1ull << 63}) {
        for (auto operation : {BlockOperation::read, BlockOperation::write}) {
            TestRequest request(operation, offset, 16);
            EXPECT_EQ(wait(*disk, request).error().code, Code::out_of_range) << offset;
        }
        EXPECT_EQ(change(*disk, BlockOperation::trim, offset, 16).error().code, Code::out_of_range);
    }
    EXPECT_EQ(std::filesystem::file_size(folder / "disk"), 1000u);
}

TEST_P(FileDiskTest, CompletesEmptyRequestsAtOnce) {
    auto disk = open({.path = make_file(1000)});
    TestRequest request(BlockOperation::read, 1000, 0);
    disk->submit(request);
    ASSERT_TRUE(request.done());
    EXPECT_TRUE(*request.outcome);
}

TEST_P(FileDiskTest, ChangesNothingWhenReadOnly) {
    auto path = make_file(10'000);
    auto disk = open({.path = path, .read_only = true});
    EXPECT_TRUE(disk->traits().read_only);
    auto bytes = noise(100, 4);
    EXPECT_EQ(write(*disk, 0, bytes).error().code, Code::access_denied);
    EXPECT_EQ(change(*disk, BlockOperation::trim, 0, 100).error().code, Code::access_denied);
    EXPECT_EQ(change(*disk, BlockOperation::write_zeroes, 0, 100).error().code,
              Code::access_denied);
    EXPECT_TRUE(change(*disk, BlockOperation::flush, 0, 0));
    EXPECT_EQ(read(*disk, 0, 100), std::vector<std::byte>(100));
}

TEST_P(FileDiskTest, FailsWhenTheFileHasShrunk) {
    auto path = make_file(100'000);
    auto disk = open({.path = path});
    std::filesystem::resize_file(path, 50'000);
    TestRequest across(BlockOperation::read, 40'000, 20'000);
    EXPECT_EQ(wait(*disk, across).error(), (Error{.code = Code::io_failed, .detail = EIO}));
    EXPECT_EQ(read(*disk, 0, 50'000), std::vector<std::byte>(50'000));
    std::array<Extent, 8> extents;
    TestRequest status(BlockOperation::status, 0, 100'000);
    status.extents = extents;
    EXPECT_EQ(wait(*disk, status).error().code, Code::io_failed) << "lost data are not a hole";
}

TEST_P(FileDiskTest, TrimsAndReportsHoles) {
    constexpr std::uint64_t unit = 64 * 1024;
    auto disk = open({.path = make_file(16 * unit)});
    if (!disk->traits().can_trim) GTEST_SKIP() << "this file system makes no holes";
    auto bytes = noise(16 * unit, 5);
    EXPECT_TRUE(write(*disk, 0, bytes));
    TestRequest trim(BlockOperation::trim, 4 * unit, 4 * unit);
    trim.durable = true;
    EXPECT_TRUE(wait(*disk, trim));
    EXPECT_EQ(read(*disk, 4 * unit, 4 * unit), std::vector<std::byte>(4 * unit));

    std::array<Extent, 8> extents;
    TestRequest status(BlockOperation::status, unit, 14 * unit);
    status.extents = extents;
    ASSERT_TRUE(wait(*disk, status));
    ASSERT_EQ(status.extent_count, 3u);
    EXPECT_EQ(extents[0], (Extent{3 * unit, false, false}));
    EXPECT_EQ(extents[1], (Extent{4 * unit, true, true}));
    EXPECT_EQ(extents[2], (Extent{7 * unit, false, false}));

    TestRequest cramped(BlockOperation::status, unit, 14 * unit);
    cramped.extents = std::span(extents).first(1);
    ASSERT_TRUE(wait(*disk, cramped));
    EXPECT_EQ(cramped.extent_count, 1u);
    EXPECT_EQ(extents[0], (Extent{3 * unit, false, false}));
}

TEST_P(FileDiskTest, ReportsAHoleUpToTheEnd) {
    auto disk = open({.path = make_file(100'001)});
    std::array<Extent, 8> extents;
    TestRequest status(BlockOperation::status, 0, 100'001);
    status.extents = extents;
    ASSERT_TRUE(wait(*disk, status));
    ASSERT_EQ(status.extent_count, 1u);
    EXPECT_EQ(extents[0], (Extent{100'001, true, true}));
}

std::uint64_t space_of(const std::string& path) {
    struct stat status {};
    ::stat(path.c_str(), &status);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST_P(FileDiskTest, WritesZeroesAsAHoleOrKeepsTheSpace) {
    constexpr std::uint64_t size = 1 << 20;
    auto path = make_file(size);
    auto disk = open({.path = path});
    auto bytes = noise(size, 6);
    for (bool keep_space : {false, true}) {
        ASSERT_TRUE(write(*disk, 0, bytes));
        TestRequest zero(BlockOperation::write_zeroes, 1000, size - 2000);
        zero.keep_space = keep_space;
        zero.durable = true;
        ASSERT_TRUE(wait(*disk, zero));
        auto now = read(*disk, 0, size);
        EXPECT_TRUE(std::equal(now.begin(), now.begin() + 1000, bytes.begin()));
        EXPECT_TRUE(std::equal(now.end() - 1000, now.end(), bytes.end() - 1000));
        EXPECT_TRUE(std::all_of(now.begin() + 1000, now.end() - 1000,
                                [](auto octet) { return octet == std::byte{0}; }));
        if (keep_space) {
            EXPECT_GE(space_of(path), size) << "its space was to be kept";
        } else if (disk->traits().can_write_zeroes) {
            EXPECT_LT(space_of(path), size / 2) << "a hole was wanted";
        }
    }
}

TEST_P(FileDiskTest, AcceptsAdvice) {
    auto disk = open({.path = make_file(1 << 20)});
    EXPECT_TRUE(change(*disk, BlockOperation::prefetch, 0, 1 << 20));
}

TEST_P(FileDiskTest, SaysWhatIsWrongWithAPath) {
    EXPECT_EQ(world->open_disk({.path = folder / "none"}).error(),
              (Error{.code = Code::not_found, .detail = ENOENT}));
    EXPECT_EQ(world->open_disk({.path = folder, .read_only = true}).error().code,
              Code::unsupported);
    EXPECT_EQ(world->open_disk({.path = "/dev/null"}).error().code, Code::unsupported);
    auto fifo = folder / "fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_EQ(world->open_disk({.path = fifo, .read_only = true}).error().code, Code::unsupported);
}

TEST_P(FileDiskTest, ServesAlsoWhereNoThreadCanBeHad) {
    auto disk = open({.path = make_file(1 << 20)});
    rlimit before{};
    ::getrlimit(RLIMIT_NPROC, &before);
    rlimit none{0, before.rlim_max};
    ::setrlimit(RLIMIT_NPROC, &none);
    bool was_root = ::geteuid() == 0;  // for whom the limit does not hold
    bool limited = !was_root || ::seteuid(65534) == 0;
    auto bytes = noise(300'000, 7);
    auto written = write(*disk, 4096, bytes);
    std::array<Extent, 8> extents;
    TestRequest status(BlockOperation::status, 0, 1 << 20);
    status.extents = extents;
    auto told = wait(*disk, status);
    bool restored = !was_root || ::seteuid(0) == 0;
    ::setrlimit(RLIMIT_NPROC, &before);
    EXPECT_TRUE(limited && restored && written && told);
    EXPECT_EQ(read(*disk, 4096, bytes.size()), bytes);
}

TEST_P(FileDiskTest, ReportsAWriteTheLimitsForbid) {
    auto path = make_file(1 << 20);
    auto disk = open({.path = path});
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit tight{4096, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &tight);
    auto bytes = noise(4096, 7);
    auto outcome = write(*disk, 65536, bytes);
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, SIG_DFL);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error(), (Error{.code = Code::io_failed, .detail = EFBIG}));
}

TEST_P(FileDiskTest, MayBeDestroyedByWhoHearsTheLastCompletion) {
    auto path = make_file(1 << 20);
    for (std::size_t count : {std::size_t{1}, limits::operations_per_disk + 3}) {
        auto disk = open({.path = path});
        std::deque<TestRequest> requests;
        auto left = count;
        for (std::size_t i = 0; i < count; ++i) {
            auto operation = i % 3 == 2 ? BlockOperation::flush : BlockOperation::write;
            requests.emplace_back(operation, i * 4096, 4096).then = [&] {
                if (--left == 0) disk.reset();
            };
        }
        for (auto& request : requests) disk->submit(request);
        world->run_until([&] { return left == 0; });
        EXPECT_EQ(disk, nullptr);
        for (auto& request : requests) EXPECT_TRUE(request.succeeded());
    }
    auto disk = open({.path = path});
    TestRequest beyond(BlockOperation::read, 1 << 20, 1);
    beyond.then = [&] { disk.reset(); };
    disk->submit(beyond);
    EXPECT_EQ(beyond.failure(), Code::out_of_range);
    EXPECT_EQ(disk, nullptr);
}

/// A file system that takes what is written and finds only then that it has no room for it: it
/// says so once, to whoever synchronizes first.
struct LateRefusals final : FileIo {
    void start(FileOperation& operation) override { started.push_back(&operation); }
    void run() {
        while (!started.empty()) {
            auto& next = *std::exchange(started.front(), started.back());
            started.pop_back();
            const bool refused =
                next.kind == FileOperation::Kind::synchronize && std::exchange(refuses_next, false);
            next.finished(refused ? -ENOSPC : perform(next));
        }
    }
    std::vector<FileOperation*> started;
    bool refuses_next = false;
};

// A second one would succeed, and what an earlier write lost with the first be missed by nobody.
TEST_P(FileDiskTest, IsNotToBeAskedAgainForWhatASynchronizationLost) {
    LateRefusals files;
    auto disk = std::move(*FileDisk::open(files, {.path = make_file(1 << 20)}));
    for (auto operation : {BlockOperation::write, BlockOperation::trim, BlockOperation::flush}) {
        if (operation == BlockOperation::trim && !disk->traits().can_trim) continue;
        files.refuses_next = true;
        const bool is_flush = operation == BlockOperation::flush;
        TestRequest request(operation, 0, is_flush ? 0 : 4096);
        request.durable = !is_flush;
        disk->submit(request);
        files.run();
        ASSERT_TRUE(request.done());
        EXPECT_FALSE(files.refuses_next);
        ASSERT_FALSE(*request.outcome);
        EXPECT_EQ(request.outcome->error(), (Error{.code = Code::io_failed, .detail = ENOSPC}));
    }
}

WEFT_WITH_BOTH_ENGINES(FileDiskTest);

}  // namespace
}  // namespace weft::linux
