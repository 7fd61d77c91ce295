// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_machine.hpp"

namespace weft::sim {

namespace {

/// As of node::BoxPart.
constexpr Duration marks_wait_for = std::chrono::milliseconds(1);

}  // namespace

RaidMachine::RaidMachine(RaidAgenda& agenda, Complaints& complaints, const std::string& name,
                         RaidDisk& disk, const wire::ArraySuperblock& superblock, unsigned copy,
                         Heard heard)
    : station(agenda, name),
      windows(station.links(), raid_window_bytes),
      transfers(agenda),
      journaled(open_journal(disk, superblock)),
      the_box(make_box(disk, superblock, copy)),
      box(*the_box),
      disk_(disk),
      heard_(std::move(heard)),
      complaints_(complaints),
      agenda_(agenda) {
    transfers.go_over(station.links());
    station.links().appear_as(wire::box_end(superblock.box), std::nullopt);
    station.links().set_office(superblock.cluster, superblock.epoch);
}

RaidMachine::~RaidMachine() {
    transfers.vanish();
    the_box.reset();
    journaled.reset();
    station.close();
}

std::unique_ptr<raid::JournaledDisk> RaidMachine::open_journal(
    RaidDisk& disk, const wire::ArraySuperblock& superblock) {
    if (!raid::has_journal(superblock)) return nullptr;
    raid::JournaledDisk::Options options;
    options.journal.marks_wait = [this] {
        agenda_.after(marks_wait_for, [this, alive = std::weak_ptr(alive_)] {
            if (alive.expired()) return;
            agenda_.on(station.host(), [this, alive] {
                if (!alive.expired()) journaled->write_marks();
            });
        });
    };
    return std::make_unique<raid::JournaledDisk>(disk, superblock, options);
}

std::unique_ptr<raid::Box> RaidMachine::make_box(RaidDisk& disk,
                                                 const wire::ArraySuperblock& superblock,
                                                 unsigned copy) {
    raid::BoxOwner& owner = *this;
    return std::make_unique<raid::Box>(owner, disk, windows, transfers, superblock, copy,
                                       journaled.get());
}

void RaidMachine::vanish() {
    heard_ = nullptr;
    alive_.reset();
    transfers.vanish();
    station.power_cut();
}

void RaidMachine::begin(void (raid::JournaledDisk::*how)(raid::Told)) {
    if (!journaled) return;
    disk_.answers_at_once = true;
    bool well = false;
    ((*journaled).*how)([&](Result<void> outcome) { well = outcome.has_value(); });
    if (!well) complaints_.add("S1: a box's journal cannot be read after its power went");
    disk_.answers_at_once = false;
}

}  // namespace weft::sim
