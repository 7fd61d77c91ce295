// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_office.hpp"

namespace weft::sim {

RaidCluster::Office::Office(RaidCluster& all)
    : cluster(all),
      number(all.epoch_),
      station(all.agenda_, "controller" + std::to_string(number)),
      windows(station.links(), raid_window_bytes,
              static_cast<std::uint16_t>(raid::own_windows_for(RaidWindows::count))),
      transfers(all.agenda_),
      manager(*this, options()),
      timer(station.host().make_timer([this] {
          manager.tick(station.host().now());
          deadline_changed();
      })) {
    transfers.go_over(station.links());
    station.links().set_office(cluster.cluster_, wire::Epoch{number});
    station.links().appear_as(wire::host_end(own_session), cluster.secret_of_controller(number));
}

RaidCluster::Office::~Office() {
    transfers.vanish();
    station.close();
}

raid::VolumeManagerOptions RaidCluster::Office::options() {
    auto options = cluster.options_;
    options.own.windows = &windows;
    options.own.transfers = &transfers;
    return options;
}

void RaidCluster::Office::vanish() {
    is_alive = false;
    transfers.vanish();
    station.power_cut();
}

SteeringTag RaidCluster::Office::window_tag(const wire::BoxIdentity& box, std::uint32_t window,
                                            wire::TransactionNumber transaction) {
    if (box == cluster.options_.own.identity)
        return raid::tag_in(windows.tag_of(window), transaction);
    const auto i = cluster.index_of(box);
    if (i == cluster.machines() || !cluster.places_[i].machine) return {};
    return raid::tag_in(cluster.machine(i).windows.tag_of(window), transaction);
}

void RaidCluster::Office::needs_spare(std::uint8_t place) {
    if (!is_alive || !cluster.gives_spares) return;
    cluster.agenda_.later([this, place] {
        if (is_alive && is_held()) (void)cluster.replace(place);
    });
}

void RaidCluster::Office::deadline_changed() {
    if (!timer) return;
    if (const auto when = manager.deadline())
        timer->set(*when);
    else
        timer->cancel();
}

}  // namespace weft::sim
