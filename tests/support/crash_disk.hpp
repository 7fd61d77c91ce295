// SPDX-License-Identifier: Apache-2.0
// A disk that remembers what a power cut could do to it. What is asked waits until a step takes it,
// in an order that is drawn; what was written and not flushed may be lost, kept, or torn between
// two sectors, each write for itself. A durable write is lasting when it is answered, and no other
// because of it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <vector>

#include "block/scatter.hpp"
#include "weft/block_device.hpp"

namespace weft::test {

/// Octets that are zero until written, block by block.
class SparseOctets {
public:
    void write(std::uint64_t at, ConstBuffer octets) {
        while (!octets.empty()) {
            const auto part = octets.first(std::min<std::size_t>(octets.size(), size - at % size));
            std::ranges::copy(part,
                              blocks_[at / size].begin() + static_cast<std::ptrdiff_t>(at % size));
            at += part.size();
            octets = octets.subspan(part.size());
        }
    }
    void write_sectors(std::uint64_t at, ConstBuffer octets, std::uint64_t kept) {
        for (std::size_t i = 0; i < octets.size(); i += sector)
            if ((kept >> i / sector % 64 & 1) != 0) write(at + i, octets.subspan(i, sector));
    }
    void read(std::uint64_t at, Buffer into) const {
        for (std::size_t i = 0; i < into.size();) {
            const std::size_t part = std::min<std::size_t>(into.size() - i, size - (at + i) % size);
            auto found = blocks_.find((at + i) / size);
            if (found == blocks_.end())
                std::ranges::fill(into.subspan(i, part), std::byte{0});
            else
                std::copy_n(found->second.begin() + static_cast<std::ptrdiff_t>((at + i) % size),
                            part, into.begin() + static_cast<std::ptrdiff_t>(i));
            i += part;
        }
    }

private:
    static constexpr std::size_t size = 4096, sector = 512;
    using Block = std::array<std::byte, size>;
    std::map<std::uint64_t, Block> blocks_;
};

class CrashDisk final : public BlockDevice {
public:
    /// What a power cut leaves.
    enum class After { all_lost, all_kept, drawn };

    CrashDisk(std::uint64_t size, std::uint64_t seed) : random(seed), size_(size) {}

    BlockTraits traits() const override { return {.size = size_, .minimum_block = 512}; }
    void submit(BlockRequest& request) override {
        asked_.push_back({&request, doubtful_.size() + lasting_writes_});
        if (answers_at_once) run();
    }

    /// Does one of the things asked for; false if there is none.
    bool step() {
        if (asked_.empty()) return false;
        std::swap(asked_[random() % asked_.size()], asked_.back());
        const Asked next = asked_.back();
        asked_.pop_back();
        if (fails) {
            next.request->completed(Error{.code = Code::io_failed, .detail = 0, .where = 0});
            return true;
        }
        perform(next);
        next.request->completed({});
        return true;
    }
    void run() {
        while (step())
            ;
    }

    SparseOctets after_power_cut(After after, std::mt19937_64& draw) const {
        SparseOctets left = lasting_;
        for (const auto& [at, octets] : doubtful_) tear(left, at, octets, after, draw);
        for (const auto& asked : asked_) {
            if (asked.request->operation != BlockOperation::write) continue;
            std::vector<std::byte> octets(asked.request->length);
            block::copy_out({asked.request->memory, 0, octets.size()}, octets);
            tear(left, asked.request->offset, octets, after, draw);
        }
        return left;
    }
    void become(const SparseOctets& octets) { now_ = lasting_ = octets; }
    void damage(std::uint64_t at) {
        std::byte octet;
        now_.read(at, {&octet, 1});
        octet ^= std::byte{0x40};
        now_.write(at, {&octet, 1});
        lasting_.write(at, {&octet, 1});
    }

    std::mt19937_64 random;
    bool answers_at_once = false;
    bool fails = false;
    std::size_t writes = 0, durable_writes = 0, flushes = 0;

private:
    struct Asked {
        BlockRequest* request;
        std::size_t writes_before;  ///< done when this was asked for
    };

    static void tear(SparseOctets& left, std::uint64_t at, ConstBuffer octets, After after,
                     std::mt19937_64& draw) {
        if (after == After::all_lost) return;
        const auto how = draw() % 3;
        if (after == After::all_kept || how == 0) return left.write(at, octets);
        if (how == 1) left.write_sectors(at, octets, draw());
    }

    void perform(const Asked& asked) {
        BlockRequest& request = *asked.request;
        EXPECT_LE(request.offset + request.length, size_);
        if (request.operation == BlockOperation::flush) {
            ++flushes;
            const std::size_t count =
                asked.writes_before > lasting_writes_ ? asked.writes_before - lasting_writes_ : 0;
            for (std::size_t i = 0; i < count; ++i)
                lasting_.write(doubtful_[i].first, doubtful_[i].second);
            doubtful_.erase(doubtful_.begin(),
                            doubtful_.begin() + static_cast<std::ptrdiff_t>(count));
            lasting_writes_ += count;
            return;
        }
        std::vector<std::byte> octets(request.length);
        if (request.operation == BlockOperation::write) {
            ++writes;
            block::copy_out({request.memory, 0, octets.size()}, octets);
            now_.write(request.offset, octets);
            if (request.durable) return make_lasting(request.offset, octets);
            doubtful_.emplace_back(request.offset, std::move(octets));
        } else if (request.operation == BlockOperation::read) {
            now_.read(request.offset, octets);
            block::copy_in(octets, {request.memory, 0, octets.size()});
        }
    }

    /// What is older and doubtful in its place cannot come back over it.
    void make_lasting(std::uint64_t at, ConstBuffer octets) {
        ++durable_writes;
        lasting_.write(at, octets);
        for (auto& [older_at, older] : doubtful_) {
            const auto begin = std::max(older_at, at);
            const auto end = std::min(older_at + older.size(), at + octets.size());
            if (begin < end)
                std::ranges::copy(octets.subspan(begin - at, end - begin),
                                  older.begin() + static_cast<std::ptrdiff_t>(begin - older_at));
        }
    }

    std::uint64_t size_;
    std::vector<Asked> asked_;
    SparseOctets now_, lasting_;
    std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> doubtful_;
    std::size_t lasting_writes_ = 0;
};

}  // namespace weft::test
