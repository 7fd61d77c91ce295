// SPDX-License-Identifier: Apache-2.0
// The order in which requests get their rows. Requests of which one changes a row that the other
// touches take it in the order they came, whoever they are of; all others do not wait for each
// other. A request has its rows when every earlier one in its way has given its rows back.
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

    /// Whether it has its rows at once. Numbers must come in ascending order.
    bool add(Arrival request, std::span<const Band> bands, Use use);
    bool has_rows(Arrival request) const;
    /// It gives its rows back; returns those that have theirs now. Nothing if it has none.
    std::vector<Arrival> remove(Arrival request);
    bool empty() const { return requests_.empty(); }

private:
    struct Entry {
        Arrival request = 0;
        std::uint32_t begin = 0, end = 0;  ///< offsets in every chunk of the stripe
        Use use{};

        bool is_in_the_way_of(const Entry& later) const {
            return request < later.request && begin < later.end && later.begin < end &&
                   (use == Use::exclusive || later.use == Use::exclusive);
        }
    };
    struct Request {
        std::vector<std::uint64_t> stripes;  ///< one for each band
        std::size_t waits_for = 0;           ///< bands of earlier ones that are in the way
    };

    std::unordered_map<std::uint64_t, std::vector<Entry>> stripes_;  ///< each in order of arrival
    std::unordered_map<Arrival, Request> requests_;
};

}  // namespace weft::raid
