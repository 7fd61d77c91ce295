// SPDX-License-Identifier: Apache-2.0
// Links that are broken while both their ends are there: nobody is counted out for them. What would
// go over one is planned by way of the controller, which reaches both; the rest goes as ever.
#include <algorithm>

#include "raid/volume_engine.hpp"

namespace weft::raid {

void VolumeEngine::avoid(std::uint8_t place, std::uint8_t other) {
    broken_links_.insert(std::minmax(place, other));
}

void VolumeEngine::avoid_nothing() {
    broken_links_.clear();
    broken_host_links_.clear();
}

bool VolumeEngine::must_detour(const Plan& plan, const Run& run) const {
    if (broken_links_.empty() && broken_host_links_.empty()) return false;
    if (goes_in_band(run) || !can_detour()) return false;
    return std::ranges::any_of(plan.orders, [&](const Order& order) {
        if (order.to.kind != PartyKind::box) return false;
        const std::uint8_t place = number(order.to.box);
        return std::ranges::any_of(parties_of(order), [&](const Party& party) {
            if (party == the_host) return broken_host_links_.contains({run.host, place});
            if (party.kind != PartyKind::box) return false;
            return broken_links_.contains(std::minmax(place, number(party.box)));
        });
    });
}

/// Whether the host may still be reached by us. If not, it is gone, and that will be seen then.
bool VolumeEngine::goes_around_host(const Sent& sent) {
    if (goes_in_band(*sent.run) || !can_detour() || sent.to.kind != PartyKind::box) return false;
    if (broken_host_links_.size() >= limits::requests) return false;
    if (broken_host_links_.insert({sent.run->host, number(sent.to.box)}).second)
        owner_.host_cut_off(sent.to.box);
    return true;
}

}  // namespace weft::raid
