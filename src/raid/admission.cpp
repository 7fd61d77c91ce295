// SPDX-License-Identifier: Apache-2.0
#include "raid/admission.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::raid {
namespace {

/// One in so many windows is kept from each kind, for the others.
constexpr std::uint32_t windows_for_others = 8;
/// Upkeep's requests are large: one in so many windows at the most.
constexpr std::uint32_t windows_for_upkeep = 4;
constexpr std::uint64_t cost_of_order = 16u << 10;  ///< in octets
constexpr std::size_t sessions_kept = 64;           ///< before idle ones are looked for

}  // namespace

Admission::Admission(const Options& options) : options_(options), free_(options.windows) {
    WEFT_CHECK(options.upkeep_percent >= 1 && options.upkeep_percent <= 99);
}

std::uint32_t Admission::most_of(Kind kind) const {
    const auto all = options_.windows;
    if (kind == Kind::upkeep) return std::max(1u, all / windows_for_upkeep);
    return std::max(1u, all - all / windows_for_others);
}

bool Admission::may_take_window(Kind kind) const {
    return free_ > 0 && under_way(kind) < most_of(kind);
}

void Admission::add(Arrival request, Kind kind, wire::HostSession session) {
    const bool no_host_waited = !hosts_wait();
    if (!waiting_.try_emplace(request, Waiting{kind, session}).second) return;
    if (kind == Kind::upkeep) {
        if (upkeep_.empty()) upkeep_charge_ = std::max(upkeep_charge_, now_);
        upkeep_.insert(request);
        return;
    }
    if (no_host_waited) hosts_charge_ = std::max(hosts_charge_, now_);
    if (sessions_.size() > sessions_kept) forget_idle_sessions();
    Session& own = sessions_[session];
    if (own.empty()) own.charge = std::max(own.charge, sessions_now_);
    (kind == Kind::read ? own.reads : own.writes).insert(request);
}

void Admission::remove(Arrival request) {
    const auto found = waiting_.extract(request);
    if (!found) return;
    const Waiting& waiting = found.mapped();
    if (waiting.kind == Kind::upkeep) {
        upkeep_.erase(request);
        return;
    }
    Session& own = sessions_.at(waiting.session);
    (waiting.kind == Kind::read ? own.reads : own.writes).erase(request);
}

/// Of those that have had no more than the others nothing need be remembered.
void Admission::forget_idle_sessions() {
    std::erase_if(sessions_, [&](const auto& each) {
        return each.second.empty() && each.second.charge <= sessions_now_;
    });
}

std::optional<Arrival> Admission::oldest_of(const Session& session) const {
    std::optional<Arrival> oldest;
    if (may_take_window(Kind::read) && !session.reads.empty()) oldest = *session.reads.begin();
    if (may_take_window(Kind::write) && !session.writes.empty())
        oldest = std::min(oldest.value_or(~Arrival{0}), *session.writes.begin());
    return oldest;
}

const Admission::Session* Admission::next_session() const {
    const Session* next = nullptr;
    for (const auto& [identity, session] : sessions_)
        if (oldest_of(session) && (!next || session.charge < next->charge)) next = &session;
    return next;
}

std::optional<Arrival> Admission::next() const {
    if (free_ == 0) return std::nullopt;
    const Session* session = next_session();
    const bool upkeep = may_take_window(Kind::upkeep) && !upkeep_.empty();
    if (upkeep && (!session || upkeep_charge_ <= hosts_charge_)) return *upkeep_.begin();
    return session ? oldest_of(*session) : std::nullopt;
}

void Admission::started(Arrival request, std::uint64_t octets, std::size_t orders) {
    const Waiting waiting = waiting_.at(request);
    remove(request);
    WEFT_CHECK(free_ > 0);
    --free_;
    ++under_way_[static_cast<std::size_t>(waiting.kind)];
    const Charge cost = octets + orders * cost_of_order;
    if (waiting.kind == Kind::upkeep) {
        now_ = std::max(now_, upkeep_charge_);
        upkeep_charge_ += cost * 100 / options_.upkeep_percent;
        return;
    }
    now_ = std::max(now_, hosts_charge_);
    hosts_charge_ += cost * 100 / (100 - options_.upkeep_percent);
    Session& own = sessions_.at(waiting.session);
    sessions_now_ = std::max(sessions_now_, own.charge);
    own.charge += cost;
}

void Admission::ended(Kind kind) {
    --under_way_[static_cast<std::size_t>(kind)];
    ++free_;
}

}  // namespace weft::raid
