// SPDX-License-Identifier: Apache-2.0
#include "sim/rdma_memory_model.hpp"

#include <algorithm>
#include <cstring>

namespace weft::sim {

std::size_t size_of(const Stretches& stretches) {
    std::size_t size = 0;
    for (auto& stretch : stretches) size += stretch.size;
    return size;
}

Stretches part_of(const Stretches& stretches, std::size_t offset, std::size_t size) {
    Stretches part;
    for (auto& stretch : stretches) {
        auto skipped = std::min(offset, stretch.size);
        auto count = std::min(stretch.size - skipped, size);
        if (count > 0) part.push_back({stretch.at + skipped, count});
        offset -= skipped;
        size -= count;
    }
    WEFT_CHECK(size == 0);
    return part;
}

bool overlap(const Stretches& one, const Stretches& other) {
    for (auto& a : one)
        for (auto& b : other)
            if (a.at < b.at + b.size && b.at < a.at + a.size) return true;
    return false;
}

Lease::Lease(MemoryModel& memory, Stretches stretches)
    : memory_(memory), stretches_(std::move(stretches)) {
    versions_.push_back(memory_.expected(stretches_));
    memory_.leases_.insert(this);
}

Lease::~Lease() {
    memory_.leases_.erase(this);
}

void Lease::settle(const char* why) {
    if (ended_) return;
    if (versions_.size() > 1) versions_.erase(versions_.begin(), versions_.end() - 1);
    settle_for_any(why);
}

void Lease::settle_for_any_since(const char* why) {
    if (ended_) return;
    if (versions_.size() > 1) versions_.erase(versions_.begin());
    settle_for_any(why);
}

void Lease::settle_for_any(const char* why) {
    if (ended_) return;
    std::size_t i = 0;
    for (auto& stretch : stretches_) {
        // Nearly always it is the last version, and much of it.
        auto begin = versions_.back().begin() + static_cast<std::ptrdiff_t>(i);
        auto place = memory_.memory_.subspan(stretch.at, stretch.size);
        if (std::equal(place.begin(), place.end(), begin)) {
            std::copy(place.begin(), place.end(),
                      memory_.expected_.begin() + static_cast<std::ptrdiff_t>(stretch.at));
            i += stretch.size;
            continue;
        }
        for (std::size_t at = stretch.at; at < stretch.at + stretch.size; ++at, ++i) {
            auto found = memory_.memory_[at];
            bool known = std::any_of(versions_.begin(), versions_.end(),
                                     [&](auto& each) { return each[i] == found; });
            memory_.expected_[at] = found;
            if (known) continue;
            return memory_.complain(why, at, versions_.back()[i]);
        }
    }
    versions_ = {memory_.expected(stretches_)};
}

void Lease::settle_for_anything() {
    if (ended_) return;
    for (auto& stretch : stretches_)
        std::memcpy(memory_.expected_.data() + stretch.at, memory_.memory_.data() + stretch.at,
                    stretch.size);
    versions_ = {memory_.expected(stretches_)};
}

void Lease::end(const char* why) {
    settle_for_any(why);
    ended_ = true;
    memory_.leases_.erase(this);
}

MemoryModel::MemoryModel(Buffer memory, std::string name, Random& random, Complaints& complaints)
    : memory_(memory), name_(std::move(name)), random_(random), complaints_(complaints) {
    expected_ = random_bytes(memory.size());
    std::memcpy(memory.data(), expected_.data(), memory.size());
}

std::shared_ptr<Lease> MemoryModel::lease(const Stretches& stretches) {
    for (auto* each : leases_)
        if (overlap(each->stretches(), stretches)) return nullptr;
    return std::make_shared<Lease>(*this, stretches);
}

Bytes MemoryModel::expected(const Stretches& stretches) const {
    Bytes bytes;
    for (auto& stretch : stretches) {
        auto from = expected_.begin() + static_cast<std::ptrdiff_t>(stretch.at);
        bytes.insert(bytes.end(), from, from + static_cast<std::ptrdiff_t>(stretch.size));
    }
    return bytes;
}

void MemoryModel::write(const Stretches& stretches, ConstBuffer bytes) {
    for (auto& stretch : stretches) {
        std::memcpy(memory_.data() + stretch.at, bytes.data(), stretch.size);
        std::memcpy(expected_.data() + stretch.at, bytes.data(), stretch.size);
        bytes = bytes.subspan(stretch.size);
    }
}

Bytes MemoryModel::random_bytes(std::size_t size) {
    Bytes bytes(size);
    Random random(random_.next());
    for (std::size_t i = 0; i < size; i += sizeof(std::uint64_t)) {
        auto word = random.next();
        std::memcpy(bytes.data() + i, &word, std::min(size - i, sizeof word));
    }
    return bytes;
}

void MemoryModel::end_leases(const Stretches& stretches, const char* why) {
    auto leases = leases_;
    for (auto* each : leases)
        if (overlap(each->stretches(), stretches)) each->end(why);
}

void MemoryModel::check(const char* when) {
    constexpr std::size_t block = 4096;
    for (std::size_t start = 0; start < memory_.size(); start += block) {
        auto end = std::min(memory_.size(), start + block);
        if (std::memcmp(&memory_[start], &expected_[start], end - start) == 0) continue;
        for (auto at = start; at < end; ++at)
            if (memory_[at] != expected_[at] && !is_leased(at))
                return complain(when, at, expected_[at]);
    }
}

bool MemoryModel::is_leased(std::size_t at) const {
    return std::any_of(leases_.begin(), leases_.end(), [&](auto* each) {
        return overlap(each->stretches(), {{at, 1}});
    });
}

void MemoryModel::complain(const char* why, std::size_t at, std::byte expected) {
    complaints_.add(name_ + ": byte " + std::to_string(at) + " holds " +
                    std::to_string(std::to_integer<int>(memory_[at])) + ", not " +
                    std::to_string(std::to_integer<int>(expected)) + ": " + why);
}

}  // namespace weft::sim
