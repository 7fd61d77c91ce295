// SPDX-License-Identifier: Apache-2.0
#include "iwarp/memory_tags.hpp"

#include <bit>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace weft::iwarp {

MemoryTags::MemoryTags(std::size_t slots, std::uint64_t seed)
    : state_(seed), slot_bits_(slots == 0 ? 0 : static_cast<unsigned>(std::bit_width(slots - 1))) {
    WEFT_CHECK(slots <= memory_slots_max);
    for (auto& round : rounds_)
        for (auto& number : round) number = static_cast<std::uint16_t>(draw() % half_size);
    std::iota(keys_.begin(), keys_.end(), std::uint8_t{0});
    for (std::size_t left = keys_.size(); left > 1; --left)
        std::swap(keys_[left - 1], keys_[draw() % left]);
    undone_.fill({.index = 0, .number = undo(0)});
}

/// splitmix64.
std::uint64_t MemoryTags::draw() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

std::uint32_t MemoryTags::index_of(Use use) const {
    const auto number = use.round << slot_bits_ | use.slot;
    auto left = number >> half_bits, right = number % half_size;
    for (const auto& round : rounds_) left = std::exchange(right, left ^ round[right]);
    return left << half_bits | right;
}

std::uint32_t MemoryTags::undo(std::uint32_t index) const {
    auto left = index >> half_bits, right = index % half_size;
    for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round)
        right = std::exchange(left, right ^ (*round)[left]);
    return left << half_bits | right;
}

MemoryTags::Use MemoryTags::next(Use use) const {
    const auto rounds = (memory_index_max + 1) >> slot_bits_;
    return skip_index_zero({.slot = use.slot, .round = (use.round + 1) % rounds});
}

MemoryTags::Use MemoryTags::first(std::uint32_t slot) const {
    return skip_index_zero({.slot = slot, .round = 0});
}

MemoryTags::Use MemoryTags::skip_index_zero(Use use) const {
    return index_of(use) == 0 ? next(use) : use;
}

MemoryTags::KeyOrder MemoryTags::draw_key_order() {
    return static_cast<KeyOrder>(draw() >> 48);
}

std::uint8_t MemoryTags::key(KeyOrder order, std::uint32_t number) const {
    const auto from = static_cast<std::uint32_t>(order);
    return keys_[(keys_[(number + from) % memory_keys] + (from >> 8)) % memory_keys];
}

}  // namespace weft::iwarp
