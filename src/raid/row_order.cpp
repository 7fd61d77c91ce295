// SPDX-License-Identifier: Apache-2.0
#include "raid/row_order.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::raid {

std::vector<Arrival> RowOrder::add(Arrival number, std::span<const Band> bands, Use use,
                                   Rank rank) {
    std::vector<Arrival> wait_now;
    const auto [place, is_new] = requests_.try_emplace(number);
    WEFT_CHECK(is_new);
    Request& request = place->second;
    for (const Band& band : bands) {
        const Entry entry{.request = number,
                          .begin = band.offset,
                          .end = band.offset + band.length,
                          .use = use,
                          .rank = rank};
        auto& stripe = stripes_[band.stripe];
        for (const Entry& other : stripe) {
            if (!entry.clashes(other)) continue;
            if (other.is_before(entry))
                ++request.waits_for;
            else if (requests_.at(other.request).waits_for++ == 0)
                wait_now.push_back(other.request);
        }
        stripe.push_back(entry);
        request.stripes.push_back(band.stripe);
    }
    return wait_now;
}

bool RowOrder::has_rows(Arrival number) const {
    const auto found = requests_.find(number);
    return found != requests_.end() && found->second.waits_for == 0;
}

/// Nobody was before it, so nobody's place changes but its own.
void RowOrder::begin(Arrival number) {
    const auto found = requests_.find(number);
    if (found == requests_.end()) return;
    WEFT_CHECK(found->second.waits_for == 0);
    for (auto stripe : found->second.stripes)
        for (Entry& entry : stripes_.at(stripe))
            if (entry.request == number) entry.rank = Rank::begun;
}

std::vector<Arrival> RowOrder::remove(Arrival number) {
    std::vector<Arrival> freed;
    auto gone = requests_.extract(number);
    if (!gone) return freed;
    auto& touched = gone.mapped().stripes;
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (auto stripe : touched) {
        const auto found = stripes_.find(stripe);
        auto& entries = found->second;
        for (const Entry& own : entries) {
            if (own.request != number) continue;
            for (const Entry& other : entries)
                if (own.clashes(other) && own.is_before(other) &&
                    --requests_.at(other.request).waits_for == 0)
                    freed.push_back(other.request);
        }
        std::erase_if(entries, [&](const Entry& entry) { return entry.request == number; });
        if (entries.empty()) stripes_.erase(found);
    }
    std::ranges::sort(freed);
    return freed;
}

}  // namespace weft::raid
