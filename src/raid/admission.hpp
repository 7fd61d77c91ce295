// SPDX-License-Identifier: Apache-2.0
// Who starts next when a window is free. In one sentence: the window goes to the hosts or to
// upkeep, whichever is further behind its share; of hosts, to the session that is furthest behind
// an equal share; of a session, to its oldest request; but neither reads, nor writes, nor upkeep
// may hold all windows.
//
// A share is counted in what requests cost when they start: the octets that boxes move for them,
// and something for every order. Who asks for nothing saves up nothing. So of requests that have
// their rows, one waits for those of its session that came before it, and for no more of each other
// session than cost as much as one of the largest requests; and upkeep that has work gets its share
// under any load, and all that hosts leave.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "raid/row_order.hpp"
#include "wire/array_identity.hpp"

namespace weft::raid {

class Admission {
public:
    enum class Kind : std::uint8_t { read, write, upkeep };
    struct Options {
        std::uint32_t windows = 16;
        unsigned upkeep_percent = 20;  ///< of what is started, while upkeep has work; 1 to 99
    };

    explicit Admission(const Options& options);

    /// It has its rows and whatever else it needs. `session` means nothing to upkeep.
    void add(Arrival request, Kind kind, wire::HostSession session);
    /// It cannot start after all, or not now. Nothing if it was not added.
    void remove(Arrival request);
    /// Which is to start now; none if no window is free for any. It stays until it is started or
    /// removed.
    std::optional<Arrival> next() const;
    /// It has taken a window, and its boxes move so many octets by so many orders.
    void started(Arrival request, std::uint64_t octets, std::size_t orders);
    /// A window that a request of this kind had is free.
    void ended(Kind kind);

    std::uint32_t most_of(Kind kind) const;
    std::uint32_t under_way(Kind kind) const { return under_way_[static_cast<std::size_t>(kind)]; }

private:
    /// What it was charged, ahead of or behind the others of its level.
    using Charge = std::uint64_t;
    struct Session {
        Charge charge = 0;
        std::set<Arrival> reads, writes;
        bool empty() const { return reads.empty() && writes.empty(); }
    };
    struct Waiting {
        Kind kind{};
        wire::HostSession session{};
    };

    bool may_take_window(Kind kind) const;
    std::optional<Arrival> oldest_of(const Session& session) const;
    const Session* next_session() const;
    bool hosts_wait() const { return waiting_.size() > upkeep_.size(); }
    void forget_idle_sessions();

    const Options options_;
    std::uint32_t free_;
    std::array<std::uint32_t, 3> under_way_{};
    std::map<Arrival, Waiting> waiting_;
    std::map<wire::HostSession, Session> sessions_;
    std::set<Arrival> upkeep_;
    /// `now` of a level is the charge of who was started last: who comes back begins there.
    Charge sessions_now_ = 0, hosts_charge_ = 0, upkeep_charge_ = 0, now_ = 0;
};

}  // namespace weft::raid
