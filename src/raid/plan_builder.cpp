// SPDX-License-Identifier: Apache-2.0
#include "raid/plan_builder.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft::raid {
namespace {

std::tuple<Phase, std::uint8_t> turn_of(const Order& order) {
    return {order.phase, order.round};
}

}  // namespace

std::uint32_t PlanBuilder::slot(Party party, std::uint32_t length) {
    auto& window = party.kind == PartyKind::box ? plan_.box_windows[number(party.box)]
                                                : plan_.controller_window;
    return std::exchange(window, window + length);
}

void PlanBuilder::add(Turn turn, Party to, Label label, const Piece& piece) {
    if (style_ == Style::vectored) label = {};
    Key key{turn.phase, turn.round, to, label.command, label.unit};
    auto [entry, is_new] = index_.try_emplace(key, plan_.orders.size());
    if (is_new) places_.push_back(label.place);
    if (is_new)
        plan_.orders.push_back({.to = to,
                                .phase = turn.phase,
                                .round = turn.round,
                                .command = label.command,
                                .prepares = false,
                                .closes = false,
                                .pieces = {}});
    plan_.orders[entry->second].pieces.push_back(piece);
    if (piece.verb == Verb::commit && to.kind == PartyKind::box)
        plan_.participants |= only(number(to.box));
}

/// From the end: a box's last order closes its window, unless a peer reaches into it then or later.
void PlanBuilder::mark_last() {
    Mask seen = 0, reached = 0;
    auto& orders = plan_.orders;
    for (auto last = orders.rbegin(); last != orders.rend();) {
        auto first = std::find_if(last, orders.rend(), [&](const Order& order) {
            return turn_of(order) != turn_of(*last);
        });
        for (auto order = last; order != first; ++order)
            for (const Piece& piece : order->pieces)
                if (is_transfer(piece.verb) && piece.peer.kind == PartyKind::box)
                    reached |= only(number(piece.peer.box));
        for (; last != first; ++last) {
            if (last->to.kind != PartyKind::box) continue;
            const Mask box = only(number(last->to.box));
            last->closes = ((seen | reached) & box) == 0;
            seen |= box;
        }
    }
}

/// From the end, too: the last order a box gets before its commit.
Result<void> PlanBuilder::mark_prepares() {
    Mask waiting = 0;  // boxes with a commit order whose last order before it is yet to be met
    for (auto order = plan_.orders.rbegin(); order != plan_.orders.rend(); ++order) {
        if (order->pieces.size() > limits::pieces_per_order) return Error{Code::malformed};
        if (order->to.kind != PartyKind::box) continue;
        const Mask box = only(number(order->to.box));
        if (order->phase == Phase::commit) {
            waiting |= box;
        } else if ((waiting & box) != 0) {
            order->prepares = true;
            waiting &= ~box;
        }
    }
    return {};
}

/// With a journal what a box shall write is said when it prepares, so that the commit need only say
/// "now": to a box that has restarted since, or by another controller, it can say no more.
void PlanBuilder::prepare_what_commits() {
    std::list<Order> added;
    for (Order& commit : plan_.orders) {
        if (commit.phase != Phase::commit) continue;
        auto last = std::ranges::find_if(plan_.orders, [&](const Order& order) {
            return order.prepares && order.to == commit.to;
        });
        Order& prepare = order_to_prepare(*last, added);
        for (Piece piece : std::exchange(commit.pieces, {})) {
            piece.verb = Verb::prepare;
            plan_.to_prepare[number(commit.to.box)] += piece.length;
            prepare.pieces.push_back(piece);
        }
    }
    for (Order& order : added) plan_.orders.push_back(std::move(order));
    std::ranges::stable_sort(plan_.orders, {}, turn_of);
}

/// The box's last before its commit; or a new one, in the next turn in which others still work.
Order& PlanBuilder::order_to_prepare(Order& last, std::list<Order>& added) {
    const auto later = std::ranges::find_if(plan_.orders, [&](const Order& order) {
        return order.phase != Phase::commit && turn_of(order) > turn_of(last);
    });
    if (preparing_ != Preparing::beside_others || later == plan_.orders.end()) return last;
    last.prepares = false;
    added.push_back({.to = last.to,
                     .phase = later->phase,
                     .round = later->round,
                     .command = last.command,
                     .prepares = true,
                     .closes = false,
                     .pieces = {}});
    return added.back();
}

Result<Plan> PlanBuilder::finish() {
    std::vector<std::size_t> sorted(plan_.orders.size());
    std::iota(sorted.begin(), sorted.end(), std::size_t{0});
    std::ranges::stable_sort(sorted, {}, [&](std::size_t i) {
        const Order& order = plan_.orders[i];
        return std::tuple(order.phase, order.round, places_[i]);
    });
    std::vector<Order> orders;
    for (auto i : sorted) orders.push_back(std::move(plan_.orders[i]));
    plan_.orders = std::move(orders);
    mark_last();
    if (auto good = mark_prepares(); !good) return good.error();
    if (journal_) {
        prepare_what_commits();
        if (auto good = mark_prepares(); !good) return good.error();
    }
    index_.clear();
    return std::move(plan_);
}

}  // namespace weft::raid
