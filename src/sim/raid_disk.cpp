// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_disk.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "sim/disk_spec.hpp"

namespace weft::sim {

namespace {

constexpr std::uint64_t block = 4096;

}  // namespace

RaidMemory::RaidMemory(std::size_t size)
    : size_(size), octets_(static_cast<std::byte*>(::operator new(size, alignment))) {
    std::ranges::fill(all(), std::byte{0});
}

RaidDisk::RaidDisk(RaidAgenda& agenda, std::size_t size)
    : agenda_(agenda), octets_(size), stable_(size) {}

BlockTraits RaidDisk::traits() const {
    return {.size = octets_.all().size(), .minimum_block = block};
}

void RaidDisk::submit(BlockRequest& request) {
    if (answers_at_once) {
        const auto outcome = perform(request, writes_);
        if (request.durable) make_one_stable(writes_);
        return request.completed(outcome);
    }
    later([this, &request, alive = std::weak_ptr(alive_), before = writes_] {
        const auto still = alive.lock();
        if (!still || !*still || waits_for_room(request)) return;
        const auto writes = writes_;
        const auto outcome = perform(request, before);
        if (!request.durable || !outcome) return request.completed(outcome);
        make_one_stable_later(request, writes_ == writes ? 0 : writes_);
    });
}

void RaidDisk::later(std::function<void()> what) {
    auto heard = [agenda = &agenda_, machine = machine, what = std::move(what)] {
        machine ? agenda->on(*machine, what) : what();
    };
    agenda_.later(std::move(heard), slowness);
}

/// Between the two the power may go, and tear it.
void RaidDisk::make_one_stable_later(BlockRequest& request, std::uint64_t number) {
    later([this, &request, alive = std::weak_ptr(alive_), number] {
        const auto still = alive.lock();
        if (!still || !*still) return;
        make_one_stable(number);
        request.completed({});
    });
}

Result<void> RaidDisk::perform(const BlockRequest& request, std::uint64_t before) {
    if (broken) return ++failures, Error{Code::io_failed};
    if (errors > 0) return --errors, ++failures, Error{Code::io_failed};
    if (request.operation == BlockOperation::flush) return flush(before), Result<void>{};
    if (request.operation == BlockOperation::write) {
        const auto size = room_for(request);
        if (size > 0) write(request, size);
        const bool over_it =
            refused_at_ && request.offset <= *refused_at_ && *refused_at_ - request.offset < size;
        if (over_it) refused_at_.reset();
        if (size == request.length) return {};
        if (!refused_at_) refused_at_ = request.offset;
        return Error{Code::exhausted};
    }
    auto at = octets_.all().subspan(request.offset);
    for (Buffer part : request.memory) {
        std::ranges::copy(at.first(part.size()), part.begin());
        at = at.subspan(part.size());
    }
    return {};
}

/// No more of it than there is room for.
void RaidDisk::write(const BlockRequest& request, std::size_t most) {
    const std::uint64_t offset = request.offset;
    Write done{0, offset, {}};
    for (Buffer part : request.memory)
        done.octets.insert(done.octets.end(), part.begin(), part.end());
    done.octets.resize(most);
    const std::size_t size = done.octets.size();
    Fate becomes = fate ? fate(offset, size) : Fate{};
    if (lost_writes > 0) --lost_writes, becomes.is_lost = true;
    if (misdirected > 0 && misdirection + size <= octets_.all().size())
        --misdirected, becomes.strays_to = misdirection;
    if (becomes.is_lost || becomes.strays_to) note_damage(offset, size);
    if (becomes.strays_to) {
        // Where it went nobody is to know of it: it is as lasting as what was there.
        std::ranges::copy(done.octets, octets_.all().subspan(*becomes.strays_to).begin());
        std::ranges::copy(done.octets, stable_.all().subspan(*becomes.strays_to).begin());
        note_damage(*becomes.strays_to, size);
    }
    if (becomes.is_lost || becomes.strays_to) return;
    for (std::size_t at = 0; at < size && !damaged_.empty(); at += block)
        damaged_.erase(offset + at);
    done.number = ++writes_;
    std::ranges::copy(done.octets, octets_.all().subspan(offset).begin());
    unstable_.push_back(std::move(done));
}

bool RaidDisk::has_room(std::uint64_t offset) const {
    if (!lack_ || offset < lack_->from) return true;
    Random draw(lack_->draw + offset / block);
    return !draw.chance(lack_->percent);
}

/// As file systems write: block by block, to the first for which there is none.
std::size_t RaidDisk::room_for(const BlockRequest& request) const {
    std::size_t size = 0;
    while (size < request.length && has_room(request.offset + size)) size += block;
    return std::min<std::size_t>(size, request.length);
}

bool RaidDisk::waits_for_room(BlockRequest& request) {
    if (!lack_ || request.operation != BlockOperation::write || request.offset >= lack_->home)
        return false;
    if (room_for(request) == request.length) return false;
    waiting_.push_back(&request);
    return true;
}

void RaidDisk::make_room() {
    lack_.reset();
    for (auto* request : std::exchange(waiting_, {})) submit(*request);
}

void RaidDisk::note_damage(std::uint64_t offset, std::size_t size) {
    for (std::uint64_t at = offset / block * block; at < offset + size; at += block)
        damaged_.insert(at), damaged_at_rest_.insert(at);
}

std::set<std::uint64_t> RaidDisk::damaged() const {
    auto all = damaged_;
    all.insert(damaged_at_rest_.begin(), damaged_at_rest_.end());
    return all;
}

void RaidDisk::settle(const Write& write) {
    std::ranges::copy(write.octets, stable_.all().subspan(write.offset).begin());
    for (std::size_t at = 0; at < write.octets.size() && !damaged_at_rest_.empty(); at += block)
        if (!damaged_.contains(write.offset + at)) damaged_at_rest_.erase(write.offset + at);
}

/// What was written before the flush was asked for, and nothing else: a promise, not a habit.
void RaidDisk::flush(std::uint64_t before) {
    if (lies) return;
    while (!unstable_.empty() && unstable_.front().number <= before) {
        settle(unstable_.front());
        unstable_.pop_front();
    }
}

/// That write alone, however many wait before it. What older ones left in its place is gone: they
/// cannot come back over it. One that was lost, or has been flushed meanwhile, is not found.
void RaidDisk::make_one_stable(std::uint64_t number) {
    const auto found = std::ranges::find(unstable_, number, &Write::number);
    if (lies || found == unstable_.end()) return;
    const Write made = std::move(*found);
    const auto newer = unstable_.erase(found);
    settle(made);
    for (auto older = unstable_.begin(); older != newer; ++older) {
        const auto begin = std::max(older->offset, made.offset);
        const auto end =
            std::min(older->offset + older->octets.size(), made.offset + made.octets.size());
        if (begin >= end) continue;
        std::memcpy(older->octets.data() + (begin - older->offset),
                    made.octets.data() + (begin - made.offset), end - begin);
    }
}

void RaidDisk::power_cut() {
    for (const auto& write : unstable_) {
        const auto what =
            when_power_goes ? *when_power_goes : static_cast<Unstable>(agenda_.random.below(3));
        if (what == Unstable::lost) continue;
        for (std::size_t at = 0; at < write.octets.size(); at += sector_bytes) {
            if (what == Unstable::torn && agenda_.random.chance(50)) continue;
            const auto size = std::min<std::size_t>(sector_bytes, write.octets.size() - at);
            std::memcpy(stable_.all().data() + write.offset + at, write.octets.data() + at, size);
        }
    }
    unstable_.clear();
    damaged_ = damaged();
    std::ranges::copy(stable_.all(), octets_.all().begin());
    lack_.reset();  // who starts it makes room before
    refused_at_.reset();
    forget();
}

void RaidDisk::put_back(std::span<const std::byte> image) {
    forget();
    std::ranges::copy(image, octets_.all().begin());
    make_stable();
    damaged_.clear();
    damaged_at_rest_.clear();
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
    const std::byte mask[] = {static_cast<std::byte>(1u << bit)};
    damage(octet, mask);
}

void RaidDisk::damage(std::uint64_t offset, ConstBuffer by) {
    auto spoil = [&](std::byte* octets, std::uint64_t begin, std::size_t size) {
        for (std::size_t i = 0; i < by.size(); ++i)
            if (offset + i >= begin && offset + i < begin + size)
                octets[offset + i - begin] ^= by[i];
    };
    spoil(octets_.all().data(), 0, octets_.all().size());
    spoil(stable_.all().data(), 0, stable_.all().size());
    for (auto& write : unstable_) spoil(write.octets.data(), write.offset, write.octets.size());
    note_damage(offset, by.size());
}

}  // namespace weft::sim
