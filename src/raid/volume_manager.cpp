// SPDX-License-Identifier: Apache-2.0
#include "raid/volume_manager.hpp"

#include <algorithm>

#include "raid/volume_life.hpp"

namespace weft::raid {

using namespace std::chrono_literals;
using wire::ArrayMemberState;

VolumeManager::VolumeManager(VolumeManagerOwner& owner, const VolumeManagerOptions& options)
    : life_(std::make_unique<Life>(owner, options)) {}
VolumeManager::~VolumeManager() = default;

Result<void> VolumeManager::start(wire::ClusterIdentity cluster, wire::Epoch epoch,
                                  const wire::ArrayVolume& volume, const VolumeRecords& records) {
    return life_->start(cluster, epoch, volume, records);
}
void VolumeManager::box_up(const wire::BoxIdentity& box, const BoxStanding& standing) {
    life_->box_up(box, standing);
}
void VolumeManager::box_down(const wire::BoxIdentity& box) {
    life_->box_down(box);
}
void VolumeManager::answered(CommandTicket ticket, const wire::ArrayAnswer& answer) {
    life_->answered(ticket, answer, {});
}
void VolumeManager::answered(CommandTicket ticket, const wire::ArrayAnswer& answer,
                             ConstBuffer data_in) {
    life_->answered(ticket, answer, data_in);
}
void VolumeManager::lost(CommandTicket ticket) {
    life_->lost(ticket);
}
void VolumeManager::stored(Result<void> outcome) {
    life_->stored(outcome);
}
void VolumeManager::submit(HostRequest& request) {
    life_->submit(request);
}
void VolumeManager::note_time(Instant now) {
    life_->note_time(now);
}
std::optional<Instant> VolumeManager::deadline() const {
    return life_->deadline();
}
void VolumeManager::tick(Instant now) {
    life_->tick(now);
}
Result<void> VolumeManager::fail(std::uint8_t place) {
    return life_->fail(place);
}
Result<void> VolumeManager::re_add(std::uint8_t place) {
    return life_->re_add(place);
}
Result<void> VolumeManager::replace(std::uint8_t place, const wire::BoxIdentity& box) {
    return life_->replace(place, box);
}
Result<void> VolumeManager::pause_rebuild(bool paused) {
    return life_->pause_rebuild(paused);
}
Result<void> VolumeManager::limit_rebuild(std::uint64_t octets_per_second) {
    return life_->limit_rebuild(octets_per_second);
}
Result<void> VolumeManager::scrub(bool repair) {
    return life_->scrub(repair);
}
Result<void> VolumeManager::stop_scrub() {
    return life_->stop_scrub();
}
Result<void> VolumeManager::grow(std::uint64_t stripes) {
    return life_->grow(stripes);
}
VolumeStatus VolumeManager::status() const {
    return life_->status();
}
const wire::ArrayVolume& VolumeManager::volume() const {
    return life_->volume();
}
std::uint64_t VolumeManager::size() const {
    return life_->size();
}

VolumeManager::Life::Life(VolumeManagerOwner& owner, const VolumeManagerOptions& options)
    : owner_(owner),
      options_(options),
      engine_(*this, {.plan = options.plan,
                      .own = options.own,
                      .windows = options.windows,
                      .window_bytes = options.window_bytes,
                      .upkeep_bytes = options.upkeep_bytes,
                      .upkeep_percent = options.rebuild_share,
                      .host_requests = options.host_requests,
                      .request_patience = options.request_patience,
                      .hedge = options.hedge}) {}

Result<void> VolumeManager::Life::start(wire::ClusterIdentity cluster, wire::Epoch epoch,
                                        const wire::ArrayVolume& volume,
                                        const VolumeRecords& records) {
    if (started_) return Error{Code::unsupported};
    if (auto layout = layout_of(volume); !layout) return layout.error();
    Visit visit(*this);
    cluster_ = cluster;
    epoch_ = epoch;
    volume_ = applied_ = volume;
    log_ = WriteLog(volume.stripes);
    doubtful_ = recent_ = RegionMap(volume.stripes);
    intent_ = LastingMap(volume.stripes);
    for (const auto& record : records.rebuilds) {
        if (record.volume != volume.volume || record.place >= volume.boxes) continue;
        places_[record.place].lasting_mark = record.stripes;
        rebuild_orders_ = {.paused = record.paused, .octets_per_second = record.octets_per_second};
    }
    for (const auto& member : std::span(volume.members).first(volume.boxes))
        if (member.failed) boxes_[member.box].facts.failed = true;
    recall_dirty(records.dirty);
    for (const auto& [host, command] : records.executed) engine_.executed().note(host, command);
    auto known = engine_.set_volume(cluster_, epoch_, volume_, health());
    if (!known) return known.error();
    engine_.halt();  // requests may come, and wait for the boxes
    started_ = starting_ = true;
    start_timer_.ask(options_.start_patience);
    return {};
}

void VolumeManager::Life::put_right() {
    do {
        changed_ = false;
        for (auto ticket : std::exchange(undeliverable_, {})) engine_.lost(ticket);
        judge_failures();
        let_in_who_may();
        settle();
        if (writes_held_ && !loses_somebody()) {
            writes_held_ = false;
            engine_.go_on();
        }
        keep_records();
        work_on();
    } while (changed_ || !undeliverable_.empty());
    owner_.deadline_changed();
}

/// For who is called by the engine. That goes on by itself where its own transfers end: nobody is
/// on the way out then, and inside it nothing can be put right.
void VolumeManager::Life::see_to_it() {
    changed_ = true;
    if (visits_ > 0) return;
    visit_timer_.ask({});
    owner_.deadline_changed();
}

void VolumeManager::Life::submit(HostRequest& request) {
    Visit visit(*this);
    if (deposed_ || !started_) return request.completed(Error{Code::disconnected});
    if (given_up_) return request.completed(Error{Code::io_failed});
    if (request.operation == HostOperation::flush && owes_a_loss(request.session))
        return request.completed(Error{Code::io_failed});
    if (request.operation == HostOperation::write && writers_.size() < limits::requests)
        writers_.insert(request.session);
    engine_.submit(request);
}

std::optional<Instant> VolumeManager::Life::deadline() const {
    std::optional<Instant> first;
    auto consider = [&](const Timer& timer) {
        auto at = timer.deadline();
        if (at && (!first || *at < *first)) first = at;
    };
    for (const Timer* timer :
         {&start_timer_, &stop_timer_, &retry_timer_, &calm_timer_, &store_timer_, &flush_timer_,
          &rest_timer_, &rate_timer_, &intent_timer_, &loss_timer_, &link_timer_, &visit_timer_})
        consider(*timer);
    for (const Place& place : places_) {
        consider(place.spare);
        consider(place.full);
    }
    if (auto at = engine_.deadline(); at && (!first || *at < *first)) first = at;
    return first;
}

void VolumeManager::Life::tick(Instant now) {
    Visit visit(*this);
    now_ = now;
    engine_.tick(now);
    if (start_timer_.passed(now)) start_expired_ = true;
    if (stop_timer_.passed(now) && !serving_) {
        given_up_ = true;
        say(VolumeEventKind::given_up);
        engine_.give_up(Error{Code::io_failed});
    }
    if (retry_timer_.passed(now)) engine_.try_again();
    if (calm_timer_.passed(now)) {
        retry_after_ = {};
        for (auto& [identity, box] : boxes_) {
            box.needs_repair = false;
            box.cut_off_since.reset();
        }
    }
    // Not amid a change: a box that was away and is asked as if it had not been would answer for
    // what it has lost.
    if (flush_timer_.passed(now) && serving_ && !is_changing() && !flushing_ && !log_.empty()) {
        flushing_ = true;
        log_.flush_begins(engine_.bands_under_way());
        begin(*idle_work(), Work::Purpose::flush, UpkeepKind::flush, 0, 0);
    }
    if (intent_timer_.passed(now)) forget_intent();
    if (link_timer_.passed(now)) try_links_again();
    if (loss_timer_.passed(now)) owed_told_.clear();
    for (Timer* timer : {&store_timer_, &rest_timer_, &rate_timer_, &visit_timer_})
        (void)timer->passed(now);
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) look_for_room(i, now);
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        if (!places_[i].spare.passed(now)) continue;
        if (volume_.members[i].state != ArrayMemberState::absent) continue;
        places_[i].spare.ask(std::max<Duration>(options_.spare_patience, 1s));
        owner_.needs_spare(i);
    }
}

void VolumeManager::Life::say_of(VolumeEventKind kind, std::uint8_t place, wire::ArrayOutcome why,
                                 std::uint64_t number) {
    say({.kind = kind,
         .place = place,
         .box = volume_.members[place].box,
         .why = why,
         .number = number});
}

std::uint64_t VolumeManager::Life::size() const {
    const auto layout = layout_of(applied_);
    return layout ? applied_.stripes * layout->stripe_bytes() : 0;
}

}  // namespace weft::raid
