// SPDX-License-Identifier: Apache-2.0
#include "raid/row_order.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::raid {

bool RowOrder::add(Arrival number, std::span<const Band> bands, Use use) {
    const auto [place, is_new] = requests_.try_emplace(number);
    WEFT_CHECK(is_new);
    Request& request = place->second;
    for (const Band& band : bands) {
        const Entry entry{
            .request = number, .begin = band.offset, .end = band.offset + band.length, .use = use};
        auto& stripe = stripes_[band.stripe];
        request.waits_for += static_cast<std::size_t>(std::ranges::count_if(
            stripe, [&](const Entry& earlier) { return earlier.is_in_the_way_of(entry); }));
        stripe.push_back(entry);
        request.stripes.push_back(band.stripe);
    }
    return request.waits_for == 0;
}

bool RowOrder::has_rows(Arrival number) const {
    const auto found = requests_.find(number);
    return found != requests_.end() && found->second.waits_for == 0;
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
            for (const Entry& later : entries)
                if (own.is_in_the_way_of(later) && --requests_.at(later.request).waits_for == 0)
                    freed.push_back(later.request);
        }
        std::erase_if(entries, [&](const Entry& entry) { return entry.request == number; });
        if (entries.empty()) stripes_.erase(found);
    }
    std::ranges::sort(freed);
    return freed;
}

}  // namespace weft::raid
