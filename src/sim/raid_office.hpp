// SPDX-License-Identifier: Apache-2.0
// A controller of a simulated cluster in one of its terms: a machine of its own, with a production
// manager. Of one that was replaced the store and hosts want to know nothing.
#pragma once

#include "node/volume_roster.hpp"
#include "sim/raid_cluster.hpp"

namespace weft::sim {

struct RaidCluster::Office final : raid::VolumeManagerOwner {
    explicit Office(RaidCluster& all);
    ~Office();

    raid::VolumeManagerOptions options();
    bool is_held() const { return number == cluster.epoch_; }
    /// For whatever it is told: it knows the time by then.
    raid::VolumeManager& at_work() {
        manager.note_time(station.host().now());
        return manager;
    }
    void vanish();

    void carry(const wire::BoxIdentity& box, raid::CommandTicket ticket,
               const raid::EncodedOrder& command) override {
        if (is_alive) cluster.carry(*this, box, ticket, command);
    }
    void create_part(const wire::BoxIdentity& box, raid::CommandTicket ticket,
                     const wire::ArraySuperblock& superblock) override {
        if (is_alive && is_held()) cluster.create_part(*this, box, ticket, superblock);
    }
    SteeringTag window_tag(const wire::BoxIdentity& box, std::uint32_t window,
                           wire::TransactionNumber transaction) override;
    void store(std::vector<raid::MetadataChange> changes) override {
        if (is_alive) cluster.store(*this, std::move(changes));
    }
    void needs_spare(std::uint8_t place) override;
    void event(const raid::VolumeEvent& event) override {
        if (is_held() && cluster.on_event) cluster.on_event(event);
    }
    bool is_host_here(wire::HostSession session) const override {
        return cluster.is_host_here(session);
    }
    void writers_gone(wire::HostSession session, std::uint64_t command) override {
        if (is_alive) cluster.writers_gone(session, command);
    }
    void deadline_changed() override;

    /// As which host boxes reach its memory; of every controller the same.
    static constexpr wire::HostSession own_session{1};

    RaidCluster& cluster;
    std::uint64_t number;
    bool is_alive = true, storing = false;
    std::map<unsigned, std::uint64_t> sessions;  ///< by place
    std::uint64_t last_host_session = 1;
    node::VolumeRoster roster;
    RaidStation station;
    RaidWindows windows;
    RaidTransfers transfers;
    raid::VolumeManager manager;
    std::unique_ptr<Timer> timer;
};

}  // namespace weft::sim
