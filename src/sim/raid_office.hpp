// SPDX-License-Identifier: Apache-2.0
// A controller of a simulated cluster, in office or replaced: the inside of RaidCluster.
#pragma once

#include "sim/raid_cluster.hpp"

namespace weft::sim {

/// A manager, and who hears it. Of one that was replaced the store and hosts want to know nothing.
struct RaidCluster::Office final : raid::VolumeManagerOwner {
    explicit Office(RaidCluster& all)
        : cluster(all),
          number(all.epoch_),
          transfers(all.agenda_, all.tags),
          windows(all.tags, all.complaints_, raid::own_windows_for(RaidWindows::count)),
          manager(*this, options()) {}

    raid::VolumeManagerOptions options() {
        auto options = cluster.options_;
        options.own.windows = &windows;
        options.own.transfers = &transfers;
        return options;
    }

    bool is_held() const { return number == cluster.epoch_; }
    void carry(const wire::BoxIdentity& box, raid::CommandTicket ticket,
               const raid::EncodedOrder& command) override {
        if (is_alive) cluster.carry(*this, box, ticket, command);
    }
    void create_part(const wire::BoxIdentity& box, raid::CommandTicket ticket,
                     const wire::ArraySuperblock& superblock) override {
        if (is_alive && is_held()) cluster.create_part(*this, box, ticket, superblock);
    }
    SteeringTag window_tag(const wire::BoxIdentity& box, std::uint32_t,
                           wire::TransactionNumber transaction) override {
        const unsigned place =
            box == cluster.options_.own.identity ? own_place : cluster.index_of(box);
        return SteeringTag{turns * (place + 1) + turn(transaction)};
    }
    std::uint32_t turn(wire::TransactionNumber transaction) const {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(transaction) % 0x8000 +
                                          0x8000 * (number % (turns / 0x8000)));
    }
    void store(std::vector<raid::MetadataChange> changes) override {
        if (is_alive) cluster.store(*this, std::move(changes));
    }
    void needs_spare(std::uint8_t place) override {
        if (!is_alive || !cluster.gives_spares) return;
        cluster.agenda_.later([this, place] {
            if (is_alive && is_held()) (void)cluster.replace(place);
        });
    }
    void event(const raid::VolumeEvent& event) override {
        if (is_held() && cluster.on_event) cluster.on_event(event);
    }
    void deadline_changed() override {}

    static constexpr unsigned own_place = 40;
    RaidCluster& cluster;
    std::uint64_t number;
    bool is_alive = true, storing = false;
    std::map<unsigned, std::uint64_t> sessions;  ///< by place
    RaidTransfers transfers;
    RaidWindows windows;
    raid::VolumeManager manager;
};

}  // namespace weft::sim
