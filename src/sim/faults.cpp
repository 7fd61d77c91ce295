// SPDX-License-Identifier: Apache-2.0
#include "sim/faults.hpp"

#include <algorithm>
#include <iterator>

namespace weft::sim {

Faults::Faults(World& world, const FaultPlan& plan)
    : world_(world), plan_(plan), next_(world.clockwork().schedule, "fault", 0) {
    auto put = [this](FaultKind kind, unsigned weight) { lots_.insert(lots_.end(), weight, kind); };
    put(FaultKind::link_reset, plan.link_reset);
    put(FaultKind::link_half_open, plan.link_half_open);
    put(FaultKind::link_partition, plan.link_partition);
    put(FaultKind::link_clog, plan.link_clog);
    put(FaultKind::disk_errors, plan.disk_errors);
    put(FaultKind::disk_hang, plan.disk_hang);
    put(FaultKind::disk_bit_rot, plan.disk_bit_rot);
    put(FaultKind::disk_power_cut, plan.disk_power_cut);
}

void Faults::start(Duration span) {
    end_ = world_.now() + span;
    plan_next();
}

void Faults::plan_next() {
    Instant when =
        world_.now() + world_.chance().between(plan_.shortest_pause, plan_.longest_pause);
    if (when >= end_ || lots_.empty()) return;
    next_.set(when, [this] {
        inject();
        plan_next();
    });
}

void Faults::inject() {
    FaultKind kind = lots_[world_.chance().below(lots_.size())];
    bool is_link_fault = kind <= FaultKind::link_clog;
    if (is_link_fault ? inject_in_link(kind) : inject_in_disk(kind)) ++injected_;
}

Instant Faults::draw_outage_end() {
    return std::min(end_,
                    world_.now() + world_.chance().between(Duration(0), plan_.longest_outage));
}

bool Faults::inject_in_link(FaultKind kind) {
    auto links = world_.network().links();
    if (links.empty()) return false;
    LinkId link = links[world_.chance().below(links.size())];
    Side side = world_.chance().chance(50) ? Side::connector : Side::acceptor;
    Network& network = world_.network();
    auto later = [&](auto action) {
        world_.clockwork().schedule.at(draw_outage_end(), "fault ends",
                                       static_cast<std::uint64_t>(link), action);
    };
    if (kind == FaultKind::link_reset) {
        network.reset(link);
    } else if (kind == FaultKind::link_half_open) {
        network.half_open(link, side);
    } else if (kind == FaultKind::link_partition) {
        network.partition(link, side);
        later([&network, link] { network.heal(link); });
    } else {
        network.clog(link, world_.chance().between(Duration(0), plan_.longest_clog_delay));
        later([&network, link] { network.clog(link, Duration(0)); });
    }
    return true;
}

bool Faults::inject_in_disk(FaultKind kind) {
    if (world_.disks().empty()) return false;
    auto chosen = std::next(world_.disks().begin(),
                            static_cast<long>(world_.chance().below(world_.disks().size())));
    Disk& disk = *chosen->second;
    auto later = [&](auto action) {
        world_.clockwork().schedule.at(draw_outage_end(), "fault ends", 0, action);
    };
    if (kind == FaultKind::disk_errors) {
        // Drawn one by one: compilers differ in which argument of a call they work out first.
        auto reads = static_cast<double>(world_.chance().between(1, 50));
        auto writes = static_cast<double>(world_.chance().between(1, 50));
        disk.set_error_percent(reads, writes);
        later([&disk] { disk.heal(); });
    } else if (kind == FaultKind::disk_hang) {
        disk.die(Death::hangs);
        later([&disk] { disk.revive(); });
    } else if (kind == FaultKind::disk_bit_rot) {
        disk.rot(world_.chance().below(disk.spec().size),
                 static_cast<unsigned>(world_.chance().below(8)));
    } else {
        disk.power_cut(AfterPowerCut::requests_fail);
    }
    return true;
}

}  // namespace weft::sim
