// SPDX-License-Identifier: Apache-2.0
// The order in which requests get their rows. Of requests of which one changes a row that the other
// touches, those that have begun come first, then upkeep, then hosts in the order they came; all
// others do not wait for each other. A request has its rows when every one before it has given its
// rows back.
//
// Upkeep goes before hosts that have not begun: behind a deep queue of theirs it would be done a
// stripe for each time the queue is gone through. How often it starts is for Admission to say.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "raid/bands.hpp"

namespace weft::raid {

/// Requests are numbered as they come; a lower number came earlier.
using Arrival = std::uint64_t;

class RowOrder {
public:
    enum class Use : std::uint8_t { shared, exclusive };
    enum class Rank : std::uint8_t { begun, upkeep, host };

    /// Returns those that had their rows and must wait for this one now. Numbers ascend.
    std::vector<Arrival> add(Arrival request, std::span<const Band> bands, Use use, Rank rank);
    bool has_rows(Arrival request) const;
    /// It has its rows, and keeps them whoever comes.
    void begin(Arrival request);
    /// It gives its rows back; returns those that have theirs now. Nothing if it has none.
    std::vector<Arrival> remove(Arrival request);
    bool empty() const { return requests_.empty(); }

private:
    struct Entry {
        Arrival request = 0;
        std::uint32_t begin = 0, end = 0;  ///< offsets in every chunk of the stripe
        Use use{};
        Rank rank{};

        bool is_before(const Entry& other) const {
            return rank != other.rank ? rank < other.rank : request < other.request;
        }
        bool clashes(const Entry& other) const {
            return request != other.request && begin < other.end && other.begin < end &&
                   (use == Use::exclusive || other.use == Use::exclusive);
        }
    };
    struct Request {
        std::vector<std::uint64_t> stripes;  ///< one for each band
        std::size_t waits_for = 0;           ///< bands of those before it that are in the way
    };

    std::unordered_map<std::uint64_t, std::vector<Entry>> stripes_;
    std::unordered_map<Arrival, Request> requests_;
};

}  // namespace weft::raid
