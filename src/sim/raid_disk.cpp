// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_disk.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "sim/disk_spec.hpp"

namespace weft::sim {

RaidMemory::RaidMemory(std::size_t size)
    : size_(size), octets_(static_cast<std::byte*>(::operator new(size, alignment))) {
    std::ranges::fill(all(), std::byte{0});
}

RaidDisk::RaidDisk(RaidAgenda& agenda, std::size_t size)
    : agenda_(agenda), octets_(size), stable_(size) {}

BlockTraits RaidDisk::traits() const {
    return {.size = octets_.all().size(), .minimum_block = 4096};
}

void RaidDisk::submit(BlockRequest& request) {
    if (answers_at_once) return request.completed(perform(request, writes_));
    agenda_.later([this, &request, alive = std::weak_ptr(alive_), before = writes_] {
        const auto still = alive.lock();
        if (!still || !*still) return;
        request.completed(perform(request, before));
    });
}

Result<void> RaidDisk::perform(const BlockRequest& request, std::uint64_t before) {
    if (broken) return Error{Code::io_failed};
    if (errors > 0) return --errors, Error{Code::io_failed};
    if (request.operation == BlockOperation::flush) return flush(before), Result<void>{};
    if (request.operation == BlockOperation::write) {
        write(request);
        if (request.durable) make_last_stable();
        return {};
    }
    auto at = octets_.all().subspan(request.offset);
    for (Buffer part : request.memory) {
        std::ranges::copy(at.first(part.size()), part.begin());
        at = at.subspan(part.size());
    }
    return {};
}

void RaidDisk::write(const BlockRequest& request) {
    if (lost_writes > 0) return void(--lost_writes);
    std::uint64_t offset = request.offset;
    std::size_t size = 0;
    for (Buffer part : request.memory) size += part.size();
    if (misdirected > 0 && misdirection + size <= octets_.all().size())
        --misdirected, offset = misdirection;
    Write done{++writes_, offset, {}};
    for (Buffer part : request.memory)
        done.octets.insert(done.octets.end(), part.begin(), part.end());
    std::ranges::copy(done.octets, octets_.all().subspan(offset).begin());
    unstable_.push_back(std::move(done));
}

/// What was written before the flush was asked for, and nothing else: a promise, not a habit.
void RaidDisk::flush(std::uint64_t before) {
    if (lies) return;
    while (!unstable_.empty() && unstable_.front().number <= before) {
        const auto& oldest = unstable_.front();
        std::ranges::copy(oldest.octets, stable_.all().subspan(oldest.offset).begin());
        unstable_.pop_front();
    }
}

/// That write alone, however many wait before it. What older ones left in its place is gone: they
/// cannot come back over it.
void RaidDisk::make_last_stable() {
    if (lies || unstable_.empty() || unstable_.back().number != writes_) return;
    const Write last = std::move(unstable_.back());
    unstable_.pop_back();
    std::ranges::copy(last.octets, stable_.all().subspan(last.offset).begin());
    for (Write& older : unstable_) {
        const auto begin = std::max(older.offset, last.offset);
        const auto end =
            std::min(older.offset + older.octets.size(), last.offset + last.octets.size());
        if (begin >= end) continue;
        std::memcpy(older.octets.data() + (begin - older.offset),
                    last.octets.data() + (begin - last.offset), end - begin);
    }
}

void RaidDisk::power_cut() {
    for (const auto& write : unstable_) {
        const auto fate = agenda_.random.below(3);  // lost, kept, torn
        if (fate == 0) continue;
        for (std::size_t at = 0; at < write.octets.size(); at += sector_bytes) {
            if (fate == 2 && agenda_.random.chance(50)) continue;
            const auto size = std::min<std::size_t>(sector_bytes, write.octets.size() - at);
            std::memcpy(stable_.all().data() + write.offset + at, write.octets.data() + at, size);
        }
    }
    unstable_.clear();
    std::ranges::copy(stable_.all(), octets_.all().begin());
    forget();
}

void RaidDisk::make_stable() {
    unstable_.clear();
    std::ranges::copy(octets_.all(), stable_.all().begin());
}

void RaidDisk::grow(std::uint64_t size) {
    RaidMemory now(size), kept(size);
    std::ranges::copy(octets_.all(), now.all().begin());
    std::ranges::copy(stable_.all(), kept.all().begin());
    octets_ = std::move(now);
    stable_ = std::move(kept);
}

void RaidDisk::flip_bit(std::uint64_t octet, unsigned bit) {
    const auto mask = static_cast<std::byte>(1u << bit);
    octets_.all()[octet] ^= mask;
    stable_.all()[octet] ^= mask;
}

}  // namespace weft::sim
