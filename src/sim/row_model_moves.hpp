// SPDX-License-Identifier: Apache-2.0
// What the moves of boxes and of controllers have in common.
#pragma once

#include <algorithm>
#include <bit>

#include "sim/row_model_state.hpp"

namespace weft::sim::row {

constexpr bool has(std::uint8_t mask, unsigned i) {
    return (mask >> i & 1) != 0;
}
constexpr std::uint8_t bit(unsigned i) {
    return static_cast<std::uint8_t>(1u << i);
}
constexpr unsigned count(std::uint8_t mask) {
    return static_cast<unsigned>(std::popcount(mask));
}
constexpr bool is_soft(Record record) {
    return record == Record::committed_soft || record == Record::aborted_soft;
}
constexpr bool is_committed(Record record) {
    return record == Record::committed || record == Record::committed_soft;
}
constexpr bool is_aborted(Record record) {
    return record == Record::aborted || record == Record::aborted_soft;
}

class MoveMaker {
public:
    MoveMaker(const State& state, const RowModelOptions& options, Sink& sink)
        : now_(state), options_(options), sink_(sink) {}

protected:
    bool holds(RowRule rule) const { return options_.without != rule; }
    unsigned base_of(unsigned epoch) const { return (epoch - 1) * options_.tries; }
    unsigned epoch_of(unsigned transaction) const { return transaction / options_.tries + 1; }
    bool obeys(unsigned i, unsigned epoch) const {
        return now_.boxes[i].alive && now_.boxes[i].epoch == epoch;
    }
    Controller& self_of(State& state) const { return by_old_ ? state.old : state.current; }
    void add(const State& state, Step step, unsigned box_number = 0, unsigned transaction = 0) {
        State next = state;
        forget(next);
        sink_.add(next, {step, static_cast<std::uint8_t>(box_number),
                         static_cast<std::uint8_t>(transaction), by_old_});
    }

    void forget(State& state) const;
    void forget(State& state, unsigned transaction) const;
    bool has_aborted(unsigned i, unsigned t) const {
        const auto record = now_.boxes[i].records[t];
        return record == Record::aborted || now_.boxes[i].settled > t ||
               (record == Record::aborted_soft && !holds(RowRule::abort_lasts));
    }
    void commit(unsigned i, unsigned t, Step step) {
        State next = now_;
        auto& box = next.boxes[i];
        box.records[t] = Record::committed_soft;
        box.home = now_.transactions[t].version;
        box.notes_soft |= bit(now_.transactions[t].version);
        add(next, step, i, t);
    }
    void abort(unsigned i, unsigned t, Step step) {
        State next = now_;
        next.boxes[i].records[t] = Record::aborted_soft;
        add(next, step, i, t);
    }

    const State now_;
    const RowModelOptions& options_;
    Sink& sink_;
    bool by_old_ = false;
};

/// What boxes do by themselves and when they are told something.
void follow_boxes(const State& state, const RowModelOptions& options, Sink& sink);
/// Whether an answered write is not in what a read finds, and nothing can have overwritten it.
bool is_lost(const State& state, const RowModelOptions& options, unsigned version);

}  // namespace weft::sim::row
