// SPDX-License-Identifier: Apache-2.0
// What happens to the boxes and controllers of a cluster: sessions and power that go and come back,
// machines that stand still, controllers that follow each other.
#include <algorithm>

#include "sim/raid_office.hpp"

namespace weft::sim {

namespace {

/// How long a controller hears nothing of a box before it takes its session for lost.
constexpr Duration silence = std::chrono::seconds(10);

}  // namespace

void RaidCluster::drop(unsigned i) {
    auto& place = places_[i];
    if (place.session == 0) return;
    sessions_.erase(std::exchange(place.session, 0));
    offices_.back()->sessions.erase(i);
    forget(i);
    manager().box_down(place.identity);
}

void RaidCluster::bring(unsigned i) {
    auto& place = places_[i];
    if (place.session != 0) return;
    restart_if_failed(i);
    if (place.machine && !obeys(i)) announce(i);
    place.waits_for_room = place.machine && !obeys(i) && lacks_room(i);
    if (place.waits_for_room) return;
    place.session = ++last_session_;
    sessions_[place.session] = {i, offices_.back().get(), {}};
    place.gone_at = agenda_.now();
    offices_.back()->sessions[i] = place.session;
    introduce(i);
    if (!place.machine) return manager().box_up(place.identity, {.boot = place.boot});
    const auto& known = box(i).superblock();
    manager().box_up(place.identity, {.has_part = true,
                                      .generation = known.volume.generation,
                                      .data_length = known.data_length,
                                      .boot = place.boot});
}

/// Who takes office says so before anything else; boxes answer when it lasts. A disk that fails
/// just then is no reason to give up. One that has no room for it is waited for by nobody.
void RaidCluster::announce(unsigned i) {
    constexpr int tries = 3, patience = 100'000;
    hold_transfers(i, false);
    resume_box(i);
    for (int attempt = 0; attempt < tries && !obeys(i); ++attempt) {
        const auto& known = box(i).superblock();
        const wire::ArrayAddress address{known.cluster, known.volume.volume, known.box,
                                         known.volume.generation, wire::Epoch{epoch_}};
        const auto octets = encoded(address);
        const auto size = static_cast<std::uint32_t>(octets.size());
        // What an older controller's orders are about to do ends here, and not when the disk knows.
        places_[i].machine->station.links().set_office(cluster_, address.epoch);
        box(i).receive(raid::CommandTicket{++last_carried_},
                       {wire::ArrayAction::new_epoch, {}, size, {}}, octets);
        for (int steps = 0; steps < patience && !obeys(i); ++steps)
            if (!agenda_.step()) break;
    }
    if (!obeys(i) && !lacks_room(i)) complaints_.add("L2: a box does not obey its new controller");
}

bool RaidCluster::obeys(unsigned i) {
    return box(i).superblock().epoch >= wire::Epoch{epoch_};
}

void RaidCluster::cut_power(unsigned i) {
    drop(i);
    std::erase_if(sessions_, [&](const auto& each) { return each.second.place == i; });
    auto& place = places_[i];
    place.waits_for_room = false;
    resume_box(i);
    place.held_links.clear();
    ++place.boot;
    if (!place.machine) return;
    place.machine->vanish();
    place.disk->errors = 0;
    place.disk->power_cut();
    if (mutation_ == RaidMutation::epoch_is_forgotten) forget_epoch(i);
    start_machine(i);
    if (place.machine) place.machine->recover();
}

/// A journal that could not be written takes nothing any more, until somebody starts the box anew.
bool RaidCluster::has_lost_its_journal(unsigned i) const {
    const auto& machine = places_[i].machine;
    return machine && machine->journaled && machine->journaled->has_failed();
}

bool RaidCluster::restart_if_failed(unsigned i) {
    if (!has_lost_its_journal(i)) return false;
    places_[i].disk->errors = 0;
    cut_power(i);
    return true;
}

void RaidCluster::pause_box(unsigned i, Duration duration) {
    auto& place = places_[i];
    const auto until = agenda_.now() + duration;
    if (place.pauses_until && *place.pauses_until >= until) return;
    place.pauses_until = until;
    agenda_.world.host(name_of(i)).pause();
    auto is_still = [this, i, until] { return places_[i].pauses_until == until; };
    if (duration >= silence)
        agenda_.at_last(silence, [this, i, is_still] {
            if (is_still()) fall_silent(i);
        });
    agenda_.at_last(duration, [this, i, is_still] {
        if (is_still()) resume_box(i);
    });
}

void RaidCluster::fall_silent(unsigned i) {
    if (!is_up(i)) return;
    drop(i);
    if (on_silence) on_silence(i);
}

void RaidCluster::resume_box(unsigned i) {
    if (!std::exchange(places_[i].pauses_until, std::nullopt)) return;
    agenda_.world.host(name_of(i)).resume();
}

bool RaidCluster::is_any_paused() const {
    return std::ranges::any_of(places_,
                               [](const Place& place) { return place.pauses_until.has_value(); });
}

void RaidCluster::pause_controller(Duration duration) {
    auto& machine = offices_.back()->station.host();
    machine.pause();
    agenda_.at_last(duration, [&machine] { machine.resume(); });
}

void RaidCluster::pause_host(unsigned number, Duration duration) {
    auto& machine = host(number).machine();
    machine.pause();
    agenda_.at_last(duration, [&machine] { machine.resume(); });
}

void RaidCluster::take_over(bool old_goes_on) {
    auto& before = *offices_.back();
    ++epoch_;
    if (!old_goes_on) {
        before.vanish();
        for (const auto& [place, session] : before.sessions) sessions_.erase(session);
        before.sessions.clear();
    }
    carried_generation_ = {};
    std::vector<unsigned> there;
    for (unsigned i = 0; i < machines(); ++i)
        if (std::exchange(places_[i].session, 0) != 0) there.push_back(i);
    start_office();
    for (unsigned i : there) {
        resume_box(i);
        bring(i);
    }
}

bool RaidCluster::pass_time() {
    const auto due = manager_->deadline();
    constexpr auto patience = std::chrono::hours(1);
    if (!due || *due > agenda_.now() + patience) return false;
    agenda_.wait_until(*due);
    return true;
}

std::uint64_t RaidCluster::hedged_reads() const {
    std::uint64_t reads = 0;
    for (const auto& office : offices_) reads += office->manager.status().counters.hedged_reads;
    return reads;
}

}  // namespace weft::sim
