// SPDX-License-Identifier: Apache-2.0
// A host of a simulated volume, as far as boxes see it: memory that is lent to them under a tag for
// each request, and taken back as the production host does it (node/host_disk). A tag opens nothing
// once its request has ended; unless boxes may still write for it, then what they write goes where
// nobody reads, until none can. Memory is its owner's again when the network has none of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/raid_wire.hpp"

namespace weft::sim {

class RaidHost {
public:
    RaidHost(RaidAgenda& agenda, unsigned number);
    ~RaidHost();

    Host& machine() { return station_->host(); }
    Address where() const { return station_->where(); }
    std::optional<wire::HostSession> session() const { return session_; }

    /// A controller has welcomed it: it is reached under another name from now on, by another
    /// secret, and what boxes had to do with the name before is over.
    void welcomed(wire::HostSession session, const node::ArraySecret& secret,
                  wire::ClusterIdentity cluster, wire::Epoch epoch);
    /// A box may not come any more, or again.
    void hear(const wire::BoxIdentity& box, bool may_come);

    /// Memory of a request: boxes write there what is read, or read what is written.
    SteeringTag lend(Buffer memory, bool is_for_a_read);
    /// The request has ended; `is_free` when the network has none of the memory any more.
    void take_back(SteeringTag tag, std::function<void()> is_free);
    /// The same, of a read, for which boxes may still write until writers_gone().
    void take_back_from_writers(SteeringTag tag, std::uint64_t command);
    /// May be heard before the answer: on the network here one can overtake the other.
    void writers_gone(std::uint64_t command) {
        if (sinks_.erase(command) == 0) gone_early_.insert(command);
    }
    std::size_t sinks() const { return sinks_.size(); }

    /// All its memory is gone, and what it asked for it never hears of. It is started anew.
    void restart();

    bool keeps_tags = false;      ///< a mutation: what has ended stays open
    bool closes_at_once = false;  ///< a mutation: nothing is kept for late writers

private:
    using Region = std::unique_ptr<verbs::MemoryRegion>;
    struct Lent {
        Region region;
        Buffer memory;
    };
    struct Sink {
        Region region;
        std::vector<std::byte> memory;
    };

    struct Grave {
        std::map<SteeringTag, Lent> lent;
        std::map<SteeringTag, Region> leaving;
        std::map<std::uint64_t, Sink> sinks;
        std::unique_ptr<Timer> timer;
        std::unique_ptr<RaidStation> station;
    };

    void open(verbs::MemoryRegion& region, SteeringTag tag, Buffer memory, Rights rights);
    void look_at_leaving();

    RaidAgenda& agenda_;
    unsigned number_;
    std::unique_ptr<RaidStation> station_;
    std::vector<Grave> graves_;
    std::optional<wire::HostSession> session_;
    std::map<SteeringTag, Lent> lent_;
    std::map<std::uint64_t, Sink> sinks_;    ///< by the command of their request
    std::map<SteeringTag, Region> leaving_;  ///< not free yet
    std::set<std::uint64_t> gone_early_;
    std::vector<Region> kept_;  ///< that should not be
    std::unique_ptr<Timer> leaving_timer_;
    std::uint8_t key_ = 0;
};

}  // namespace weft::sim
