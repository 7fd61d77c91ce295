// SPDX-License-Identifier: Apache-2.0
// The memory disk beside a model too simple to be wrong: a vector of octets and a set of blocks.
// Random requests go to both; after each, answers, contents and allocation must be the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "support/golden.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using test::Bytes;
using test::TestRequest;

constexpr std::uint64_t block = MemoryDisk::block_size;

class Model {
public:
    Model(std::size_t size, std::uint64_t bound_blocks) : octets(size), bound_(bound_blocks) {}

    bool allocate(std::uint64_t offset, std::uint64_t length) {
        auto after = data;
        for (std::uint64_t at = offset; at < offset + length; ++at) after.insert(at / block);
        if (after.size() > bound_ && after.size() > data.size()) return false;
        data = after;
        return true;
    }
    bool write(std::uint64_t offset, const Bytes& what) {
        if (!allocate(offset, what.size())) return false;
        std::ranges::copy(what, octets.begin() + static_cast<std::ptrdiff_t>(offset));
        return true;
    }
    bool zero(std::uint64_t offset, std::uint64_t length, bool keep_space) {
        if (keep_space && !allocate(offset, length)) return false;
        for (std::uint64_t at = offset; at < offset + length; ++at) octets[at] = std::byte{0};
        for (std::uint64_t i = 0; i * block < octets.size() && !keep_space; ++i) {
            auto end = std::min<std::uint64_t>((i + 1) * block, octets.size());
            if (i * block >= offset && end <= offset + length) data.erase(i);
        }
        return true;
    }
    std::vector<Extent> status(std::uint64_t offset, std::uint64_t length, std::size_t room) const {
        std::vector<Extent> extents;
        for (std::uint64_t at = offset; at < offset + length; ++at) {
            bool hole = !data.contains(at / block);
            if (extents.empty() || extents.back().hole != hole) {
                if (extents.size() == room) break;
                extents.push_back({0, hole, hole});
            }
            ++extents.back().length;
        }
        return extents;
    }

    Bytes octets;
    std::set<std::uint64_t> data;

private:
    std::uint64_t bound_;
};

class SideBySide {
public:
    SideBySide(std::uint32_t seed, std::size_t size, std::uint64_t bound_blocks)
        : chance_(seed),
          size_(size),
          model_(size, bound_blocks),
          disk_(std::make_unique<HeapMemory>(size), bound_blocks * block) {}

    void step() {
        choose_range();
        switch (chance_() % 6) {
            case 0:
                return write();
            case 1:
                return write_lent();
            case 2:
                return zero(BlockOperation::trim, false);
            case 3:
                return zero(BlockOperation::write_zeroes, chance_() % 2 == 0);
            case 4:
                return status();
            default:
                return read();
        }
    }
    void compare() {
        ASSERT_EQ(test::contents(disk_), model_.octets);
        ASSERT_EQ(disk_.allocated_bytes(), model_.data.size() * block);
    }

private:
    /// Anything, but often at or near a block's edge, where the mistakes are.
    void choose_range() {
        auto edge = [&]() -> std::uint64_t {
            std::uint64_t at = chance_() % (size_ + 1);
            if (chance_() % 2 == 0) at = at / block * block + chance_() % 3;
            return std::min<std::uint64_t>(at, size_);
        };
        auto a = edge(), b = edge();
        offset_ = std::min(a, b);
        length_ = std::max(a, b) - offset_;
    }
    Bytes random_octets() {
        Bytes octets(length_);
        for (auto& octet : octets) octet = static_cast<std::byte>(chance_());
        return octets;
    }
    void write() {
        auto octets = random_octets();
        TestRequest request(BlockOperation::write, offset_, length_);
        Buffer all = octets;
        auto cut = chance_() % (length_ + 1);
        Buffer pieces[] = {all.first(cut), all.subspan(cut)};
        request.memory = pieces;
        disk_.submit(request);
        ASSERT_EQ(request.succeeded(), model_.write(offset_, octets));
    }
    void write_lent() {
        auto lent = disk_.lend(BlockOperation::write, offset_, length_);
        ASSERT_EQ(!lent.empty(), length_ > 0 && model_.allocate(offset_, length_));
        if (lent.empty()) return;
        auto octets = random_octets();
        std::ranges::copy(octets, lent.begin());
        TestRequest request(BlockOperation::write, offset_, length_);
        disk_.submit(request.with_memory(lent));
        ASSERT_TRUE(request.succeeded());
        model_.write(offset_, octets);
    }
    void zero(BlockOperation operation, bool keep_space) {
        TestRequest request(operation, offset_, length_);
        request.keep_space = keep_space;
        disk_.submit(request);
        ASSERT_EQ(request.succeeded(), model_.zero(offset_, length_, keep_space));
    }
    void status() {
        std::vector<Extent> extents(chance_() % 9);
        TestRequest request(BlockOperation::status, offset_, length_);
        request.extents = extents;
        disk_.submit(request);
        ASSERT_TRUE(request.succeeded());
        extents.resize(request.extent_count);
        ASSERT_EQ(extents, model_.status(offset_, length_, request.extents.size()));
    }
    void read() {
        Bytes expected(model_.octets.begin() + static_cast<std::ptrdiff_t>(offset_),
                       model_.octets.begin() + static_cast<std::ptrdiff_t>(offset_ + length_));
        ASSERT_EQ(test::contents(disk_, offset_, length_), expected);
        auto lent = disk_.lend(BlockOperation::read, offset_, length_);
        ASSERT_TRUE(std::ranges::equal(lent, expected));
    }

    std::mt19937 chance_;
    std::size_t size_;
    Model model_;
    MemoryDisk disk_;
    std::uint64_t offset_ = 0;
    std::uint64_t length_ = 0;
};

struct Shape {
    std::size_t size;
    std::uint64_t bound_blocks;
};

class MemoryDiskModelTest : public testing::TestWithParam<Shape> {};

TEST_P(MemoryDiskModelTest, DoesWhatTheModelDoes) {
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        SideBySide run(seed, GetParam().size, GetParam().bound_blocks);
        for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
            SCOPED_TRACE("step " + std::to_string(i));
            run.step();
            run.compare();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, MemoryDiskModelTest,
                         testing::Values(Shape{1, 1}, Shape{block - 1, 1}, Shape{block, 1},
                                         Shape{block + 1, 2}, Shape{7 * block + 511, 5},
                                         Shape{16 * block, 16}, Shape{70 * block + 1, 40}));

}  // namespace
}  // namespace weft::block
