// SPDX-License-Identifier: Apache-2.0
// Requests under way: turns of orders, what is answered to them, and how they end.
#include <algorithm>
#include <bit>
#include <set>

#include "raid/volume_engine.hpp"

namespace weft::raid {
namespace {

/// Its answer counts in the sum of what was prepared: of who prepares, and of who only lends its
/// blocks to parity that is made anew.
bool is_counted(const Order& order) {
    return order.prepares ||
           std::ranges::find(order.pieces, Verb::digest, &Piece::verb) != order.pieces.end();
}

}  // namespace

void VolumeEngine::send_turn(RunPlace run) {
    const auto& orders = run->plan.orders;
    const std::size_t first = run->next;
    std::size_t end = first;
    while (end < orders.size() && orders[end].phase == orders[first].phase &&
           orders[end].round == orders[first].round)
        ++end;
    run->next = end;
    run->unanswered = end - first;
    tell(*run, waits_for(*run, orders[first].phase), now_);
    const auto accesses = accesses_of(*run);
    for (std::size_t i = first; i < end; ++i) send_order(run, i, accesses);
}

void VolumeEngine::send_order(RunPlace run, std::size_t index,
                              std::span<const PartyAccess> accesses) {
    const Order& order = run->plan.orders[index];
    // Of a journal's plan it has no pieces.
    const bool writes_home =
        order.pieces.empty() || std::ranges::any_of(order.pieces, [](const Piece& piece) {
            return piece.verb == Verb::commit;
        });
    run->committed = run->committed || writes_home;
    count(order);
    // Which may have ended the last of this turn, and the run with it.
    if (order.to.kind == PartyKind::controller) return send_own(run, order, accesses);
    const BoxIndex box = order.to.box;
    run->open |= only(number(box));
    if (run->request) run->request->story.boxes |= only(number(box));
    if (is_host_read(*run) && order.phase == Phase::read) {
        paces_.tried(number(box), now_);
        look_in(paces_.at_least());
    }
    const auto encoded = encode_order(order, envelope_of(*run, box), accesses);
    const auto ticket = remember({.run = run,
                                  .to = order.to,
                                  .box = volume_.members[number(box)].box,
                                  .closes = order.closes,
                                  .commits = writes_home,
                                  .parties = parties_of(order),
                                  .order = index,
                                  .since = now_,
                                  .ends = false});
    owner_.carry(box, ticket, encoded);
}

/// Those of hosts, one for each box, in a turn of their own: the box knows them again. What was
/// decided is repeated always.
bool VolumeEngine::can_repeat(const Sent& sent) const {
    if (!sent.commits) return false;
    if (sent.run->decided) return true;
    return sent.run->request && options_.plan.style == Style::vectored && !journal_ &&
           sent.run->plan.orders[sent.order].phase == Phase::commit;
}

/// A box that has become absent need not commit: who is left is of one mind.
bool VolumeEngine::counts(const Run& run, const Order& order) const {
    const auto place = number(order.to.box);
    if (run.decided)  // and it has not become absent and come back meanwhile: it is not let in
        return volume_.members[place].state != wire::ArrayMemberState::absent;
    return std::ranges::any_of(run.bands, [&](const Band& band) {
        return !contains(health_.absent_at(band.stripe), place);
    });
}

void VolumeEngine::ask_again(RunPlace run) {
    std::vector<std::size_t> orders;
    for (auto index : std::exchange(run->unheard, {})) {
        const Order& order = run->plan.orders[index];
        if (counts(*run, order)) {
            orders.push_back(index);
        } else if (run->decided) {  // what it has of it is dropped when it returns
            run->open &= ~only(number(order.to.box));
            owner_.owes_end(volume_.members[number(order.to.box)].box, run->transaction);
        }
    }
    run->stage = Stage::running;
    run->unanswered = orders.size();
    if (orders.empty()) return turn_ended(run);
    const auto accesses = accesses_of(*run);
    for (auto index : orders) {
        if (!run->decided) {
            send_order(run, index, accesses);
            continue;
        }
        // The box may have restarted: it has no window any more, but a journal. If it has one, that
        // is released at the end.
        const Party to = run->plan.orders[index].to;
        carry_end(run, to.box, wire::ArrayAction::resolve,
                  {.run = run,
                   .to = to,
                   .box = {},
                   .closes = false,
                   .commits = true,
                   .parties = {},
                   .order = index,
                   .since = now_,
                   .ends = false});
    }
}

void VolumeEngine::count_unheard(Run& run) {
    for (auto index : std::exchange(run.unheard, {}))
        run.uncommitted |= only(number(run.plan.orders[index].to.box));
}

void VolumeEngine::count(const Order& order) {
    const bool is_ours = order.to.kind == PartyKind::controller;
    if (!is_ours) ++counters_.orders;
    for (const Piece& piece : order.pieces)
        if (is_transfer(piece.verb) && (is_ours || piece.peer == the_controller))
            counters_.payload_octets += piece.length;
}

void VolumeEngine::send_own(RunPlace run, const Order& order,
                            std::span<const PartyAccess> accesses) {
    ReceivedOrder received{.order = order, .envelope = envelope_of(*run, {}), .parties = {}};
    for (const Party& named : parties_of(order))
        received.parties.push_back(*std::ranges::find(accesses, named, &PartyAccess::party));
    const auto ticket = remember({.run = run,
                                  .to = the_controller,
                                  .box = {},
                                  .closes = false,
                                  .commits = false,
                                  .parties = parties_of(order),
                                  .order = 0,
                                  .since = now_,
                                  .ends = false});
    own_.start(*run->own, ticket, std::move(received));
}

void VolumeEngine::own_order_ended(CommandTicket ticket, const OrderResult& result) {
    answered(ticket, {.outcome = result.outcome, .party = result.party, .piece = result.piece});
}

void VolumeEngine::answered(CommandTicket ticket, const wire::ArrayAnswer& answer) {
    take_answer(ticket, answer, false);
}

void VolumeEngine::take_answer(CommandTicket ticket, const wire::ArrayAnswer& answer,
                               bool is_lost) {
    auto found = sent_.find(ticket);
    if (found == sent_.end()) return;  // of a box that was given up meanwhile
    const Sent sent = std::move(found->second);
    sent_.erase(found);
    if (sent.run->left_behind) return left_answered(sent, answer, is_lost);
    Run& run = *sent.run;
    note_answered(sent, answer, is_lost);
    const bool refuses_decided =
        run.decided && sent.commits && answer.outcome != wire::ArrayOutcome::done;
    if ((is_lost || refuses_decided) && run.stage == Stage::running && can_repeat(sent)) {
        run.unheard.push_back(sent.order);
        // Unless another has its place by now, who is not to blame, or it has been counted out:
        // then nothing is to come that would be worth waiting for.
        const bool is_there = sent.box == volume_.members[number(sent.to.box)].box &&
                              counts(run, run.plan.orders[sent.order]);
        run.stuck = run.stuck || is_there;
        if (is_there && !is_lost && lacks_room(answer.outcome))
            owner_.no_room(sent.to.box, answer.outcome);
        else if (is_there)
            owner_.box_failed(sent.to.box, sent.to.box, answer);
    } else if (answer.outcome != wire::ArrayOutcome::done && run.stage == Stage::running)
        order_failed(sent, answer);
    else if (sent.closes) {
        run.open &= ~only(number(sent.to.box));
        // It has it still, then: when it is asked what it knows, that is no surprise.
        if (journal_ && sent.ends && answer.outcome != wire::ArrayOutcome::done)
            owner_.owes_end(sent.box, run.transaction);
    }
    if (answer.outcome == wire::ArrayOutcome::done) note_links(sent);
    const bool scrubs = run.upkeep && run.upkeep->kind == UpkeepKind::scrub && !run.heals;
    const bool counts = journal_ && sent.to.kind == PartyKind::box && run.stage == Stage::running &&
                        is_counted(run.plan.orders[sent.order]);
    if (counts && run.plan.orders[sent.order].prepares &&
        answer.outcome == wire::ArrayOutcome::done)
        prepared_[sent.box] = std::max(prepared_[sent.box], run.transaction);
    if (scrubs && run.stage == Stage::running && is_inquest(run))
        note_testimony(sent, answer);
    else if ((scrubs && run.stage == Stage::running) || counts)
        run.digests.push_back({.row = answer.row_digest, .diagonals = answer.diagonal_digests});
    if (--run.unanswered == 0) turn_ended(sent.run);
}

void VolumeEngine::lost(CommandTicket ticket) {
    take_answer(ticket, {.outcome = wire::ArrayOutcome::unknown_transaction}, true);
}

std::vector<wire::TransactionNumber> VolumeEngine::lost(const wire::BoxIdentity& box) {
    std::vector<CommandTicket> tickets;
    std::vector<wire::TransactionNumber> left_open;
    std::set<wire::TransactionNumber> repeated;  // what is staged there is still wanted
    for (const auto& [ticket, sent] : sent_) {
        if (sent.to.kind != PartyKind::box || sent.box != box) continue;
        tickets.push_back(ticket);
        if (can_repeat(sent))
            repeated.insert(sent.run->transaction);
        else
            left_open.push_back(sent.run->transaction);
    }
    Mask places = 0;
    for (std::uint8_t place = 0; place < volume_.boxes; ++place)
        if (volume_.members[place].box == box) places |= only(place);
    // Ending the request need not wait for a box that is gone: it is owed the end.
    for (auto* runs : {&runs_, &upkeeps_, &left_}) {
        for (Run& run : *runs) {
            const bool unheard = std::ranges::any_of(run.unheard, [&](std::size_t index) {
                return contains(places, number(run.plan.orders[index].to.box));
            });
            if (unheard || repeated.contains(run.transaction)) continue;
            if ((run.open & places) == 0) continue;
            left_open.push_back(run.transaction);
            run.open &= ~places;
            // What was staged there will be no more: nobody must commit without it.
            if (run.stage == Stage::running && !run.committed) run.failed = run.stuck = true;
        }
    }
    for (auto transaction : left_open) owner_.owes_end(box, transaction);
    for (auto ticket : tickets)
        take_answer(ticket, {.outcome = wire::ArrayOutcome::disk_failed}, true);
    return left_open;
}

void VolumeEngine::order_failed(const Sent& sent, const wire::ArrayAnswer& answer) {
    Run& run = *sent.run;
    run.failed = true;
    if (answer.outcome == wire::ArrayOutcome::corrupt) return note_corrupt(sent, answer);
    if (sent.commits) run.uncommitted |= only(number(sent.to.box));
    Party suspect = sent.to;
    if (is_about_peer(answer.outcome) && answer.party < sent.parties.size())
        suspect = sent.parties[answer.party];
    // A host that cannot be reached has nobody to be answered to, and nobody else has failed.
    if (suspect == the_host && goes_around_host(sent)) return;
    if (suspect == the_host) {
        run.refusal = Error{Code::disconnected};
        return;
    }
    if (suspect == the_controller && sent.to == the_controller) {
        run.refusal = Error{Code::io_failed};
        return;
    }
    if (suspect == the_controller) suspect = sent.to;  // who does not reach us
    // Planned for a volume that has changed since: it is simply tried again.
    if (run.generation != volume_.generation) return;
    run.stuck = true;
    if (lacks_room(answer.outcome)) {
        tell(run, WaitsFor::room, now_);
        return owner_.no_room(sent.to.box, answer.outcome);
    }
    if (answer.outcome == wire::ArrayOutcome::malformed) run.refusal = Error{Code::io_failed};
    const BoxIndex reporter = sent.to.kind == PartyKind::box ? sent.to.box : suspect.box;
    owner_.box_failed(suspect.box, reporter, answer);
}

void VolumeEngine::turn_ended(RunPlace run) {
    if (run->stage == Stage::running) {
        const bool more = run->next < run->plan.orders.size();
        // Made for boxes that may no longer be those in its places: it begins again, as long as
        // nothing has gone home.
        if (more && !run->committed && run->generation != volume_.generation) run->failed = true;
        // Who was late has brought it after all, and first: the others need not go on. But a block
        // that is being healed is: what was prepared for it must be ended as what it is.
        if (more && run->served != 0 && !run->heals) run->failed = run->moves_over = true;
        const bool decides =
            journal_ && more && !run->decided && run->plan.orders[run->next].phase == Phase::commit;
        if (!run->failed && decides && agrees(*run)) return decide(run);
        if (!run->failed && more) return send_turn(run);
        if (!run->failed && !run->unheard.empty()) {
            run->stage = Stage::unheard;
            if (!run->stuck) ask_again(run);  // what was to be waited for has come already
            return;
        }
        count_unheard(*run);
        run->stage = Stage::ending;
        if (!run->failed && run->heals) {
            healed(*run);
        } else if (!run->failed) {
            judge_digests(*run);
            blame_the_late(*run);
            run->done += run->part;
            run->served = 0;
            run->uncommitted = 0;
            run->decided = run->disagreed = false;
            run->anew = run->request && run->request->repeated && !journal_;
            if (run->done == run->length) answer(*run, {});
        }
        const bool undone = run->failed && !run->moves_over;
        if (run->open != 0)
            return send_ends(run, std::exchange(run->open, 0),
                             undone ? wire::ArrayAction::abort : wire::ArrayAction::release);
    }
    if (const auto own = std::exchange(run->own, std::nullopt)) own_.close(*own);
    give_window_back(run->window);
    if (run->failed)
        run_failed(run);
    else if (run->done < run->length)
        start(run);  // its next part, and its rows are its own until all is done
    else
        erase(run);
    start_what_may();
}

/// What was prepared is what the code says, as far as sums tell. If not, something was damaged on
/// its way, or computed wrongly: once more, with parity made from the data itself.
bool VolumeEngine::agrees(Run& run) {
    if (preparations_agree(*layout_, run.digests)) return true;
    owner_.audit_failed(run.bands);
    if (std::exchange(run.disagreed, true)) run.refusal = Error{Code::io_failed};
    run.failed = run.anew = true;
    return false;
}

/// All have prepared. From here on the write counts; the next controller would commit it too.
void VolumeEngine::decide(RunPlace run) {
    run->decided = run->committed = true;
    if (run->request && run->done + run->part == run->length) {
        executed_.note(run->host_identity, run->host_command);
        answer(*run, {});
    }
    send_turn(run);
}

void VolumeEngine::run_failed(RunPlace run) {
    if (run->upkeep && !run->refusal && !run->sick) run->refusal = Error{Code::io_failed};
    if (run->served != 0) run->refusal.reset();
    if (given_up_ && !run->refusal) run->refusal = given_up_;
    if (run->refusal) return refuse(run, *run->refusal);
    run->stage = Stage::waiting;
    run->stuck = run->stuck && run->generation == volume_.generation && run->served == 0;
    if (run->request && run->request->story.now != WaitsFor::room)
        tell(*run, run->stuck ? WaitsFor::volume : WaitsFor::turn, now_);
    run->plan = {};
}

/// Of one part of a stripe; a column that is missing leaves nothing to compare.
void VolumeEngine::judge_digests(Run& run) {
    if (!run.upkeep || run.upkeep->kind != UpkeepKind::scrub) return;
    if (is_inquest(run)) return judge_row(run);
    const bool enough = layout_->level() == Level::mirror ? run.digests.size() > 1
                                                          : run.digests.size() == layout_->boxes();
    if (!enough)
        run.upkeep->checked = false;
    else if (!digests_agree(*layout_, run.digests))
        run.inquest_end = run.done + std::exchange(run.part, 0);  // once more, and closely
}

void VolumeEngine::send_ends(RunPlace run, Mask boxes, wire::ArrayAction action) {
    run->unanswered += static_cast<std::size_t>(std::popcount(boxes));
    for (std::uint8_t box = 0; box < layout_->boxes(); ++box)
        if (contains(boxes, box))
            carry_end(run, BoxIndex{box}, action,
                      {.run = run,
                       .to = party(BoxIndex{box}),
                       .box = {},
                       .closes = true,
                       .commits = false,
                       .parties = {},
                       .order = 0,
                       .since = now_,
                       .ends = true});
}

void VolumeEngine::carry_end(RunPlace run, BoxIndex box, wire::ArrayAction action, Sent sent) {
    const auto parameters = encoded(address_of(box));
    ++counters_.orders;
    sent.box = volume_.members[number(box)].box;
    const auto ticket = remember(std::move(sent));
    owner_.carry(box, ticket,
                 {{.action = action,
                   .transaction = run->transaction,
                   .parameter_length = static_cast<std::uint32_t>(parameters.size()),
                   .control = {}},
                  {parameters.begin(), parameters.end()}});
}

void VolumeEngine::answer(Run& run, Result<void> outcome) {
    let_go_of_left(run);
    tell(run, WaitsFor::turn, now_);
    if (auto* request = std::exchange(run.request, nullptr)) {
        ++counters_.requests;
        request->completed(outcome);
    }
    if (auto* upkeep = std::exchange(run.upkeep, nullptr)) upkeep->completed(outcome);
}

CommandTicket VolumeEngine::remember(Sent sent) {
    const CommandTicket ticket{++tickets_};
    sent_.emplace(ticket, std::move(sent));
    return ticket;
}

wire::ArrayAddress VolumeEngine::address_of(BoxIndex box) const {
    return {.cluster = cluster_,
            .volume = volume_.volume,
            .box = volume_.members[number(box)].box,
            .generation = volume_.generation,
            .epoch = epoch_};
}

OrderEnvelope VolumeEngine::envelope_of(const Run& run, BoxIndex box) {
    // Of a request in parts the last speaks for all: that it was done says that all were.
    const bool last = run.done + run.part == run.length;
    return {.address = address_of(box),
            .transaction = run.transaction,
            .host = run.host,
            .host_command = last ? run.host_command : 0,
            .participants = run.plan.participants,
            .window = run.window,
            .window_tag = owner_.window_tag(box, run.window, run.transaction),
            .window_length = run.plan.box_windows[number(box)],
            .settled = settled(),
            .host_identity = last ? run.host_identity : wire::HostIdentity{},
            .lease_ms = 0,
            .to_prepare = run.plan.to_prepare[number(box)]};
}

std::vector<PartyAccess> VolumeEngine::accesses_of(const Run& run) {
    std::vector<PartyAccess> accesses;
    if (run.request) {
        accesses.push_back(run.request->memory);
        accesses[0].party = the_host;
        accesses[0].base += run.done;
    }
    if (run.own)
        accesses.push_back({.party = the_controller,
                            .tag = own_.tag(*run.own),
                            .base = 0,
                            .identity = options_.own.identity});
    for (std::uint8_t box = 0; box < layout_->boxes(); ++box)
        accesses.push_back({.party = party(BoxIndex{box}),
                            .tag = owner_.window_tag(BoxIndex{box}, run.window, run.transaction),
                            .base = 0,
                            .identity = volume_.members[box].box});
    return accesses;
}

}  // namespace weft::raid
