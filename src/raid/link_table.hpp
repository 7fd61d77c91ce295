// SPDX-License-Identifier: Apache-2.0
// Links that do not carry transfers though both their ends are there: between two boxes, and
// between a box and a host. Data goes around a suspected one by way of the controller at once. It
// is reported broken only when such a detour has gone through, which proves that both ends are
// there; an end that is gone is not a broken link. After a while a link is tried again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "raid/bands.hpp"
#include "wire/array_identity.hpp"

namespace weft::raid {

enum class LinkState : std::uint8_t {
    suspected,         ///< a transfer found its other end unreachable; gone around
    broken,            ///< reported; gone around
    suspect_on_trial,  ///< used again, never reported
    broken_on_trial,   ///< used again, and reported
};

enum class LinkEvent : std::uint8_t {
    unreachable,  ///< a transfer has found it so, over a connection tried anew
    detoured,     ///< what went around it has gone through
    retried,      ///< a while has passed
    carried,      ///< a transfer over it has gone through
};

enum class LinkReport : std::uint8_t { nothing, broken, mended };

struct LinkStep {
    LinkState from{};
    LinkEvent on{};
    std::optional<LinkState> to;  ///< none: it works, and is forgotten
    LinkReport report{};
};

// clang-format off
inline constexpr auto link_steps = [] {
    using enum LinkState;
    using enum LinkEvent;
    return std::to_array<LinkStep>({
        {suspected,        detoured,    broken,           LinkReport::broken},
        {suspected,        retried,     suspect_on_trial, LinkReport::nothing},
        {broken,           retried,     broken_on_trial,  LinkReport::nothing},
        {suspect_on_trial, unreachable, suspected,        LinkReport::nothing},
        {suspect_on_trial, retried,     std::nullopt,     LinkReport::nothing},
        {suspect_on_trial, carried,     std::nullopt,     LinkReport::nothing},
        {broken_on_trial,  unreachable, broken, LinkReport::nothing},
        {broken_on_trial,  carried,     std::nullopt,     LinkReport::mended},
    });
}();
// clang-format on

constexpr const LinkStep* next_step(LinkState from, LinkEvent on) {
    for (const LinkStep& step : link_steps)
        if (step.from == from && step.on == on) return &step;
    return nullptr;
}

consteval bool no_link_event_has_two_answers() {
    for (std::size_t i = 0; i < link_steps.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (link_steps[i].from == link_steps[j].from && link_steps[i].on == link_steps[j].on)
                return false;
    return true;
}
static_assert(no_link_event_has_two_answers());

class LinkTable {
    template <class Links>
    static auto keys_of(const Links& links) {
        std::vector<typename Links::key_type> keys;
        for (const auto& [key, link] : links) keys.push_back(key);
        return keys;
    }

public:
    using BoxPair = std::pair<std::uint8_t, std::uint8_t>;
    using HostLink = std::pair<wire::HostSession, std::uint8_t>;  ///< a host, and a box's place

    /// This box found that one unreachable. False: there is no room to remember it.
    bool suspect(std::uint8_t from, std::uint8_t to) {
        return suspect(boxes_, pair_of(from, to), from);
    }
    bool suspect(wire::HostSession host, std::uint8_t box) {
        return suspect(hosts_, {host, box}, box);
    }
    bool is_avoided(std::uint8_t one, std::uint8_t other) const {
        return is_avoided(boxes_, pair_of(one, other));
    }
    bool is_avoided(wire::HostSession host, std::uint8_t box) const {
        return is_avoided(hosts_, {host, box});
    }
    bool empty() const { return boxes_.empty() && hosts_.empty(); }

    /// What went around it has gone through.
    LinkReport detoured(std::uint8_t one, std::uint8_t other) {
        return step(boxes_, pair_of(one, other), LinkEvent::detoured);
    }
    LinkReport detoured(wire::HostSession host, std::uint8_t box) {
        return step(hosts_, {host, box}, LinkEvent::detoured);
    }
    /// A transfer has: it counts in the direction in which the link was found broken.
    LinkReport carried(std::uint8_t from, std::uint8_t to) {
        const auto found = boxes_.find(pair_of(from, to));
        if (found == boxes_.end() || found->second.found_by != from) return LinkReport::nothing;
        return step(boxes_, found->first, LinkEvent::carried);
    }
    LinkReport carried(wire::HostSession host, std::uint8_t box) {
        return step(hosts_, {host, box}, LinkEvent::carried);
    }
    /// A while has passed: all are used again. Of hosts that did nothing since the last trial
    /// nobody knows whether they are there: they are forgotten.
    void retry() {
        for (auto pair : keys_of(boxes_)) step(boxes_, pair, LinkEvent::retried);
        for (auto link : keys_of(hosts_)) {
            const bool on_trial = !is_avoided(hosts_, link);
            step(hosts_, link, LinkEvent::retried);
            if (on_trial) hosts_.erase(link);
        }
    }

    /// Places that this one does not reach, or that do not reach it, as reported.
    Mask unreached_by(std::uint8_t place) const {
        Mask others = 0;
        for (const auto& [pair, link] : boxes_) {
            if (!is_reported(link) || (pair.first != place && pair.second != place)) continue;
            others |= only(pair.first == place ? pair.second : pair.first);
        }
        return others;
    }
    bool misses_host(std::uint8_t place) const {
        for (const auto& [key, link] : hosts_)
            if (key.second == place && is_reported(link)) return true;
        return false;
    }
    std::vector<BoxPair> box_pairs() const { return keys_of(boxes_); }

private:
    static constexpr std::size_t links_max = 256;

    struct Link {
        LinkState state{};
        std::uint8_t found_by = 0;  ///< the place of the box that began the transfer
    };

    static BoxPair pair_of(std::uint8_t one, std::uint8_t other) { return std::minmax(one, other); }
    static bool is_reported(const Link& link) {
        return link.state == LinkState::broken || link.state == LinkState::broken_on_trial;
    }
    template <class Links>
    static bool suspect(Links& links, const typename Links::key_type& key, std::uint8_t found_by) {
        if (!links.contains(key)) {
            if (links.size() >= links_max) return false;
            links[key] = {LinkState::suspected, found_by};
        } else {
            step(links, key, LinkEvent::unreachable);
        }
        return true;
    }
    template <class Links>
    static bool is_avoided(const Links& links, const typename Links::key_type& key) {
        const auto found = links.find(key);
        return found != links.end() && (found->second.state == LinkState::suspected ||
                                        found->second.state == LinkState::broken);
    }
    template <class Links>
    static LinkReport step(Links& links, const typename Links::key_type& key, LinkEvent event) {
        const auto found = links.find(key);
        if (found == links.end()) return LinkReport::nothing;
        const LinkStep* next = next_step(found->second.state, event);
        if (!next) return LinkReport::nothing;
        if (next->to)
            found->second.state = *next->to;
        else
            links.erase(found);
        return next->report;
    }

    std::map<BoxPair, Link> boxes_;
    std::map<HostLink, Link> hosts_;
};

/// The links that a plan goes around.
struct Avoided {
    std::vector<LinkTable::BoxPair> boxes;
    Mask to_host = 0;  ///< places of boxes that do not reach the request's host

    bool empty() const { return boxes.empty() && to_host == 0; }
};

}  // namespace weft::raid
