// SPDX-License-Identifier: Apache-2.0
// Requests until they are under way: who may begin, and with which plan.
#include "raid/volume_engine.hpp"

#include <algorithm>

#include "raid/superblock.hpp"

namespace weft::raid {
namespace {

/// Upkeep gives way to hosts that wait for the same rows so often, and no longer.
constexpr unsigned passed_over_most = 64;

std::uint32_t largest_window(const Plan& plan) {
    return std::max(plan.controller_window, *std::ranges::max_element(plan.box_windows));
}

}  // namespace

VolumeEngine::VolumeEngine(VolumeEngineOwner& owner, const VolumeEngineOptions& options)
    : owner_(owner), options_(options), own_(*this, options.own), paces_(options.hedge) {
    for (std::uint32_t window = 0; window < options.windows; ++window)
        free_windows_.push_back(window);
}

Result<void> VolumeEngine::set_volume(wire::ClusterIdentity cluster, wire::Epoch epoch,
                                      const wire::ArrayVolume& volume, const Health& health) {
    WEFT_TRY(layout_, layout_of(volume));
    health_ = health;
    cluster_ = cluster;
    epoch_ = epoch;
    volume_ = volume;
    journal_ = volume.consistency == wire::ArrayConsistency::journal;
    halted_ = false;
    given_up_.reset();
    for (std::uint8_t place = 0; place < volume.boxes; ++place)
        if (volume.members[place].state == wire::ArrayMemberState::absent) paces_.forget(place);
    try_again();
    return {};
}

void VolumeEngine::try_again() {
    if (halted_) return;
    std::vector<RunPlace> unheard;
    for (auto* runs : {&runs_, &upkeeps_})
        for (auto run = runs->begin(); run != runs->end(); ++run) {
            run->stuck = run->held = false;
            if (run->stage == Stage::unheard) unheard.push_back(run);
        }
    for (auto run : unheard) ask_again(run);
    start_what_may();
}

void VolumeEngine::go_on() {
    for (auto* runs : {&runs_, &upkeeps_})
        for (Run& run : *runs) run.held = false;
    start_what_may();
}

void VolumeEngine::give_up(Error why) {
    if (halted_) given_up_ = why;
    const bool outermost = !std::exchange(starting_, true);  // who hears it may submit more
    for (auto run = runs_.begin(); run != runs_.end();) {
        const auto next = std::next(run);
        // What is decided nothing turns back, and nobody waits for it.
        if (run->stage == Stage::waiting) {
            refuse(run, why);
        } else if (run->stage == Stage::unheard && !run->decided) {
            run->failed = true;
            run->refusal = why;
            run->stage = Stage::running;
            turn_ended(run);
        } else if (run->stuck && !run->decided)
            run->refusal = why;
        run = next;
    }
    if (!outermost) return;
    starting_ = false;
    start_what_may();
}

void VolumeEngine::submit(HostRequest& request) {
    if (!layout_) return request.completed(Error{Code::disconnected});
    if (runs_.size() >= limits::requests) return request.completed(Error{Code::exhausted});
    const bool flush = request.operation == HostOperation::flush;
    const std::uint64_t capacity = volume_.stripes * layout_->stripe_bytes();
    if (!flush && !within(request.range.offset, request.range.length, capacity))
        return request.completed(Error{Code::out_of_range});
    Run run;
    run.request = &request;
    run.host = request.session;
    run.host_identity = request.host_identity;
    run.host_command = request.command;
    if (!flush) {
        run.bands = bands_of(*layout_, request.range);
        run.length = request.range.length;
    }
    run.exclusive = request.operation == HostOperation::write;
    run.anew = request.repeated && !journal_;
    request.story = {.since = now_};
    runs_.push_back(std::move(run));
    start_what_may();
}

void VolumeEngine::submit(UpkeepRequest& request) {
    const bool flush = request.kind == UpkeepKind::flush;
    if (!layout_) return request.completed(Error{Code::disconnected});
    if (upkeeps_.size() >= limits::requests) return request.completed(Error{Code::exhausted});
    if (!flush && request.stripe >= volume_.stripes)
        return request.completed(Error{Code::out_of_range});
    Run run;
    run.upkeep = &request;
    run.is_upkeep = true;
    if (!flush) {
        run.length = layout_->chunk_bytes();
        run.bands.push_back({.stripe = request.stripe,
                             .offset = 0,
                             .length = layout_->chunk_bytes(),
                             .columns = 0,
                             .whole_stripe = true});
    }
    run.exclusive = !flush && request.kind != UpkeepKind::scrub;
    upkeeps_.push_back(std::move(run));
    start_what_may();
}

bool VolumeEngine::has_stuck() const {
    return std::ranges::any_of(runs_, &Run::stuck);
}

std::size_t VolumeEngine::writes_waiting() const {
    return static_cast<std::size_t>(std::ranges::count_if(runs_, [](const Run& run) {
        return run.exclusive && run.request && run.stage == Stage::waiting;
    }));
}

std::vector<Band> VolumeEngine::bands_under_way() const {
    std::vector<Band> bands;
    for (const Run& run : runs_)
        if (run.exclusive && run.begun)
            bands.insert(bands.end(), run.bands.begin(), run.bands.end());
    return bands;
}

/// Whether both touch a row, and one of them writes.
bool VolumeEngine::clash(const Run& a, const Run& b) {
    if (is_over(a) || is_over(b) || (!a.exclusive && !b.exclusive)) return false;
    return std::ranges::any_of(a.bands, [&](const Band& x) {
        return std::ranges::any_of(b.bands, [&](const Band& y) {
            return x.stripe == y.stripe && x.offset < y.offset + y.length &&
                   y.offset < x.offset + x.length;
        });
    });
}

bool VolumeEngine::is_due(const Run& run) {
    return run.passed_over > passed_over_most;
}

/// Those that came earlier and touch the same rows go first, if one of the two writes. Upkeep that
/// has begun keeps its rows until it has ended, also while it waits to heal what it came upon: of a
/// stripe that is half rebuilt nobody would note what a host writes to that half.
bool VolumeEngine::may_start(const Run& run) const {
    if (run.stage != Stage::waiting || run.stuck || run.held || run.lacks_window) return false;
    if (!writes_have_their_windows(run)) return false;
    for (const Run& upkeep : upkeeps_)
        if ((upkeep.begun || (is_due(upkeep) && !run.begun)) && clash(upkeep, run)) return false;
    for (const Run& earlier : runs_) {
        if (&earlier == &run) return true;
        if (clash(earlier, run)) return false;
    }
    return true;
}

bool VolumeEngine::upkeep_may_start(Run& run) const {
    if (run.stage != Stage::waiting || run.held || run.lacks_window) return false;
    if (!writes_have_their_windows(run)) return false;
    for (const Run& other : upkeeps_)
        if (&other != &run && other.begun && clash(other, run)) return false;
    for (const Run& host : runs_) {
        if (!clash(host, run)) continue;
        if (host.begun || !(run.begun || is_due(run))) return ++run.passed_over, false;
    }
    return true;
}

void VolumeEngine::start_what_may() {
    if (starting_) return;  // an answer from inside: the loop below begins again
    starting_ = true;
    while (!halted_ && !free_windows_.empty() &&
           (start_first_of(runs_) || start_first_of(upkeeps_)))
        ;  // it may have ended already, and others with it
    starting_ = false;
}

bool VolumeEngine::start_first_of(std::list<Run>& runs) {
    auto run = std::ranges::find_if(
        runs, [&](Run& each) { return each.is_upkeep ? upkeep_may_start(each) : may_start(each); });
    if (run == runs.end()) return false;
    start(run);
    return true;
}

bool VolumeEngine::goes_in_band(const Run& run) const {
    return options_.plan.path == DataPath::in_band || run.detours ||
           (run.request && run.request->in_band);
}

Result<Plan> VolumeEngine::plan_part(const Run& run, std::uint64_t part) const {
    PlanOptions options = options_.plan;
    options.journal = journal_;
    if (!run.upkeep) options.preparing = Preparing::beside_others;  // somebody waits for it
    if (goes_in_band(run)) options.path = DataPath::in_band;
    if (run.anew) options.partial = PartialWrite::reconstruct;
    if (run.upkeep) {
        const StripeRun stripe{.stripe = run.upkeep->stripe,
                               .offset = static_cast<std::uint32_t>(run.done),
                               .length = static_cast<std::uint32_t>(part)};
        switch (run.upkeep->kind) {
            case UpkeepKind::rebuild:
                return plan_rebuild(*layout_, health_, run.upkeep->targets, stripe, options);
            case UpkeepKind::scrub:
                if (is_inquest(run)) return plan_inquest(*layout_, health_, stripe, options);
                return plan_scrub(*layout_, health_, stripe, options);
            case UpkeepKind::repair:
                return plan_repair(*layout_, health_, stripe, options);
            case UpkeepKind::flush:
                return plan_flush_if_any();
        }
    }
    const HostRequest& request = *run.request;
    if (request.operation == HostOperation::flush) return plan_flush_if_any();
    const Range range{request.range.offset + run.done, part};
    if (request.operation == HostOperation::read) return plan_reading(run, range, options);
    auto plan = plan_write(*layout_, health_, range, options);
    if (plan && request.durable && !journal_) flush_after_commit(*plan);
    return plan;
}

/// What a journal's box has prepared outlives its power, and nothing is answered before all have:
/// every write is durable, and there is nothing left to flush. Upkeep's writes go the same way.
Result<Plan> VolumeEngine::plan_flush_if_any() const {
    return journal_ ? Plan{} : plan_flush(*layout_, health_);
}

Result<Plan> VolumeEngine::plan_next(Run& run) const {
    auto plan = plan_fitting(run);
    if (!plan || !must_detour(*plan, run)) return plan;
    run.detours = true;
    return plan_fitting(run);
}

/// The next part of what is left to do, as much as fits into windows.
Result<Plan> VolumeEngine::plan_fitting(Run& run) const {
    std::uint32_t window = options_.window_bytes;
    if (goes_in_band(run)) {
        if (own_.windows() < options_.windows) return Error{Code::unsupported};
        window = std::min(window, own_.window_limit());
    }
    run.part = run.length - run.done;
    if (run.is_upkeep)
        run.part =
            std::min<std::uint64_t>(run.part, is_inquest(run) ? slice_size : options_.upkeep_bytes);
    for (;;) {
        auto plan = plan_part(run, run.part);
        if (!plan || largest_window(*plan) <= window) return plan;
        if (run.part <= slice_size) return Error{Code::exhausted};
        run.part = (run.part / slice_size + 1) / 2 * slice_size;
    }
}

/// Of a write that was cut short amid its commit: what is left at odds, and whether that can be
/// undone by doing it again.
Result<void> VolumeEngine::make_up_for(Run& run) const {
    if (run.uncommitted == 0) return {};
    Mask away = ~Mask{0}, columns_lost_elsewhere = 0;
    for (const Band& band : run.bands) {
        away &= health_.absent_at(band.stripe);
        columns_lost_elsewhere |= health_.lost_columns(*layout_, band.stripe) &
                                  (only(layout_->data_columns()) - 1) & ~band.columns;
    }
    run.uncommitted &= ~away;
    if (run.uncommitted == 0) return {};
    run.anew = true;
    if (layout_->level() != Level::mirror && columns_lost_elsewhere != 0)
        return Error{Code::io_failed};
    return {};
}

/// Rebuilding leaves nothing at odds: who is rebuilt is not counted on before it is done.
bool VolumeEngine::is_held(Run& run) {
    const bool rebuilds = run.upkeep && run.upkeep->kind == UpkeepKind::rebuild;
    if (!run.exclusive || rebuilds || owner_.may_write(run.bands)) return false;
    run.stage = Stage::waiting;
    run.held = true;
    tell(run, WaitsFor::volume, now_);
    return true;
}

wire::TransactionNumber VolumeEngine::number_of(std::uint64_t count) const {
    constexpr unsigned count_bits = 40;
    return wire::TransactionNumber{static_cast<std::uint64_t>(epoch_) << count_bits | count};
}

wire::TransactionNumber VolumeEngine::last_transaction() const {
    return number_of(transactions_);
}

/// A box forgets what is below. So what a box that may still return has not ended must not be: the
/// others would no longer know how it ended.
wire::TransactionNumber VolumeEngine::settled() const {
    auto lowest = number_of(transactions_ + 1);
    for (const auto* runs : {&runs_, &upkeeps_})
        for (const Run& run : *runs)
            if (run.stage != Stage::waiting && run.plan.participants != 0)
                lowest = std::min(lowest, run.transaction);
    if (auto owed = owner_.owed_end()) lowest = std::min(lowest, *owed);
    return lowest;
}

std::optional<wire::TransactionNumber> VolumeEngine::prepared_by(
    const wire::BoxIdentity& box) const {
    auto found = prepared_.find(box);
    return found == prepared_.end() ? std::nullopt : std::optional(found->second);
}

bool VolumeEngine::is_decided(wire::TransactionNumber transaction) const {
    auto is_it = [&](const Run& run) { return run.decided && run.transaction == transaction; };
    return std::ranges::any_of(runs_, is_it) || std::ranges::any_of(upkeeps_, is_it);
}

bool VolumeEngine::is_under_way(wire::TransactionNumber transaction) const {
    auto is_it = [&](const Run& run) { return run.transaction == transaction; };
    return std::ranges::any_of(runs_, is_it) || std::ranges::any_of(upkeeps_, is_it);
}

/// Asked for again, by a host that did not hear the answer. Whatever is under way of it has ended
/// by now: it has the same rows.
bool VolumeEngine::executed_before(const Run& run) const {
    return journal_ && run.exclusive && run.request && !run.begun &&
           executed_.contains(run.host_identity, run.host_command);
}

void VolumeEngine::start(RunPlace run) {
    if (executed_before(*run)) {
        answer(*run, {});
        return erase(run);
    }
    if (run->served != 0) {
        run->done += std::exchange(run->served, 0);
        if (run->done == run->length) {
            answer(*run, {});
            return erase(run);
        }
    }
    if (is_held(*run)) return;
    run->around = is_host_read(*run) ? run->late | paces_.to_avoid(now_) : 0;
    run->heals = !run->ailing.empty();
    run->detours = false;
    if (auto good = make_up_for(*run); !run->heals && !good) return refuse(run, good.error());
    auto plan = run->heals ? plan_healing(*run) : plan_next(*run);
    if (!plan) return refuse(run, plan.error());
    const auto window = take_window(*plan);
    if (!window) {  // those that are free are still in use at a box it needs
        run->stage = Stage::waiting;
        run->lacks_window = lacks_windows_ = true;
        return;
    }
    const wire::TransactionNumber transaction = next_transaction(*window);
    if (plan->controller_window > 0) {
        Buffer local = run->request ? run->request->local : Buffer{};
        if (!local.empty()) local = local.subspan(run->done);
        const auto opened = own_.open(transaction, plan->controller_window, local);
        if (!opened) {
            give_window_back(*window);
            return refuse(run, opened.error());
        }
        run->own = *opened;
    }
    run->window = *window;
    run->transaction = transaction;
    run->plan = std::move(*plan);
    run->next = 0;
    run->begun = true;
    run->failed = run->committed = run->decided = run->sick = run->moves_over = false;
    run->waits_it_out = false;
    if (run->request) {
        ++run->request->story.attempts;
        run->request->story.relayed |= run->detours;
    }
    run->digests.clear();
    run->row.clear();
    run->generation = volume_.generation;
    run->planned_at = now_;
    run->stage = Stage::running;
    const bool rebuilds = run->upkeep && run->upkeep->kind == UpkeepKind::rebuild;
    if (run->exclusive && !rebuilds) owner_.writing(run->bands);
    if (run->plan.orders.empty()) {  // no box is left to ask
        run->unanswered = 0;
        return turn_ended(run);
    }
    send_turn(run);
}

void VolumeEngine::refuse(RunPlace run, Error why) {
    const bool rebuilds = run->upkeep && run->upkeep->kind == UpkeepKind::rebuild;
    if (run->uncommitted != 0 && !rebuilds) owner_.doubtful(run->bands);
    answer(*run, why);
    erase(run);
}

void VolumeEngine::erase(RunPlace run) {
    (run->is_upkeep ? upkeeps_ : runs_).erase(run);
}

}  // namespace weft::raid
