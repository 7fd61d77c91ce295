// SPDX-License-Identifier: Apache-2.0
#include "raid/box.hpp"

#include <algorithm>

namespace weft::raid {

using wire::ArrayAction;
using wire::ArrayOutcome;

Box::Box(BoxOwner& owner, BlockDevice& disk, StagingMemory& staging, PeerTransfers& peers,
         const wire::ArraySuperblock& superblock, unsigned copy, JournaledDisk* journaled)
    : owner_(owner),
      disk_(disk),
      staging_(staging),
      peers_(peers),
      keeper_(disk, *this, superblock, copy),
      journaled_(journaled),
      windows_(staging.windows()),
      announced_(superblock.epoch) {}

Box::~Box() = default;

std::size_t Box::open_windows() const {
    return static_cast<std::size_t>(std::ranges::count(windows_, true, &Window::open));
}

bool Box::is_working() const {
    return std::ranges::any_of(windows_,
                               [](const Window& window) { return window.work != nullptr; });
}

bool Box::idle() const {
    return changes_.empty() && !is_working() && (journaled_ == nullptr || journaled_->idle());
}

ArrayOutcome Box::check(const wire::ArrayAddress& address) const {
    const auto& known = keeper_.current();
    if (address.cluster != known.cluster) return ArrayOutcome::wrong_cluster;
    if (address.box != known.box) return ArrayOutcome::wrong_box;
    if (address.volume != known.volume.volume) return ArrayOutcome::wrong_volume;
    if (address.epoch != announced_ || announced_ != known.epoch) return ArrayOutcome::other_epoch;
    if (address.generation != known.volume.generation) return ArrayOutcome::other_generation;
    return ArrayOutcome::done;
}

void Box::receive(CommandTicket ticket, const wire::ArrayCommandBlock& block,
                  ConstBuffer parameters) {
    if (block.parameter_length != parameters.size()) return say(ticket, ArrayOutcome::malformed);
    if (is_order(block.action)) return take_order(ticket, block, parameters);
    if (block.action == ArrayAction::new_epoch) return take_epoch(ticket, parameters);
    auto address = decode<wire::ArrayAddress>(parameters);
    if (!address) return say(ticket, ArrayOutcome::malformed);
    auto outcome = check(*address);
    // What was begun in an older generation must still be ended.
    const bool ends = block.action == ArrayAction::abort || block.action == ArrayAction::release ||
                      block.action == ArrayAction::resolve || block.action == ArrayAction::recall;
    const auto rest = parameters.subspan(wire_size<wire::ArrayAddress>());
    const bool settles =
        block.action == ArrayAction::abort && rest.size() == wire_size<wire::ArraySettled>();
    if (ends && !rest.empty() && !settles) return say(ticket, ArrayOutcome::malformed);
    if (ends && outcome == ArrayOutcome::other_generation) outcome = ArrayOutcome::done;
    if (outcome != ArrayOutcome::done) return say(ticket, outcome);
    if (settles && journaled_ != nullptr)
        journaled_->settle(decode<wire::ArraySettled>(rest)->settled);
    switch (block.action) {
        case ArrayAction::abort:
        case ArrayAction::release:
            return end_request(ticket, block.transaction, block.action == ArrayAction::abort);
        case ArrayAction::resolve:
            return commit_from_journal(ticket, block.transaction);
        case ArrayAction::recall:
            return take_recall(ticket);
        case ArrayAction::store_volume:
            return take_volume(ticket, rest);
        case ArrayAction::meet_boxes:
        case ArrayAction::admit_host:
        case ArrayAction::dismiss_host:
            return take_peers(ticket, block, parameters);
        default:
            return say(ticket, ArrayOutcome::malformed);
    }
}

void Box::take_order(CommandTicket ticket, const wire::ArrayCommandBlock& block,
                     ConstBuffer parameters) {
    auto order = parse_order(
        block, parameters,
        {.home_length = keeper_.current().data_length, .window_limit = staging_.window_limit()});
    if (!order) {
        OrderResult refusal{.outcome = ArrayOutcome::malformed,
                            .piece = static_cast<std::uint16_t>(order.error().where)};
        if (order.error().code == Code::out_of_range) refusal.outcome = ArrayOutcome::out_of_range;
        if (order.error().code == Code::exhausted) refusal.outcome = ArrayOutcome::no_room;
        return say(ticket, block.transaction, refusal);
    }
    auto outcome = check(order->envelope.address);
    if (outcome == ArrayOutcome::done || outcome == ArrayOutcome::other_generation)
        if (auto wrong = check_journaling(*order); wrong != ArrayOutcome::done) outcome = wrong;
    if (outcome == ArrayOutcome::done) outcome = check_lease(*order);
    // Once a commit has begun somewhere it must end everywhere, whoever joins or leaves meanwhile:
    // of data that went home and parity that did not, no later write could make sense.
    if (outcome == ArrayOutcome::other_generation && (is_staged(*order) || is_in_journal(*order)))
        outcome = ArrayOutcome::done;
    if (outcome == ArrayOutcome::done && take_repeated(ticket, *order)) return;
    if (outcome == ArrayOutcome::done && !is_staged(*order) && is_in_journal(*order))
        return commit_from_journal(ticket, block.transaction);
    if (outcome == ArrayOutcome::done) outcome = keep_room(*order);
    if (outcome == ArrayOutcome::done) outcome = place(*order);
    if (outcome != ArrayOutcome::done) {
        if (journaled_ != nullptr && !is_open(block.transaction))
            journaled_->give_back_room(block.transaction);
        return say(ticket, block.transaction, {.outcome = outcome});
    }
    Window& window = windows_[order->envelope.window];
    window.waiting.push_back({ticket, std::move(*order)});
    run(window);
}

/// It commits what an open window has.
bool Box::is_staged(const ReceivedOrder& order) const {
    const auto& envelope = order.envelope;
    if (order.order.phase != Phase::commit || envelope.window >= windows_.size()) return false;
    const Window& window = windows_[envelope.window];
    return window.open && !window.ending && window.transaction == envelope.transaction;
}

/// A commit whose answer was lost with a connection comes again: it is done once, and answered as
/// often as it is asked for.
bool Box::take_repeated(CommandTicket ticket, const ReceivedOrder& order) {
    const auto& envelope = order.envelope;
    const bool commits = order.order.phase == Phase::commit && envelope.window_length != 0;
    if (!commits || envelope.window >= windows_.size()) return false;
    Window& window = windows_[envelope.window];
    if (!window.open && window.committed == envelope.transaction) {
        say(ticket, envelope.transaction, {});
        return true;
    }
    if (!is_staged(order)) return false;
    const bool at_work = window.work && window.work->received().order == order.order;
    const bool waits = std::ranges::any_of(
        window.waiting, [&](const Waiting& each) { return each.order.order == order.order; });
    if (at_work || waits) window.repeats.push_back(ticket);
    return at_work || waits;
}

/// Finds the order's window, or opens it with the first order of a request.
ArrayOutcome Box::place(const ReceivedOrder& order) {
    const auto& envelope = order.envelope;
    if (envelope.window >= windows_.size()) return ArrayOutcome::out_of_range;
    Window& window = windows_[envelope.window];
    if (window.open) {
        if (window.transaction != envelope.transaction || window.ending)
            return ArrayOutcome::unknown_transaction;
        if (envelope.window_length > window.memory.size()) return ArrayOutcome::malformed;
        return window.waiting.size() < limits::orders_per_window ? ArrayOutcome::done
                                                                 : ArrayOutcome::no_room;
    }
    // What was never staged here cannot be committed: it was lost with a restart, or aborted.
    if (order.order.phase == Phase::commit && envelope.window_length != 0)
        return ArrayOutcome::unknown_transaction;
    Buffer memory{};
    if (envelope.window_length != 0) {
        auto opened = staging_.open(envelope.window, envelope.window_tag, envelope.window_length);
        if (!opened)
            return opened.error().code == Code::malformed ? ArrayOutcome::malformed
                                                          : ArrayOutcome::no_room;
        memory = *opened;
    }
    window.open = true;
    window.transaction = envelope.transaction;
    window.memory = memory;
    return ArrayOutcome::done;
}

void Box::run(Window& window) {
    if (window.work || window.waiting.empty()) return;
    Waiting next = std::move(window.waiting.front());
    window.waiting.pop_front();
    window.ticket = next.ticket;
    const std::uint32_t index = next.order.envelope.window;
    OrderWorkOwner& owner = *this;
    BlockDevice& home = journaled_ == nullptr ? disk_ : journaled_->home();
    const std::uint64_t data_offset = journaled_ == nullptr ? keeper_.current().data_offset : 0;
    window.work = std::make_unique<OrderWork>(owner, std::move(next.order),
                                              OrderWork::Place{.disk = home,
                                                               .data_offset = data_offset,
                                                               .peers = peers_,
                                                               .window = window.memory,
                                                               .landing = staging_.landing(index)});
    window.work->start();
}

void Box::order_ended(OrderWork& work, const OrderResult& result) {
    Window& window = windows_[work.received().envelope.window];
    if (result.outcome == ArrayOutcome::done && journals(window, result)) return;
    order_answered(window, result);
}

void Box::order_answered(Window& window, const OrderResult& result) {
    const OrderWork& work = *window.work;
    const auto transaction = work.received().envelope.transaction;
    // What failed stays as it is: the controller will abort it, once it knows what to do instead.
    const bool commits = work.received().order.phase == Phase::commit;
    if (work.received().order.closes && result.outcome == ArrayOutcome::done) window.ending = true;
    if (commits && window.ending && result.outcome == ArrayOutcome::done)
        window.committed = transaction;
    const auto repeats = commits ? std::exchange(window.repeats, {}) : std::vector<CommandTicket>{};
    window.work.reset();  // the work is no more
    const CommandTicket ticket = window.ticket;
    auto say_all = [&] {
        say(ticket, transaction, result);
        for (auto repeated : repeats) say(repeated, transaction, result);
    };
    if (window.ending && window.end_tickets.empty() && window.aborts.empty()) {
        end(window);  // first: who hears the answer may use the window again
        say_all();
    } else {
        say_all();
        if (window.ending)
            end(window);
        else
            run(window);
    }
    begin_change();  // which may have waited for this
    answer_recalls();
}

bool Box::is_open(wire::TransactionNumber transaction) const {
    return std::ranges::any_of(windows_, [&](const Window& window) {
        return window.open && window.transaction == transaction;
    });
}

/// Abort and release are one, but for the journal: what is staged is forgotten, and no peer reaches
/// it any more. It is answered when nothing of the request is under way, also to who asks twice.
void Box::end_request(CommandTicket ticket, wire::TransactionNumber transaction, bool aborts) {
    const bool lasts = aborts && journaled_ != nullptr;
    for (Window& window : windows_) {
        if (!window.open || window.transaction != transaction) continue;
        (lasts ? window.aborts : window.end_tickets).push_back(ticket);
        return begin_to_end(window);
    }
    if (lasts) return abort_in_journal({ticket}, transaction);
    say(ticket, transaction, {});  // ended before, or never begun here: it is as was wished
}

void Box::begin_to_end(Window& window) {
    window.ending = true;
    if (window.work)
        window.work->stop();
    else
        end(window);
}

void Box::end(Window& window) {
    const auto transaction = window.transaction;
    for (const auto& waiting : std::exchange(window.waiting, {}))
        say(waiting.ticket, transaction, {.outcome = ArrayOutcome::unknown_transaction});
    for (auto repeated : std::exchange(window.repeats, {}))
        say(repeated, transaction, {.outcome = ArrayOutcome::unknown_transaction});
    if (!window.memory.empty())
        staging_.close(static_cast<std::uint32_t>(&window - windows_.data()));
    const auto tickets = std::exchange(window.end_tickets, {});
    auto aborts = std::exchange(window.aborts, {});
    window.open = window.ending = false;
    window.memory = {};
    window.prepared.clear();
    if (journaled_ != nullptr && aborts.empty()) journaled_->give_back_room(transaction);
    for (auto ticket : tickets) say(ticket, transaction, {});
    if (!aborts.empty()) abort_in_journal(std::move(aborts), transaction);
}

void Box::say(CommandTicket ticket, wire::TransactionNumber transaction,
              const OrderResult& result) {
    owner_.answer(ticket, {.outcome = result.outcome,
                           .party = result.party,
                           .piece = result.piece,
                           .transaction = transaction,
                           .generation = keeper_.current().volume.generation,
                           .epoch = keeper_.current().epoch,
                           .row_digest = result.digest.row,
                           .diagonal_digests = result.digest.diagonals});
}

void Box::say(CommandTicket ticket, ArrayOutcome outcome) {
    say(ticket, {}, {.outcome = outcome});
}

}  // namespace weft::raid
