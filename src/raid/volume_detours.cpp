// SPDX-License-Identifier: Apache-2.0
// Links that are broken while both their ends are there: nobody is counted out for them. What would
// go over one is planned by way of the controller, which reaches both; the rest goes as ever.
#include <algorithm>

#include "raid/volume_engine.hpp"

namespace weft::raid {

bool VolumeEngine::avoid(std::uint8_t place, std::uint8_t reporter) {
    const Link link = std::minmax(place, reporter);
    const bool tried_in_vain = tried_links_.erase(link) != 0;
    return broken_links_.emplace(link, reporter).second && !tried_in_vain;
}

void VolumeEngine::try_links() {
    tried_links_.merge(broken_links_);
    broken_links_.clear();
    // Of hosts that did nothing since they were last on trial nobody knows whether they are there.
    tried_host_links_ = std::exchange(broken_host_links_, {});
}

Mask VolumeEngine::unreached_by(std::uint8_t place) const {
    Mask others = 0;
    for (const auto* links : {&broken_links_, &tried_links_})
        for (const auto& [link, reporter] : *links)
            if (link.first == place || link.second == place)
                others |= only(link.first == place ? link.second : link.first);
    return others;
}

bool VolumeEngine::misses_host(std::uint8_t place) const {
    const auto is_its = [&](const HostLink& link) { return link.second == place; };
    return std::ranges::any_of(broken_host_links_, is_its) ||
           std::ranges::any_of(tried_host_links_, is_its);
}

/// What was ordered is done: the links it went over are well.
void VolumeEngine::note_links(const Sent& sent) {
    if (tried_links_.empty() && tried_host_links_.empty()) return;
    if (sent.to.kind != PartyKind::box) return;
    const std::uint8_t place = number(sent.to.box);
    for (const Party& party : sent.parties) {
        if (party == the_host && tried_host_links_.erase({sent.run->host, place}) != 0)
            owner_.host_reached(sent.to.box);
        if (party.kind != PartyKind::box) continue;
        // The way it was broken: the other may have been well all the time.
        const auto tried = tried_links_.find(std::minmax(place, number(party.box)));
        if (tried == tried_links_.end() || tried->second != place) continue;
        tried_links_.erase(tried);
        owner_.link_mended(sent.to.box, party.box);
    }
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
    // The host is ourselves: who does not reach us cannot bring us anything either.
    const HostRequest* request = sent.run->request;
    if (request && request->memory.identity == options_.own.identity) return false;
    const HostLink link{sent.run->host, number(sent.to.box)};
    const bool tried_in_vain = tried_host_links_.erase(link) != 0;
    const bool is_new = broken_host_links_.insert(link).second && !tried_in_vain;
    owner_.host_cut_off(sent.to.box, is_new);
    return true;
}

}  // namespace weft::raid
