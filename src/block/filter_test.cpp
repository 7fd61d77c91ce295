// SPDX-License-Identifier: Apache-2.0
// What holds for every filter: they stack, and they allocate nothing per request.
#include "block/filter.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "block/delay_filter.hpp"
#include "block/error_filter.hpp"
#include "block/log_filter.hpp"
#include "block/offset_filter.hpp"
#include "support/manual_world.hpp"
#include "support/test_disk.hpp"
#include "support/test_request.hpp"

namespace {
std::size_t allocations = 0;
}

// Counts every allocation of this program. Not inlined, since g++ then sees malloc() where it
// expects new and warns.
[[gnu::noinline]] void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace weft::block {
namespace {

using namespace std::chrono_literals;

TEST(Filters, StackAndAllocateNothingPerRequest) {
    test::ManualWorld world;
    test::TestDisk disk(65536);
    auto window = OffsetFilter::make(disk, 4096, 8192);
    ASSERT_TRUE(window);
    ErrorFilter failing(**window);
    ASSERT_TRUE(failing.add({.operation = BlockOperation::write, .every = 2}));
    DelayFilter slow(failing, world, 1ms);
    std::size_t lines = 0;
    LogFilter top(slow, [&](std::string_view) { ++lines; });
    EXPECT_EQ(top.traits().size, 8192u);

    test::TestRequest write(BlockOperation::write, 0, 512), read(BlockOperation::read, 0, 512);
    auto before = allocations;
    for (int i = 0; i < 100; ++i) {
        for (auto* request : {&write, &read}) {
            request->outcome.reset();
            top.submit(*request);
            world.advance(1ms);
        }
        if (!read.succeeded() || write.succeeded() != (i % 2 == 0)) FAIL() << "round " << i;
    }
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(lines, 200u);
    ::operator delete(::operator new(1));  // called by name, it may not be optimised away
    EXPECT_GT(allocations, before) << "allocations are not counted";
}

struct Heard final : SizeWatcher {
    std::uint64_t size = 0;
    void size_changed(std::uint64_t now) override { size = now; }
};

TEST(Filters, AnnounceTheSizeOfTheDeviceBelow) {
    test::TestDisk disk(65536);
    Heard heard;
    {
        ErrorFilter lower(disk);
        LogFilter upper(lower, [](std::string_view) {});
        upper.watch_size(heard);
        disk.resize(4096);
        EXPECT_EQ(heard.size, 4096u);
        EXPECT_EQ(upper.traits().size, 4096u);
    }
    disk.resize(8192);  // nobody is there to be told any more
    EXPECT_EQ(heard.size, 4096u);
}

/// Ends another's watch when it hears.
struct Silencing final : SizeWatcher {
    Silencing(BlockDevice& watched, SizeWatcher& silenced) : device(watched), other(silenced) {}
    void size_changed(std::uint64_t) override { device.unwatch_size(other); }
    BlockDevice& device;
    SizeWatcher& other;
};

TEST(ABlockDevice, TellsNoWatcherThatAnEarlierOneRemoved) {
    test::TestDisk disk(65536);
    Heard heard;
    Silencing silencing(disk, heard);
    disk.watch_size(silencing);
    disk.watch_size(heard);
    disk.resize(4096);
    EXPECT_EQ(heard.size, 0u);
}

}  // namespace
}  // namespace weft::block
