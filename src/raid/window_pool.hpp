// SPDX-License-Identifier: Apache-2.0
// The numbers of the windows that every box has for a volume. A transaction has one number at all
// its boxes. What a superseded read still uses at a late box is in use there, and nowhere else.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "raid/bands.hpp"
#include "raid/staging.hpp"

namespace weft::raid {

class WindowPool {
public:
    explicit WindowPool(std::uint32_t count) : count_(count) {
        for (std::uint32_t window = 0; window < count; ++window) free_.push_back(window);
    }

    std::uint32_t count() const { return count_; }
    /// The one longest unused, of those that are free at all these boxes.
    std::optional<std::uint32_t> take(Mask boxes) {
        const auto found = std::ranges::find_if(free_, [&](std::uint32_t window) {
            return std::ranges::none_of(kept_, [&](const Kept& kept) {
                return kept.window == window && (kept.boxes & boxes) != 0;
            });
        });
        if (found == free_.end()) return std::nullopt;
        const std::uint32_t window = *found;
        free_.erase(found);
        return window;
    }
    void give_back(std::uint32_t window) { free_.push_back(window); }

    /// At these boxes the transaction has the window for longer: until they are none.
    void keep(std::uint32_t window, wire::TransactionNumber transaction, Mask boxes) {
        std::erase_if(kept_, [&](const Kept& kept) { return kept.transaction == transaction; });
        if (boxes != 0) kept_.push_back({window, transaction, boxes});
    }
    /// Whether a late box would find its window open by the key of this other transaction.
    bool is_key_kept(std::uint32_t window, wire::TransactionNumber transaction) const {
        return std::ranges::any_of(kept_, [&](const Kept& kept) {
            return kept.window == window && window_key(kept.transaction) == window_key(transaction);
        });
    }

private:
    struct Kept {
        std::uint32_t window = 0;
        wire::TransactionNumber transaction{};
        Mask boxes = 0;
    };

    std::uint32_t count_;
    std::deque<std::uint32_t> free_;
    std::vector<Kept> kept_;
};

}  // namespace weft::raid
