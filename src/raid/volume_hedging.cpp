// SPDX-License-Identifier: Apache-2.0
// Boxes that are late. A read that waits for one longer than it would for the others is planned
// once more, as if that box were lost for this read alone, and the others serve it. What the late
// box still does of it is left behind: a record of its own, which holds the request's window at
// that box and nowhere else. Should the box be done first after all, the read is served by that,
// and the others stop.
//
// When the host is answered the box is told to let it be, and nobody waits for that. What it still
// sends finds a tag that is closed, as hosts open their memory for one request under a tag of its
// own; what it sends to windows finds another key there. Writes always wait: a write that a member
// has not is no write, and to go on without the member is to count it out, which is not done for
// being slow.
//
// It cannot feed on itself: a hedge is paid for by many reads that went well, and once the others
// have shown that it is the box, reads go around it from the beginning, but for one now and then.
// That one costs nothing: it is the measure of whether the box is well again.
#include <algorithm>

#include "raid/volume_engine.hpp"

namespace weft::raid {
namespace {

constexpr unsigned reads_for_a_hedge = 50;
/// Writes never have the last of the windows: with a box that does not answer they would have all.
constexpr unsigned windows_for_reads = 8;  ///< one in so many

Mask boxes_of(const Plan& plan) {
    Mask boxes = 0;
    for (const Order& order : plan.orders)
        if (order.to.kind == PartyKind::box) boxes |= only(number(order.to.box));
    return boxes;
}

}  // namespace

void VolumeEngine::tell(Run& run, WaitsFor next, Instant now) {
    if (!run.request) return;
    run.request->story.turns_to(next, now);
    if (next < WaitsFor::read) run.request->story.boxes = 0;
}

WaitsFor VolumeEngine::waits_for(const Run& run, Phase phase) {
    if (phase == Phase::commit) return WaitsFor::commit;
    return run.exclusive ? WaitsFor::prepare : WaitsFor::read;
}

bool VolumeEngine::is_host_read(const Run& run) const {
    return paces_.is_on() && run.request && run.request->operation == HostOperation::read &&
           run.ailing.empty();
}

/// Only what a box does by itself tells how quick it is: later turns have it wait for others.
bool VolumeEngine::is_awaited(const Sent& sent) const {
    const Run& run = *sent.run;
    if (run.left_behind || sent.ends || sent.to.kind != PartyKind::box) return false;
    if (run.stage != Stage::running || !is_host_read(run) || run.heals) return false;
    return run.plan.orders[sent.order].phase == Phase::read;
}

std::optional<Instant> VolumeEngine::deadline() const {
    const auto rest = paces_.deadline();
    if (!look_at_ || (rest && *rest < *look_at_)) return rest;
    return look_at_;
}

void VolumeEngine::look_in(Duration span) {
    const Instant at = now_ + span;
    if (!look_at_ || at < *look_at_) look_at_ = at;
}

void VolumeEngine::tick(Instant now) {
    now_ = now;
    if (const auto rest = paces_.deadline(); rest && *rest <= now) {
        Mask owing = 0;
        for (const Run& left : left_) owing |= left.open;
        const Mask quick = paces_.rested(owing, now);
        for (std::uint8_t place = 0; place < limits::boxes; ++place)
            if (contains(quick, place)) owner_.box_quick(BoxIndex{place});
    }
    if (!look_at_ || now < *look_at_) return;
    look_at_.reset();
    hedge_what_is_late();
}

void VolumeEngine::hedge_what_is_late() {
    struct Late {
        RunPlace run;
        Mask boxes = 0;
        std::size_t orders = 0;
    };
    std::vector<Late> all;
    for (const auto& [ticket, sent] : sent_) {
        if (!is_awaited(sent) || sent.run->waits_it_out) continue;
        const Duration left = sent.since + paces_.patience_with(number(sent.to.box)) - now_;
        if (left > Duration{}) {
            look_in(left);
            continue;
        }
        auto found = std::ranges::find_if(
            all, [&, run = sent.run](const Late& late) { return late.run == run; });
        if (found == all.end()) {
            all.push_back({.run = sent.run});
            found = std::prev(all.end());
        }
        found->boxes |= only(number(sent.to.box));
        ++found->orders;
        if (sent.run->late == 0 || sent.since < sent.run->late_since)
            sent.run->late_since = sent.since;
    }
    // Of those that wait for others too, it is seen when they have waited long enough for them. The
    // engine begins nothing meanwhile: no run of these ends before its turn has come here.
    const bool outermost = !std::exchange(starting_, true);
    for (const Late& late : all)
        if (late.orders == late.run->unanswered) hedge(late.run, late.boxes);
    if (!outermost) return;
    starting_ = false;
    start_what_may();
}

void VolumeEngine::hedge(RunPlace run, Mask late) {
    const bool is_served = run->served != 0;
    if (!is_served) {
        const auto health = health_without(run->late | late);
        const Range range{run->request->range.offset + run->done, run->part};
        // Asked again in spite of it: there was no way around.
        const bool in_vain = (run->late & late) != 0;
        if (in_vain || !health || !plan_read(*layout_, *health, range, options_.plan)) {
            run->waits_it_out = true;
            return;
        }
        if (!may_hedge(late)) return look_in(paces_.at_least());
    }
    leave_behind(run, late);
    run->late |= late;
    run->failed = run->moves_over = true;
    run->request->story.hedged = true;
    if (!is_served) ++counters_.hedged_reads;
    turn_ended(run);
}

/// Of boxes that are known to be slow, tries are few already.
bool VolumeEngine::may_hedge(Mask late) {
    if ((late & ~paces_.slow()) == 0) return true;
    const unsigned most = 2 * options_.windows * reads_for_a_hedge;
    if (hedges_spent_ + reads_for_a_hedge > most) return false;
    hedges_spent_ += reads_for_a_hedge;
    return true;
}

/// All that the run waits for is what is left.
void VolumeEngine::leave_behind(RunPlace run, Mask late) {
    const auto left = left_.emplace(left_.end());
    left->left_behind = true;
    left->stage = Stage::ending;
    left->plan = run->plan;
    left->window = run->window;
    left->transaction = run->transaction;
    left->generation = run->generation;
    left->part = run->part;
    left->done_before = run->done;
    left->open = run->open & late;
    left->unanswered = std::exchange(run->unanswered, 0);
    left->of = &*run;
    left->sufficient = run->next == run->plan.orders.size() && !run->failed;
    run->open &= ~late;
    for (auto& [ticket, sent] : sent_)
        if (sent.run == run) sent.run = left;
}

void VolumeEngine::left_answered(const Sent& sent, const wire::ArrayAnswer& answer, bool is_lost) {
    const RunPlace left = sent.run;
    const std::uint8_t place = number(sent.to.box);
    const bool done = !is_lost && answer.outcome == wire::ArrayOutcome::done;
    if (sent.ends || (done && sent.closes)) left->open &= ~only(place);
    if (!sent.ends && done && paces_.answered(place, now_ - sent.since, now_))
        owner_.box_quick(sent.to.box);
    if (!sent.ends && !done) left->sufficient = false;
    if (--left->unanswered > 0) return;
    if (left->of && left->sufficient && left->of->done == left->done_before) {
        // First after all.
        Run& run = *std::exchange(left->of, nullptr);
        run.served = left->part;
        run.stuck = run.lacks_window = run.waits_it_out = false;
        look_in({});  // whether those who were asked instead are late by now
    }
    if (left->open != 0 && !left->released) return release_left(left);
    left_is_over(left);
}

void VolumeEngine::release_left(RunPlace left) {
    left->of = nullptr;
    left->released = true;
    // They are open until it is answered: nobody takes the window by the same key before.
    send_ends(left, left->open, wire::ArrayAction::release);
}

void VolumeEngine::left_is_over(RunPlace left) {
    left_.erase(left);
    windows_changed();
    start_what_may();
}

/// The run has what it wanted, or will not get it: whatever a box still does of it is for nobody.
void VolumeEngine::let_go_of_left(Run& run) {
    if (run.late == 0) return;
    for (auto next = left_.begin(); next != left_.end();) {
        const auto left = next++;  // it may end from inside
        if (left->of != &run) continue;
        left->of = nullptr;
        if (left->open != 0 && !left->released) release_left(left);
    }
}

/// The others have served what these did not, and soon: it was them, and not the host, or all.
void VolumeEngine::blame_the_late(Run& run) {
    if (!is_host_read(run)) return;
    if (hedges_spent_ > 0) --hedges_spent_;
    for (std::uint8_t place = 0; run.late != 0 && place < layout_->boxes(); ++place) {
        if (!contains(run.late, place)) continue;
        if (now_ - run.planned_at >= paces_.patience_with(place)) continue;
        if (!paces_.fell_behind(place, now_)) continue;
        owner_.box_slow(BoxIndex{place}, now_ - run.late_since, paces_.others(place));
    }
    let_go_of_left(run);
}

void VolumeEngine::note_answered(const Sent& sent, const wire::ArrayAnswer& answer, bool is_lost) {
    Run& run = *sent.run;
    if (sent.ends || sent.to.kind != PartyKind::box || run.stage != Stage::running) return;
    const std::uint8_t place = number(sent.to.box);
    const Duration took = now_ - sent.since;
    if (run.request) {
        auto& story = run.request->story;
        story.boxes &= ~only(place);
        if (!story.slowest || took > story.slowest_took) {
            story.slowest = place;
            story.slowest_in = story.now;
            story.slowest_took = took;
        }
    }
    if (is_lost || answer.outcome != wire::ArrayOutcome::done || !is_awaited(sent)) return;
    if (paces_.answered(place, took, now_)) owner_.box_quick(sent.to.box);
}

std::optional<Health> VolumeEngine::health_without(Mask boxes) const {
    Health health = health_;
    for (std::uint8_t place = 0; place < layout_->boxes(); ++place)
        if (contains(boxes, place) && !contains(health_.out_of_reach(), place) &&
            !health.lose({.box = BoxIndex{place},
                          .rebuilt_stripes = 0,
                          .ahead = 0,
                          .takes_orders = true,
                          .lacks = nullptr}))
            return std::nullopt;
    return health;
}

/// Around all that are slow, or those it has waited for in vain, or nobody: as far as the code can.
Result<Plan> VolumeEngine::plan_reading(const Run& run, Range range,
                                        const PlanOptions& options) const {
    for (const Mask around : {run.around, run.late}) {
        if (around == 0) continue;
        const auto health = health_without(around);
        if (!health) continue;
        if (auto plan = plan_read(*layout_, *health, range, options)) return plan;
    }
    return plan_read(*layout_, health_, range, options);
}

bool VolumeEngine::writes_have_their_windows(const Run& run) const {
    return !run.exclusive || free_windows_.size() > options_.windows / windows_for_reads;
}

/// One that is free, at the boxes too.
std::optional<std::uint32_t> VolumeEngine::take_window(const Plan& plan) {
    const Mask boxes = left_.empty() ? 0 : boxes_of(plan);
    const auto found = std::ranges::find_if(free_windows_, [&](std::uint32_t window) {
        return std::ranges::none_of(left_, [&](const Run& left) {
            return left.window == window && (left.open & boxes) != 0;
        });
    });
    if (found == free_windows_.end()) return std::nullopt;
    const std::uint32_t window = *found;
    free_windows_.erase(found);
    return window;
}

void VolumeEngine::give_window_back(std::uint32_t window) {
    free_windows_.push_back(window);
    windows_changed();
}

void VolumeEngine::windows_changed() {
    if (!std::exchange(lacks_windows_, false)) return;
    for (auto* runs : {&runs_, &upkeeps_})
        for (Run& run : *runs) run.lacks_window = false;
}

/// Never one by whose key a box that was left behind would still find the window open.
wire::TransactionNumber VolumeEngine::next_transaction(std::uint32_t window) {
    for (;;) {
        const auto next = number_of(++transactions_);
        const bool taken = std::ranges::any_of(left_, [&](const Run& left) {
            return left.window == window && window_key(left.transaction) == window_key(next);
        });
        if (!taken) return next;
    }
}

}  // namespace weft::raid
