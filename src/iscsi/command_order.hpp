// SPDX-License-Identifier: Apache-2.0
// The order of a session's commands (RFC 7143 section 4.2.2.1). Commands are numbered across all
// connections of a session and begin in the order of their numbers, whatever connection each came
// on. What comes early waits at its place; what comes twice, or from outside the window, is
// nobody's.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/sequence_number.hpp"

namespace weft::iscsi {

/// `Item`: what waits for its turn; a default made one stands for a number that was used up.
template <class Item>
class CommandOrder {
public:
    CommandOrder(std::uint32_t first, std::uint32_t size)
        : expected_(first), max_(first + size - 1), places_(size) {
        WEFT_CHECK(std::has_single_bit(size));  // or places would jump where the numbers wrap
    }

    std::uint32_t expected() const { return expected_.value(); }
    std::uint32_t max() const { return max_.value(); }
    std::uint32_t size() const { return static_cast<std::uint32_t>(places_.size()); }
    /// Numbers an initiator may still use, as far as it was told.
    std::uint32_t open() const { return max_.value() - expected_.value() + 1; }
    std::size_t waiting() const { return waiting_; }

    /// Within the window, and not here yet.
    bool admits(std::uint32_t number) const {
        auto ahead = SequenceNumber32(number) - expected_;
        return ahead < open() && !places_[index(number)].has_value();
    }
    /// Puts the item where it waits for its turn. It must be admitted.
    void enter(std::uint32_t number, Item item) {
        WEFT_CHECK(admits(number));
        places_[index(number)] = std::move(item);
        ++waiting_;
    }
    /// The one whose turn it is, if it is here; the window moves on.
    std::optional<Item> next() {
        auto& place = places_[index(expected_.value())];
        if (!place) return std::nullopt;
        auto item = std::exchange(place, std::nullopt);
        ++expected_;
        --waiting_;
        return item;
    }
    /// Room for this many from here on. A window once told is never taken back, and never wider
    /// than the places there are.
    void offer(std::uint32_t count) {
        auto most = expected_ + (std::min(count, size()) - 1);
        if (most > max_) max_ = most;
    }
    /// Each that waits; the function may change it.
    template <class Visit>
    void each_waiting(Visit visit) {
        for (auto& place : places_)
            if (place) visit(*place);
    }

private:
    std::size_t index(std::uint32_t number) const { return number % places_.size(); }

    SequenceNumber32 expected_;
    SequenceNumber32 max_;
    std::vector<std::optional<Item>> places_;
    std::size_t waiting_ = 0;
};

}  // namespace weft::iscsi
