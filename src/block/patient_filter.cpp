// SPDX-License-Identifier: Apache-2.0
#include "block/patient_filter.hpp"

#include <algorithm>

namespace weft::block {

PatientFilter::PatientFilter(BlockDevice& below, World& world)
    : RelayFilter(below, relay_places),
      world_(world),
      timer_(world.make_timer([this] { send_again(); })) {}

/// What needs no room never waits behind what does.
void PatientFilter::submit(BlockRequest& request) {
    const bool needs_room = request.operation == BlockOperation::write ||
                            request.operation == BlockOperation::trim ||
                            request.operation == BlockOperation::write_zeroes;
    if (needs_room) return RelayFilter::submit(request);
    below().submit(request);
}

bool PatientFilter::waits(const BlockRequest& request) const {
    return patient_ && (request.offset < but_for_.begin || request.offset >= but_for_.end);
}

bool PatientFilter::keeps(BlockRequest& copy, const Result<void>& outcome) {
    const bool was_full = is_full();
    const bool lacks_room = !outcome && outcome.error().code == Code::exhausted;
    const bool kept = lacks_room && waits(copy);
    if (kept)
        note_wait(copy);
    else
        note_end(copy, outcome);
    if (was_full != is_full() && hear_) hear_(is_full());
    return kept;
}

void PatientFilter::note_wait(BlockRequest& copy) {
    const auto found = std::ranges::find(waiting_, &copy, &Waiting::copy);
    if (found == waiting_.end())
        waiting_.push_back({.copy = &copy});
    else
        found->is_below = false;
    timer_->set(world_.now() + patient_pause);
}

/// What needs no new room may well be written while the disk is full: that says nothing.
void PatientFilter::note_end(const BlockRequest& copy, const Result<void>& outcome) {
    std::erase_if(waiting_, [&](const Waiting& each) { return each.copy == &copy; });
    const bool over_it =
        refused_at_ && copy.offset <= *refused_at_ && *refused_at_ - copy.offset < copy.length;
    if (outcome && over_it) refused_at_.reset();
    if (!outcome && outcome.error().code == Code::exhausted && patient_ && !refused_at_)
        refused_at_ = copy.offset;
}

void PatientFilter::send_again() {
    std::vector<BlockRequest*> again;
    for (auto& each : waiting_)
        if (!std::exchange(each.is_below, true)) again.push_back(each.copy);
    for (auto* copy : again) below().submit(*copy);
}

void PatientFilter::be_patient(Range but_for) {
    patient_ = true;
    but_for_ = but_for;
}

void PatientFilter::give_up() {
    patient_ = false;
    std::vector<BlockRequest*> over;
    for (auto& each : waiting_)
        if (!each.is_below) over.push_back(each.copy);
    for (auto* copy : over) copy->completed(Error{.code = Code::exhausted});
}

}  // namespace weft::block
