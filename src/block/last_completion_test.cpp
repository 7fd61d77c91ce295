// SPDX-License-Identifier: Apache-2.0
// The promise of weft/block_device.hpp that whoever hears the last completion may destroy the
// device, for each device of this folder. What a device touches too late only a sanitizer sees.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "block/delay_filter.hpp"
#include "block/error_filter.hpp"
#include "block/heap_memory.hpp"
#include "block/log_filter.hpp"
#include "block/memory_disk.hpp"
#include "block/offset_filter.hpp"
#include "support/held_disk.hpp"
#include "support/manual_world.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using test::TestRequest;
using Device = std::unique_ptr<BlockDevice>;

constexpr std::uint64_t size = 64 << 10;

struct Kind {
    const char* name;
    std::function<Device(BlockDevice& below, World& world)> make;
};

const Kind kinds[] = {
    {"Memory",
     [](BlockDevice&, World&) {
         return std::make_unique<MemoryDisk>(std::make_unique<HeapMemory>(size), size);
     }},
    {"Offset",
     [](BlockDevice& below, World&) -> Device {
         return std::move(*OffsetFilter::make(below, 4096, size - 4096));
     }},
    {"Error", [](BlockDevice& below, World&) { return std::make_unique<ErrorFilter>(below); }},
    {"FailingError",
     [](BlockDevice& below, World&) {
         auto filter = std::make_unique<ErrorFilter>(below);
         EXPECT_TRUE(filter->add({}));
         return filter;
     }},
    {"Delay",
     [](BlockDevice& below, World& world) {
         return std::make_unique<DelayFilter>(below, world, std::chrono::milliseconds(1));
     }},
    {"Log", [](BlockDevice& below,
               World&) { return std::make_unique<LogFilter>(below, [](std::string_view) {}); }},
};

class LastCompletionTest : public testing::TestWithParam<Kind> {
protected:
    /// Submits so many, the last of which to complete destroys the device; returns those refused.
    std::size_t destroy_in_the_last_of(std::size_t count, std::uint64_t offset) {
        Device device = GetParam().make(below, world);
        std::deque<TestRequest> requests;
        std::size_t left = count, refused = 0;
        for (std::size_t i = 0; i < count; ++i) {
            auto& request = requests.emplace_back(BlockOperation::write, offset, 512);
            request.then = [&] {
                if (request.failure() == Code::out_of_range) ++refused;
                if (--left == 0) device.reset();
            };
        }
        for (auto& request : requests) device->submit(request);
        while (left > 0) {
            world.advance(std::chrono::milliseconds(1));
            below.let_all_go();
        }
        EXPECT_EQ(device, nullptr);
        return refused;
    }

    test::ManualWorld world;
    MemoryDisk memory{std::make_unique<HeapMemory>(size), size};
    test::HeldDisk below{memory};
};

TEST_P(LastCompletionTest, MayDestroyADeviceThatAnswersAtOnce) {
    below.holding = false;
    EXPECT_EQ(destroy_in_the_last_of(1, 0), 0u);
}

TEST_P(LastCompletionTest, MayDestroyADeviceThatAnswersLater) {
    EXPECT_EQ(destroy_in_the_last_of(relay_places + 3, 0), 0u) << "some of them wait in line";
}

TEST_P(LastCompletionTest, MayDestroyADeviceThatRefuses) {
    below.holding = false;
    bool fails_all = std::string_view(GetParam().name) == "FailingError";
    EXPECT_EQ(destroy_in_the_last_of(1, size), fails_all ? 0u : 1u);
}

INSTANTIATE_TEST_SUITE_P(Devices, LastCompletionTest, testing::ValuesIn(kinds),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace weft::block
