// SPDX-License-Identifier: Apache-2.0
// Boxes of the model: what they are told, perhaps long ago, and what happens to them.
#include "sim/row_model_moves.hpp"

namespace weft::sim::row {

namespace {

void flush(Box& box) {
    for (auto& record : box.records) {
        if (record == Record::committed_soft) record = Record::committed;
        if (record == Record::aborted_soft) record = Record::aborted;
    }
    box.notes |= box.notes_soft;
    box.notes_soft = 0;
    box.home_flushed = box.home;
}

class BoxMoves final : private MoveMaker {
public:
    using MoveMaker::MoveMaker;

    void all() {
        for (unsigned i = 0; i < options_.boxes; ++i) {
            messages(i);
            box(i);
        }
    }

private:
    // What boxes are told, perhaps long ago.
    void messages(unsigned i) {
        const auto& box = now_.boxes[i];
        if (!box.alive) return;
        for (unsigned t = 0; t < transactions_max; ++t) {
            const auto& known = now_.transactions[t];
            if (!has(known.participants, i) || box.epoch != epoch_of(t)) continue;
            if (!has(known.delivered, i)) prepares(i, t);
            if (known.decision == Decision::commit && box.records[t] == Record::prepared)
                commit(i, t, Step::commits_at);
            const bool undecided = box.records[t] == Record::none ||
                                   box.records[t] == Record::writing ||
                                   box.records[t] == Record::prepared;
            if (known.decision == Decision::abort && undecided && t >= box.settled)
                abort(i, t, Step::aborts_at);
        }
        for (const Controller* from : {&now_.current, &now_.old}) {
            const bool speaks = from->phase != Phase::gone && from->phase != Phase::gathering;
            if (!speaks || box.epoch != from->epoch || from->settled <= box.settled) continue;
            State next = now_;
            next.boxes[i].settled = from->settled;
            add(next, Step::hears_settled, i);
        }
    }
    void prepares(unsigned i, unsigned t) {
        const auto& box = now_.boxes[i];
        State next = now_;
        auto& known = next.transactions[t];
        known.delivered |= bit(i);
        const bool refused = box.records[t] != Record::none || t < box.settled;
        if (refused && holds(RowRule::late_prepare_is_refused))
            return add(next, Step::begins_record, i, t);
        auto& record = next.boxes[i].records[t];
        // Only where a list may miss it does it matter that writing it takes a while.
        if (!holds(RowRule::recall_sees_all)) {
            record = Record::writing;
            return add(next, Step::begins_record, i, t);
        }
        known.prepared |= bit(i);
        record = Record::prepared;
        add(next, Step::record_lasts, i, t);
    }
    // Boxes by themselves.
    void box(unsigned i) {
        const auto& box = now_.boxes[i];
        if (!box.alive) return restarts(i);
        if (now_.crashes < options_.box_crashes)
            for (bool keeps_marks : {false, true})
                for (bool keeps_home : {false, true}) crashes(i, keeps_marks, keeps_home);
        State flushed = now_;
        flush(flushed.boxes[i]);
        if (!(flushed == now_)) add(flushed, Step::flushes, i);
        State freed = now_;
        for (unsigned t = 0; t < transactions_max; ++t) {
            const auto record = box.records[t];
            if (record == Record::writing) {
                State next = now_;
                next.boxes[i].records[t] = Record::prepared;
                next.transactions[t].prepared |= bit(i);
                add(next, Step::record_lasts, i, t);
            }
            const bool settled = t < box.settled;
            const bool home = box.home == box.home_flushed;
            const bool decided = record == Record::committed || record == Record::aborted;
            if (decided && home && (settled || !holds(RowRule::keep_until_settled)))
                freed.boxes[i].records[t] = Record::none;
        }
        if (!(freed == now_)) add(freed, Step::frees, i);
    }
    void crashes(unsigned i, bool keeps_marks, bool keeps_home) {
        State next = now_;
        auto& box = next.boxes[i];
        ++next.crashes;
        for (auto& record : box.records) {
            if (record == Record::committed_soft)
                record = keeps_marks ? Record::committed : Record::prepared;
            if (record == Record::aborted_soft)
                record = keeps_marks ? Record::aborted : Record::prepared;
            if (record == Record::writing) record = keeps_marks ? Record::prepared : Record::none;
            if (record == Record::prepared && !holds(RowRule::prepare_lasts)) record = Record::none;
        }
        if (keeps_marks) box.notes |= box.notes_soft;
        box.notes_soft = 0;
        if (!keeps_marks) box.settled = 0;
        (keeps_home ? box.home_flushed : box.home) = keeps_home ? box.home : box.home_flushed;
        box.epoch = box.epoch_flushed;
        box.alive = 0;
        // What was on its way went with the connection, unless who sent it sends it again.
        for (unsigned t = 0; t < transactions_max; ++t)
            if (!is_being_prepared(t)) next.transactions[t].delivered |= bit(i);
        add(next, Step::box_crashes, i);
    }
    bool is_being_prepared(unsigned t) const {
        for (const Controller* from : {&now_.current, &now_.old})
            if (from->phase == Phase::preparing && from->transaction == t) return true;
        return false;
    }
    void restarts(unsigned i) {
        State next = now_;
        auto& box = next.boxes[i];
        box.alive = 1;
        for (unsigned t = 0; t < transactions_max; ++t)
            if (box.records[t] == Record::committed)
                box.home = box.home_flushed = now_.transactions[t].version;
        add(next, Step::box_restarts, i);
    }
};

}  // namespace

void follow_boxes(const State& state, const RowModelOptions& options, Sink& sink) {
    BoxMoves(state, options, sink).all();
}

/// What can never matter any more: two states that differ only in that are the same.
void MoveMaker::forget(State& state) const {
    for (unsigned t = 0; t < transactions_max; ++t) forget(state, t);
    auto& old = state.old;
    if (old.phase == Phase::gone) return;
    bool is_heard = old.lease != 0;
    for (unsigned i = 0; i < options_.boxes; ++i)
        is_heard = is_heard || state.boxes[i].epoch == old.epoch ||
                   state.boxes[i].epoch_flushed == old.epoch;
    const auto& known = state.transactions[old.transaction];
    if (old.phase == Phase::preparing && (known.participants & ~known.prepared) == 0) return;
    if (!is_heard && holds(RowRule::store_knows_epochs)) old = {};
}
void MoveMaker::forget(State& state, unsigned t) const {
    auto& known = state.transactions[t];
    if (known.version == 0) return;
    bool is_recorded = false;
    for (unsigned i = 0; i < options_.boxes; ++i) {
        is_recorded = is_recorded || state.boxes[i].records[t] != Record::none;
        // A box that obeys another never takes it.
        if (std::min(state.boxes[i].epoch, state.boxes[i].epoch_flushed) > epoch_of(t))
            known.delivered |= bit(i);
    }
    bool is_open = false;
    for (const Controller* from : {&state.current, &state.old})
        is_open = is_open || (from->phase != Phase::gone && from->phase != Phase::serving &&
                              from->transaction == t);
    if (!is_open) known.prepared = 0;
    if (!is_open && !is_recorded && (known.participants & ~known.delivered) == 0) known = {};
}

}  // namespace weft::sim::row
