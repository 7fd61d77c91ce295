// SPDX-License-Identifier: Apache-2.0
#include "raid/volume_engine.hpp"

#include <algorithm>
#include <bit>

#include "raid/superblock.hpp"

namespace weft::raid {
namespace {

/// Rows a range touches, as offsets on the boxes: what requests must not share.
bool share_rows(const Layout& layout, Range a, Range b) {
    const auto bands_a = bands_of(layout, a), bands_b = bands_of(layout, b);
    return std::ranges::any_of(bands_a, [&](const Band& x) {
        return std::ranges::any_of(bands_b, [&](const Band& y) {
            return x.stripe == y.stripe && x.offset < y.offset + y.length &&
                   y.offset < x.offset + x.length;
        });
    });
}

}  // namespace

VolumeEngine::VolumeEngine(VolumeEngineOwner& owner, const PlanOptions& options,
                           std::uint32_t windows)
    : owner_(owner), options_(options) {
    for (std::uint32_t window = windows; window-- > 0;) free_windows_.push_back(window);
}

Result<void> VolumeEngine::set_volume(wire::ClusterIdentity cluster, wire::Epoch epoch,
                                      const wire::ArrayVolume& volume) {
    WEFT_TRY(layout_, layout_of(volume));
    health_ = health_of(volume);
    cluster_ = cluster;
    epoch_ = epoch;
    volume_ = volume;
    for (Run& run : runs_) run.stuck = false;
    start_what_may();
    return {};
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
    run.range = flush ? Range{} : request.range;
    run.exclusive = request.operation == HostOperation::write;
    runs_.push_back(std::move(run));
    start_what_may();
}

/// Those that came earlier and touch the same rows go first, if one of the two writes.
bool VolumeEngine::may_start(RunPlace run) const {
    if (run->stage != Stage::waiting || run->stuck) return false;
    for (auto earlier = runs_.begin(); &*earlier != &*run; ++earlier) {
        if (!earlier->request || (!earlier->exclusive && !run->exclusive)) continue;
        if (earlier->range.length == 0 || run->range.length == 0) continue;
        if (share_rows(*layout_, earlier->range, run->range)) return false;
    }
    return true;
}

void VolumeEngine::start_what_may() {
    if (starting_) return;  // an answer from inside: the loop below begins again
    starting_ = true;
    for (auto run = runs_.begin(); run != runs_.end() && !free_windows_.empty();) {
        if (may_start(run)) {
            start(run);  // it may have ended already, and others with it
            run = runs_.begin();
        } else {
            ++run;
        }
    }
    starting_ = false;
}

void VolumeEngine::start(RunPlace run) {
    const HostRequest& request = *run->request;
    auto plan = request.operation == HostOperation::read
                    ? plan_read(*layout_, health_, request.range, options_)
                : request.operation == HostOperation::write
                    ? plan_write(*layout_, health_, request.range, options_)
                    : plan_flush(*layout_, health_);
    if (!plan) {
        answer_host(run, plan.error());
        runs_.erase(run);
        return;
    }
    if (request.durable && request.operation == HostOperation::write) flush_after_commit(*plan);
    run->plan = std::move(*plan);
    run->next = 0;
    run->failed = false;
    run->window = free_windows_.back();
    free_windows_.pop_back();
    run->transaction = wire::TransactionNumber{++transactions_};
    run->generation = volume_.generation;
    run->stage = Stage::running;
    send_turn(run);
}

void VolumeEngine::send_turn(RunPlace run) {
    const auto& orders = run->plan.orders;
    const std::size_t first = run->next;
    std::size_t end = first;
    while (end < orders.size() && orders[end].phase == orders[first].phase &&
           orders[end].round == orders[first].round)
        ++end;
    run->next = end;
    run->unanswered = end - first;
    const auto accesses = accesses_of(*run);
    for (std::size_t i = first; i < end; ++i) {
        const Order& order = run->plan.orders[i];
        const BoxIndex box = order.to.box;
        run->open |= only(number(box));
        const auto encoded = encode_order(order, envelope_of(*run, box), accesses);
        owner_.carry(box, remember(run, box, order.closes, parties_of(order)), encoded);
    }
}

void VolumeEngine::answered(CommandTicket ticket, const wire::ArrayAnswer& answer) {
    auto found = sent_.find(ticket);
    if (found == sent_.end()) return;  // of a box that was given up meanwhile
    const Sent sent = std::move(found->second);
    sent_.erase(found);
    Run& run = *sent.run;
    if (answer.outcome != wire::ArrayOutcome::done && run.stage == Stage::running)
        order_failed(sent, answer);
    else if (sent.closes)
        run.open &= ~only(number(sent.box));
    if (--run.unanswered == 0) turn_ended(sent.run);
}

void VolumeEngine::lost(BoxIndex box) {
    std::vector<CommandTicket> tickets;
    for (const auto& [ticket, sent] : sent_)
        if (sent.box == box) tickets.push_back(ticket);
    // A box that is gone has no window; ending the request need not wait for it.
    for (Run& run : runs_) run.open &= ~only(number(box));
    for (auto ticket : tickets) answered(ticket, {.outcome = wire::ArrayOutcome::disk_failed});
}

void VolumeEngine::order_failed(const Sent& sent, const wire::ArrayAnswer& answer) {
    sent.run->failed = true;
    // Planned for a volume that has changed since, or there was no room: it is simply tried again.
    if (sent.run->generation != volume_.generation || answer.outcome == wire::ArrayOutcome::no_room)
        return;
    sent.run->stuck = true;
    // The boxes know of a change that we are still to hear of: nobody has failed.
    if (answer.outcome == wire::ArrayOutcome::other_generation) return;
    BoxIndex suspect = sent.box;
    if (answer.outcome == wire::ArrayOutcome::passive_side_failed &&
        answer.party < sent.parties.size() && sent.parties[answer.party].kind == PartyKind::box)
        suspect = sent.parties[answer.party].box;
    owner_.box_failed(suspect, sent.box, answer.outcome);
}

void VolumeEngine::turn_ended(RunPlace run) {
    if (run->stage == Stage::running) {
        if (!run->failed && run->next < run->plan.orders.size()) return send_turn(run);
        run->stage = Stage::ending;
        if (!run->failed) answer_host(run, {});
        if (run->open != 0)
            return send_end(run,
                            run->failed ? wire::ArrayAction::abort : wire::ArrayAction::release);
    }
    free_windows_.push_back(run->window);
    if (run->failed) {
        run->stage = Stage::waiting;
        run->stuck = run->stuck && run->generation == volume_.generation;
        run->plan = {};
    } else {
        runs_.erase(run);
    }
    start_what_may();
}

void VolumeEngine::send_end(RunPlace run, wire::ArrayAction action) {
    const Mask open = std::exchange(run->open, 0);
    run->unanswered = static_cast<std::size_t>(std::popcount(open));
    for (std::uint8_t box = 0; box < layout_->boxes(); ++box) {
        if (!contains(open, box)) continue;
        const auto parameters = encoded(address_of(BoxIndex{box}));
        owner_.carry(BoxIndex{box}, remember(run, BoxIndex{box}, true, {}),
                     {{.action = action,
                       .transaction = run->transaction,
                       .parameter_length = static_cast<std::uint32_t>(parameters.size()),
                       .control = {}},
                      {parameters.begin(), parameters.end()}});
    }
}

void VolumeEngine::answer_host(RunPlace run, Result<void> outcome) {
    std::exchange(run->request, nullptr)->completed(outcome);
}

CommandTicket VolumeEngine::remember(RunPlace run, BoxIndex box, bool closes,
                                     std::vector<Party> parties) {
    const CommandTicket ticket{++tickets_};
    sent_.emplace(ticket, Sent{run, box, closes, std::move(parties)});
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
    return {.address = address_of(box),
            .transaction = run.transaction,
            .host = run.request->session,
            .host_command = run.request->command,
            .participants = run.plan.participants,
            .window = run.window,
            .window_tag = owner_.window_tag(box, run.window, run.transaction),
            .window_length = run.plan.box_windows[number(box)]};
}

std::vector<PartyAccess> VolumeEngine::accesses_of(const Run& run) {
    std::vector<PartyAccess> accesses{run.request->memory};
    accesses[0].party = the_host;
    for (std::uint8_t box = 0; box < layout_->boxes(); ++box)
        accesses.push_back({.party = party(BoxIndex{box}),
                            .tag = owner_.window_tag(BoxIndex{box}, run.window, run.transaction),
                            .base = 0,
                            .identity = volume_.members[box].box});
    return accesses;
}

}  // namespace weft::raid
