// SPDX-License-Identifier: Apache-2.0
#include "raid/volume_engine.hpp"

#include <algorithm>

#include "raid/superblock.hpp"

namespace weft::raid {
namespace {

using wire::ArrayOutcome;

/// Its answer counts in the sum of what was prepared: of who prepares, and of who only lends its
/// blocks to parity that is recomputed.
bool is_counted(const Order& order) {
    return order.prepares ||
           std::ranges::find(order.pieces, Verb::digest, &Piece::verb) != order.pieces.end();
}

void tell(Request& request, WaitsFor next, Instant now) {
    if (!request.host) return;
    request.host->story.turns_to(next, now);
    if (next < WaitsFor::read) request.host->story.boxes = 0;
}

WaitsFor waits_for(const Request& request, Phase phase) {
    if (phase == Phase::commit) return WaitsFor::commit;
    return request.use == RowOrder::Use::exclusive ? WaitsFor::prepare : WaitsFor::read;
}

}  // namespace

VolumeEngine::VolumeEngine(VolumeEngineOwner& owner, const VolumeEngineOptions& options)
    : owner_(owner),
      options_(options),
      own_(*this, options.own),
      planner_(AttemptMaker::planner_options(options, own_), view_, links_),
      queue_({.windows = options.windows,
              .upkeep_percent = options.upkeep_percent,
              .host_requests = options.host_requests,
              .patience = options.request_patience}),
      windows_(options.windows),
      dispatch_(owner, view_, own_, options.own.identity, book_, ledger_, counters_),
      superseded_(*this, book_, windows_, own_),
      hedged_(options.hedge, options.windows, owner, planner_, superseded_, book_, counters_),
      corrupt_(owner, view_, planner_, counters_),
      maker_(options, view_, planner_, corrupt_, hedged_, windows_, ledger_, own_),
      rules_(owner, view_, planner_, links_, corrupt_, counters_, options.own.identity) {}

// ------------------------------------------------------------------------------- what it is told

Result<void> VolumeEngine::set_volume(wire::ClusterIdentity cluster, wire::Epoch epoch,
                                      const wire::ArrayVolume& volume, const Health& health) {
    WEFT_TRY(view_.layout, layout_of(volume));
    view_.health = health;
    view_.cluster = cluster;
    view_.epoch = epoch;
    view_.volume = volume;
    ledger_.set_epoch(epoch);
    halted_ = false;
    given_up_.reset();
    const auto members = std::span(volume.members).first(volume.boxes);
    for (std::uint8_t place = 0; place < volume.boxes; ++place)
        if (volume.members[place].state == wire::ArrayMemberState::absent) hedged_.forget(place);
    for (const auto& writer : superseded_.writers())
        if (std::ranges::none_of(members, [&](const wire::ArrayMember& member) {
                return member.box == writer && member.state != wire::ArrayMemberState::absent;
            }))
            superseded_.cannot_write(writer);
    try_again();
    return {};
}

void VolumeEngine::try_again() {
    if (halted_) return;
    queue_.release(Hold::membership);
    queue_.release(Hold::permission);
    queue_.release(Hold::window);
    std::vector<Attempt*> attempts;
    for (auto& [arrival, request] : queue_.all())
        if (request.attempt) attempts.push_back(request.attempt.get());
    for (Attempt* attempt : attempts) attempt->try_again();
    start_what_may();
}

void VolumeEngine::go_on() {
    queue_.release(Hold::permission);
    start_what_may();
}

void VolumeEngine::give_up(Error why) {
    if (halted_) given_up_ = why;
    const bool outermost = !std::exchange(starting_, true);  // who hears it may submit more
    for (auto next = queue_.all().begin(); next != queue_.all().end();) {
        Request& request = (next++)->second;
        // What is decided nothing turns back, and nobody waits for it.
        if (request.attempt)
            request.attempt->give_up(why);
        else
            refuse(request, why);
    }
    if (!outermost) return;
    starting_ = false;
    start_what_may();
}

std::optional<Instant> VolumeEngine::deadline() const {
    const auto hedged = hedged_.deadline();
    const auto patience = queue_.patience_ends();
    if (!patience || (hedged && *hedged < *patience)) return hedged;
    return patience;
}

void VolumeEngine::tick(Instant now) {
    now_ = now;
    const bool outermost = !std::exchange(starting_, true);
    hedged_.tick(now);
    // What has failed again and again for as long as requests wait, and would only wait again.
    for (Request* request : queue_.overdue(now)) {
        if (request->attempt)
            request->attempt->give_up(Error{Code::io_failed});
        else
            refuse(*request, Error{Code::io_failed});
    }
    if (!outermost) return;
    starting_ = false;
    start_what_may();
}

void VolumeEngine::submit(HostRequest& request) {
    if (!view_.layout) return request.completed(Error{Code::disconnected});
    if (!queue_.has_room_for(request)) return request.completed(Error{Code::exhausted});
    const bool flush = request.operation == HostOperation::flush;
    const std::uint64_t capacity = view_.volume.stripes * view_.layout->stripe_bytes();
    if (!flush && !within(request.range.offset, request.range.length, capacity))
        return request.completed(Error{Code::out_of_range});
    request.story = {.since = now_};
    request.leaves_writers = false;
    queue_.add(request_of(request, view_));
    start_what_may();
}

void VolumeEngine::submit(UpkeepRequest& request) {
    const bool flush = request.kind == UpkeepKind::flush;
    if (!view_.layout) return request.completed(Error{Code::disconnected});
    if (!flush && request.stripe >= view_.volume.stripes)
        return request.completed(Error{Code::out_of_range});
    queue_.add(request_of(request, view_));
    start_what_may();
}

void VolumeEngine::answered(CommandTicket ticket, const wire::ArrayAnswer& answer) {
    end_command(ticket, answer);
}

void VolumeEngine::lost(CommandTicket ticket) {
    end_command(ticket, std::nullopt);
}

void VolumeEngine::own_order_ended(CommandTicket ticket, const OrderResult& result) {
    end_command(
        ticket,
        wire::ArrayAnswer{.outcome = result.outcome, .party = result.party, .piece = result.piece});
}

void VolumeEngine::end_command(CommandTicket ticket, const CommandAnswer& answer) {
    if (const auto command = book_.take(ticket))  // none: of a box that was given up meanwhile
        command->holder->command_ended(*command, answer);
}

std::vector<wire::TransactionNumber> VolumeEngine::lost(const wire::BoxIdentity& box) {
    const auto tickets = book_.of(box);
    std::vector<wire::TransactionNumber> left_open;
    std::vector<const Attempt*> repeated;  // what is staged there is still wanted
    for (auto ticket : tickets) {
        const SentCommand& command = book_.all().at(ticket);
        const Attempt* attempt = command.holder->as_attempt();
        if (!attempt) continue;
        if (attempt->repeats(command))
            repeated.push_back(attempt);
        else
            left_open.push_back(attempt->terms().transaction);
    }
    Mask places = 0;
    for (std::uint8_t place = 0; place < view_.volume.boxes; ++place)
        if (view_.volume.members[place].box == box) places |= only(place);
    // Ending the request need not wait for a box that is gone: its end is pending there.
    for (auto& [arrival, request] : queue_.all()) {
        Attempt* attempt = request.attempt.get();
        if (!attempt) continue;
        const Mask before = attempt->open();
        attempt->box_lost(places, std::ranges::count(repeated, attempt) > 0);
        if (attempt->open() != before) left_open.push_back(attempt->terms().transaction);
    }
    for (auto transaction : left_open) owner_.end_is_pending(box, transaction);
    for (auto transaction : superseded_.box_lost(places, box)) left_open.push_back(transaction);
    for (auto ticket : tickets) end_command(ticket, std::nullopt);
    return left_open;
}

// ------------------------------------------------------------------- from submission to an attempt

void VolumeEngine::start_what_may() {
    if (std::exchange(starting_, true)) return;  // an answer from inside: the loop goes on
    while (!halted_) {
        Request* next = queue_.next();
        if (!next) break;
        start(*next);  // it may have ended already, and others with it
    }
    starting_ = false;
}

void VolumeEngine::start(Request& request) {
    if (is_over_already(request) || waits_for_permission(request)) return;
    AttemptOwner& owner = *this;
    auto attempt = maker_.make(owner, request, now_);
    if (!attempt) return refuse(request, attempt.error());
    // The windows that are free are still in use at a box it needs.
    if (!*attempt) {
        queue_.hold(request, Hold::window);
        // Those of the controller may become free by time alone.
        if (maker_.lacked_own_window()) owner_.in_trouble({});
        return;
    }
    request.attempt = std::move(*attempt);
    queue_.started(request);
    if (request.attempt->terms().plan.participants != 0)
        ledger_.keep(request.attempt->terms().transaction);
    request.is_begun = true;
    request.waits_for_late = false;
    request.scrub.begin();
    if (request.host) {
        ++request.host->story.attempts;
        request.host->story.relayed |= !request.attempt->terms().detour.empty();
    }
    if (request.failing_since) ++counters_.attempts_again;
    if (request.use == RowOrder::Use::exclusive && !request.is(UpkeepKind::rebuild))
        owner_.writing(request.bands);
    request.attempt->begin();
}

/// A box that was late has brought it, or it was executed before: for a host that did not hear the
/// answer and asks again. Whatever was under way of that has ended by now: it has the same rows.
bool VolumeEngine::is_over_already(Request& request) {
    const bool executed = view_.has_journal() && request.host &&
                          request.kind == Admission::Kind::write && !request.is_begun &&
                          executed_.contains(request.host_identity, request.host_command);
    request.done += std::exchange(request.brought, 0);
    const bool is_done = request.is_host_read() && request.done == request.length;
    if (!executed && !is_done) return false;
    answer(request, {});
    queue_.erase(request);
    return true;
}

/// Rebuilding leaves nothing at odds: a box that is rebuilt is not counted on before it is done.
bool VolumeEngine::waits_for_permission(Request& request) {
    if (request.use == RowOrder::Use::shared || request.is(UpkeepKind::rebuild) ||
        owner_.may_write(request.bands))
        return false;
    tell(request, WaitsFor::volume, now_);
    queue_.hold(request, Hold::permission);
    return true;
}

void VolumeEngine::refuse(Request& request, Error why) {
    if (request.uncommitted != 0 && !request.is(UpkeepKind::rebuild))
        owner_.doubtful(request.bands);
    answer(request, why);
    queue_.erase(request);
}

/// What is decided keeps its rows until all have committed.
void VolumeEngine::answer(Request& request, Result<void> outcome) {
    superseded_.let_go(request.arrival);
    tell(request, WaitsFor::turn, now_);
    if (!request.attempt || !request.attempt->is_decided()) queue_.give_rows_back(request);
    if (auto* host = std::exchange(request.host, nullptr)) {
        queue_.uncount(request);
        ++counters_.requests;
        host->leaves_writers = superseded_.leaves_writers(request.arrival);
        host->completed(outcome);
    }
    if (auto* upkeep = std::exchange(request.upkeep, nullptr)) upkeep->completed(outcome);
}

// ------------------------------------------------------------------------- what attempts ask for

void VolumeEngine::send_order(Attempt& attempt, std::size_t index, SentCommand::Purpose purpose) {
    Request& request = attempt.request();
    const Order& order = attempt.terms().plan.orders[index];
    tell(request, waits_for(request, order.phase), now_);
    if (order.to.kind == PartyKind::box) {
        if (request.host) request.host->story.boxes |= only(number(order.to.box));
        hedged_.order_sent(attempt, order, now_);
    }
    dispatch_.send(attempt, index, purpose, now_);
}

void VolumeEngine::send_end(Attempt& attempt, BoxIndex box, wire::ArrayAction action,
                            SentCommand command) {
    dispatch_.send_end(attempt, attempt.terms().transaction, box, action, command, now_);
}

void VolumeEngine::command_answered(Attempt& attempt, const SentCommand& command,
                                    const CommandAnswer& answer) {
    if (command.purpose == SentCommand::Purpose::end || !command.goes_to_box() ||
        !attempt.is_working())
        return;
    Request& request = attempt.request();
    if (request.host) request.host->story.note_answer(command.place(), now_ - command.since);
    hedged_.answered(attempt, command, answer, now_);
    if (!answer) return;
    const Order& order = attempt.order(command);
    if (is_done(answer)) rules_.order_done(attempt, command);
    const bool counts = view_.has_journal() && is_counted(order);
    if (counts && order.prepares && is_done(answer))
        prepared_[command.box] = std::max(prepared_[command.box], attempt.terms().transaction);
    const bool scrubs =
        request.is(UpkeepKind::scrub) && attempt.terms().purpose == Attempt::Purpose::serve;
    if (scrubs && request.scrub.is_detailed(request.done))
        corrupt_.heard(request, attempt, command, *answer);
    else if (scrubs || counts)
        attempt.keep_digest(*answer);
}

void VolumeEngine::order_failed(Attempt& attempt, const SentCommand& command,
                                const CommandAnswer& answer) {
    rules_.order_failed(attempt, command, answer);
    if (answer && lacks_room(answer->outcome)) tell(attempt.request(), WaitsFor::room, now_);
}

void VolumeEngine::turn_ended(Attempt& attempt) {
    // Made for boxes that may no longer be those in its places, and nothing has been written yet.
    if (attempt.stage() == AttemptStage::staging &&
        attempt.terms().generation != view_.volume.generation)
        attempt.fail(Then::plan_again);
    // A box that was late has brought it after all, and first: the others need not go on. But what
    // was prepared for a block that is being restored must be ended as what it is.
    if (attempt.request().brought != 0 && attempt.terms().purpose == Attempt::Purpose::serve)
        attempt.stop_unneeded();
}

/// What was prepared is what the code says, as far as sums tell. If not, something was damaged on
/// its way, or computed wrongly: once more, with parity made from the data itself.
bool VolumeEngine::agrees(Attempt& attempt) {
    if (preparations_agree(*view_.layout, attempt.digests())) return true;
    Request& request = attempt.request();
    owner_.audit_failed(request.bands);
    request.recomputes_parity = true;
    if (std::exchange(request.has_disagreed, true))
        attempt.fail(Then::refuse, Error{Code::io_failed});
    else
        attempt.fail(Then::plan_again);
    return false;
}

/// All have prepared. From here on the write counts; the next controller would commit it too.
void VolumeEngine::decided(Attempt& attempt) {
    Request& request = attempt.request();
    rules_.detour_done(attempt);
    if (!request.host || attempt.terms().purpose == Attempt::Purpose::restore ||
        request.done + request.part != request.length)
        return;
    executed_.note(request.host_identity, request.host_command);
    answer(request, {});
}

void VolumeEngine::carried_out(Attempt& attempt) {
    Request& request = attempt.request();
    queue_.note_not_failing(request);
    request.has_disagreed = false;
    rules_.detour_done(attempt);
    if (attempt.terms().purpose == Attempt::Purpose::restore) return corrupt_.restored(request);
    if (request.is(UpkeepKind::scrub)) corrupt_.scrubbed(request, attempt);
    hedged_.served(request, attempt, now_);
    superseded_.let_go(request.arrival);
    request.done += request.part;
    request.brought = 0;
    request.uncommitted = 0;
    request.recomputes_parity = request.host && request.host->repeated && !view_.has_journal();
    if (request.done == request.length && !request.repairs.needed() && !attempt.is_decided())
        answer(request, {});
}

void VolumeEngine::over(Attempt& attempt) {
    Request& request = attempt.request();
    if (const auto own = attempt.take_own_window()) own_.close(*own);
    windows_.give_back(attempt.terms().window);
    ledger_.ended(attempt.terms().transaction);
    request.uncommitted |= attempt.uncommitted();
    auto failure = attempt.failure();
    if (failure && failure->then == Then::wait &&
        attempt.terms().generation != view_.volume.generation)
        failure->then = Then::plan_again;
    const auto ended = std::move(request.attempt);
    queue_.attempt_ended(request);
    queue_.release(Hold::window);
    const bool is_left = request.done < request.length || request.repairs.needed();
    if (failure) {
        attempt_failed(request, *failure);
    } else if (request.is_answered() || !is_left) {  // else its next part: its rows are its own
        answer(request, {});
        queue_.erase(request);
    } else if (given_up_) {
        refuse(request, *given_up_);
    }
    start_what_may();
}

void VolumeEngine::attempt_failed(Request& request, AttemptFailure failure) {
    if (request.upkeep && failure.then != Then::refuse && failure.then != Then::repair)
        failure = {Then::refuse, Error{Code::io_failed}};
    if (request.brought != 0) failure = {};
    if (given_up_ && failure.then != Then::refuse) failure = {Then::refuse, *given_up_};
    if (failure.then == Then::refuse) return refuse(request, failure.error);
    if (failure.then == Then::wait) {
        queue_.hold(request, Hold::membership);
        // A box that is full has not failed: its writes wait until there is room.
        if (request.host->story.now != WaitsFor::room) queue_.note_failing(request, now_);
    }
    if (request.host && request.host->story.now != WaitsFor::room)
        tell(request, request.hold == Hold::none ? WaitsFor::turn : WaitsFor::volume, now_);
}

// ------------------------------------------------------------------------------ superseded reads

void VolumeEngine::send_release(SupersededRead& read, wire::TransactionNumber transaction,
                                BoxIndex box) {
    dispatch_.send_end(read, transaction, box, wire::ArrayAction::release,
                       {.purpose = SentCommand::Purpose::end, .to = party(box)}, now_);
}

void VolumeEngine::late_box_answered(const SentCommand& command) {
    hedged_.late_box_answered(command, now_);
}

void VolumeEngine::brought(Request& request, std::uint64_t octets) {
    request.brought = octets;
    if (request.hold == Hold::membership || request.hold == Hold::window) queue_.release(request);
    request.waits_for_late = false;
    hedged_.look_now(now_);  // whether those that were asked instead are late by now
}

void VolumeEngine::windows_released() {
    if (queue_.release(Hold::window)) start_what_may();
}

// ----------------------------------------------------------------------------------------- what is

std::optional<wire::TransactionNumber> VolumeEngine::prepared_by(
    const wire::BoxIdentity& box) const {
    auto found = prepared_.find(box);
    return found == prepared_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace weft::raid
