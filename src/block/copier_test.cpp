// SPDX-License-Identifier: Apache-2.0
#include "block/copier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "block/error_filter.hpp"
#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "support/held_disk.hpp"

namespace weft::block {
namespace {

constexpr std::uint64_t size = 3 << 20;

struct Disk {
    MemoryDisk device{std::make_unique<HeapMemory>(size), size};

    Buffer bytes(std::uint64_t at, std::uint64_t length) {
        return device.lend(BlockOperation::write, at, length);
    }
    ConstBuffer contents() { return device.lend(BlockOperation::read, 0, size); }
};

void fill(Buffer place, unsigned seed) {
    std::mt19937 chance(seed);
    for (auto& octet : place) octet = static_cast<std::byte>(chance());
}

std::optional<Result<void>> copy(Copier& copier) {
    std::optional<Result<void>> outcome;
    EXPECT_TRUE(copier.start([&](Result<void> result) { outcome = result; }));
    return outcome;
}

TEST(Copier, CopiesDataAndLeavesHoles) {
    Disk source, target;
    fill(source.bytes(0, 4096), 1);
    fill(source.bytes(1 << 20, 300'000), 2);
    fill(source.bytes(size - 512, 512), 3);
    fill(target.bytes(2 << 20, 4096), 4);  // must be gone afterwards
    Copier copier(source.device, target.device, {.pieces_in_flight = 3, .piece_bytes = 65536});
    auto outcome = copy(copier);
    ASSERT_TRUE(outcome && outcome->has_value());
    EXPECT_EQ(std::memcmp(source.contents().data(), target.contents().data(), size), 0);
    EXPECT_EQ(copier.bytes_done(), size);
    EXPECT_EQ(copier.bytes_moved(), source.device.allocated_bytes());
    EXPECT_EQ(target.device.allocated_bytes(), source.device.allocated_bytes());
}

TEST(Copier, TellsOfAFailedReadAndStops) {
    Disk source, target;
    fill(source.bytes(0, size), 1);
    ErrorFilter failing(source.device);
    ASSERT_TRUE(failing.add({.operation = BlockOperation::read, .range = {{1 << 20, 1}}}));
    Copier copier(failing, target.device, {.pieces_in_flight = 4, .piece_bytes = 65536});
    auto outcome = copy(copier);
    ASSERT_TRUE(outcome && !outcome->has_value());
    EXPECT_EQ(outcome->error().code, Code::io_failed);
    EXPECT_LT(copier.bytes_done(), size);
}

TEST(Copier, TellsOfAFailedWriteAndOfAFailedFlush) {
    for (auto operation : {BlockOperation::write, BlockOperation::flush}) {
        Disk source, target;
        fill(source.bytes(0, 4096), 1);
        ErrorFilter failing(target.device);
        ASSERT_TRUE(failing.add({.operation = operation}));
        Copier copier(source.device, failing, {});
        auto outcome = copy(copier);
        ASSERT_TRUE(outcome && !outcome->has_value());
        EXPECT_EQ(outcome->error().code, Code::io_failed);
    }
}

TEST(Copier, WritesZeroesToATargetThatRefusesToMakeThem) {
    for (auto code : {Code::unsupported, Code::malformed}) {
        Disk source, target;
        fill(source.bytes(1 << 20, 4096), 1);
        fill(target.bytes(0, size), 2);
        ErrorFilter refusing(target.device);
        ErrorRule rule{.operation = BlockOperation::write_zeroes, .error = {.code = code}};
        ASSERT_TRUE(refusing.add(rule));
        Copier copier(source.device, refusing, {.pieces_in_flight = 3, .piece_bytes = 65536});
        auto outcome = copy(copier);
        ASSERT_TRUE(outcome && outcome->has_value());
        EXPECT_EQ(std::memcmp(source.contents().data(), target.contents().data(), size), 0);
        EXPECT_EQ(copier.bytes_done(), size);
        EXPECT_EQ(copier.bytes_moved(), size);
    }
}

TEST(Copier, WritesAllZeroesThatWereRefusedWhileUnderWay) {
    Disk source, target;
    for (std::uint64_t at = 0; at < size; at += 262144) fill(source.bytes(at, 131072), 1);
    fill(target.bytes(0, size), 2);
    test::HeldDisk held(target.device);
    Copier copier(source.device, held, {.pieces_in_flight = 4, .piece_bytes = 131072});
    std::optional<Result<void>> outcome;
    ASSERT_TRUE(copier.start([&](Result<void> result) { outcome = result; }));
    int refused = 0;
    while (!held.held.empty()) {
        // Data wait, so that several holes are under way at once.
        auto hole = std::find_if(held.held.begin(), held.held.end(), [](auto* request) {
            return request->operation == BlockOperation::write_zeroes;
        });
        if (hole == held.held.end()) {
            held.let_go(0);
            continue;
        }
        ++refused;
        held.fail(static_cast<std::size_t>(hole - held.held.begin()), {.code = Code::unsupported});
    }
    EXPECT_EQ(refused, 2);
    ASSERT_TRUE(outcome && outcome->has_value());
    EXPECT_EQ(std::memcmp(source.contents().data(), target.contents().data(), size), 0);
    EXPECT_EQ(copier.bytes_done(), size);
}

TEST(Copier, TellsOfZeroesThatFailedForAnotherReason) {
    Disk source, target;
    fill(source.bytes(0, 4096), 1);
    ErrorFilter failing(target.device);
    ASSERT_TRUE(failing.add({.operation = BlockOperation::write_zeroes}));
    Copier copier(source.device, failing, {});
    auto outcome = copy(copier);
    ASSERT_TRUE(outcome && !outcome->has_value());
    EXPECT_EQ(outcome->error().code, Code::io_failed);
}

/// A disk that takes only whole blocks of that many bytes.
struct CoarseDisk : Disk {
    explicit CoarseDisk(std::uint32_t block) : shown(device) {
        shown.holding = false;
        shown.shown.minimum_block = block;
    }
    test::HeldDisk shown;
};

TEST(Copier, KeepsToTheBlocksOfBothDevices) {
    for (auto [source_block, target_block] :
         {std::pair{1u, 65536u}, {65536u, 1u}, {512u, 16384u}}) {
        CoarseDisk source(source_block), target(target_block);
        fill(source.bytes(4096, 4096), 1);  // less than a block, between zeroes
        fill(source.bytes(1 << 20, 300'000), 2);
        fill(target.bytes(0, size), 3);
        Copier copier(source.shown, target.shown, {.pieces_in_flight = 3, .piece_bytes = 100'000});
        auto outcome = copy(copier);
        ASSERT_TRUE(outcome && outcome->has_value());
        EXPECT_EQ(std::memcmp(source.contents().data(), target.contents().data(), size), 0);
        EXPECT_EQ(copier.bytes_done(), size);
        EXPECT_LT(copier.bytes_moved(), size / 2) << "holes are still holes";
    }
}

TEST(Copier, RefusesWhatIsNotWholeBlocksBeforeItWrites) {
    CoarseDisk source(1), target(4096);
    source.shown.shown.size = 1'000'000;
    fill(source.bytes(0, size), 1);
    Copier copier(source.shown, target.shown, {});
    bool called = false;
    auto begun = copier.start([&](Result<void>) { called = true; });
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, Code::malformed);
    EXPECT_EQ(copier.block_bytes(), 4096u);
    EXPECT_FALSE(called);
    EXPECT_EQ(target.device.allocated_bytes(), 0u);
}

}  // namespace
}  // namespace weft::block
