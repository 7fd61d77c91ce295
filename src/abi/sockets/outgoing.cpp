// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/outgoing.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::abi::sockets {
namespace {

/// A write, and the message that tells of it.
constexpr std::uint8_t entries_of_told_write = 2;

}  // namespace

Outgoing::Outgoing(Carrier& carrier, Buffer ring, std::uint32_t entries)
    : carrier_(carrier),
      ring_(ring),
      ring_free_(ring.size()),
      entries_(entries),
      entries_free_(entries) {
    WEFT_CHECK(ring.size() >= limits::send_low_water && entries >= entries_of_told_write);
}

void Outgoing::begin(std::uint16_t credits, const Window& first_window) {
    allowed_ = credits;
    reserve_ =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(limits::credit_reserve, credits / 4));
    windows_.push_back(first_window);
}

bool Outgoing::offer(const Window& window) {
    if (windows_.full()) return false;
    windows_.push_back(window);
    return true;
}

void Outgoing::done(const Receipt& receipt) {
    entries_free_ += receipt.data_entries;
    ring_free_ += receipt.ring_bytes;
    WEFT_CHECK(entries_free_ <= entries_ && ring_free_ <= ring_.size());
}

bool Outgoing::has_room_unasked() const {
    return entries_free_ >= entries_of_told_write && ring_free_ >= limits::send_low_water;
}

bool Outgoing::has_room() const {
    return has_room_unasked() && credits_left() > reserve_ && !windows_.empty();
}

std::uint32_t Outgoing::next_transfer_unasked(std::size_t bytes) const {
    return static_cast<std::uint32_t>(
        std::min({bytes, ring_free_, std::size_t{limits::transfer_bytes}}));
}

std::uint32_t Outgoing::next_transfer(std::size_t bytes) const {
    return std::min(next_transfer_unasked(bytes), windows_[0].length);
}

std::array<Buffer, 2> Outgoing::room(std::uint32_t bytes) const {
    auto to_the_end = std::min<std::size_t>(bytes, ring_.size() - ring_next_);
    return {ring_.subspan(ring_next_, to_the_end), ring_.first(bytes - to_the_end)};
}

void Outgoing::advance(std::uint32_t bytes) {
    ring_next_ = (ring_next_ + bytes) % ring_.size();
    ring_free_ -= bytes;
}

Window Outgoing::take_window(std::uint32_t bytes) {
    auto& current = windows_[0];
    Window part{current.address, current.key, bytes};
    current.address += bytes;
    current.length -= bytes;
    if (current.length == 0) {
        if (windows_.size() > 1) windows_[0] = windows_[1];
        windows_.pop_back();
    }
    return part;
}

bool Outgoing::send(std::uint32_t bytes) {
    auto room_taken = room(bytes);
    ConstBuffer pieces[] = {room_taken[0], room_taken[1]};
    advance(bytes);
    entries_free_ -= entries_of_told_write;
    ++sent_;
    return carrier_.write_and_say({pieces, pieces[1].empty() ? 1u : 2u}, take_window(bytes),
                                  {Topic::data, bytes},
                                  {.data_entries = entries_of_told_write, .ring_bytes = bytes});
}

bool Outgoing::send_inline(ConstBuffer bytes) {
    auto size = static_cast<std::uint32_t>(bytes.size());
    entries_free_ -= entries_of_told_write;
    ++sent_;
    return carrier_.write_and_say({&bytes, 1}, take_window(size), {Topic::data, size},
                                  {.data_entries = entries_of_told_write});
}

bool Outgoing::write(std::uint32_t bytes, const Window& to) {
    auto room_taken = room(bytes);
    ConstBuffer pieces[] = {room_taken[0], room_taken[1]};
    advance(bytes);
    --entries_free_;
    return carrier_.write({pieces, pieces[1].empty() ? 1u : 2u}, to,
                          {.data_entries = 1, .ring_bytes = bytes});
}

bool Outgoing::write_inline(ConstBuffer bytes, const Window& to) {
    --entries_free_;
    return carrier_.write({&bytes, 1}, to, {.data_entries = 1});
}

bool Outgoing::tell(ConstBuffer bytes, const Window& slot, Message message) {
    entries_free_ -= entries_of_told_write;
    ++sent_;
    return carrier_.write_and_say({&bytes, 1}, slot, message,
                                  {.data_entries = entries_of_told_write});
}

}  // namespace weft::abi::sockets
