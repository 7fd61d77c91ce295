// SPDX-License-Identifier: Apache-2.0
// What may happen next in the model of a row: controllers, the one in office and the one before.
#include "sim/row_model_moves.hpp"

namespace weft::sim::row {

namespace {

class ControllerMoves final : private MoveMaker {
public:
    using MoveMaker::MoveMaker;

    void all() {
        takes_office();
        for (bool by_old : {false, true}) {
            by_old_ = by_old;
            const Controller& self = by_old ? now_.old : now_.current;
            if (self.phase == Phase::gone) continue;
            if (!by_old) {
                gathers(self);
                resolves(self);
                upkeep(self);
            }
            counts_out(self);
            writes(self);
        }
        by_old_ = false;
        old_reads();
    }

private:
    // Controllers.
    void takes_office() {
        if (now_.store_epoch >= options_.controllers) return;
        State next = now_;
        // Who was in office does not know; dead ones are those that do nothing any more.
        if (options_.old_acts) next.old = next.current;
        next.current = {};
        next.current.phase = Phase::gathering;
        next.current.epoch = ++next.store_epoch;
        next.current.lease = 1;
        add(next, Step::controller_takes_office);
    }
    /// A box obeys from now on; what it was just writing is in its list, or never will be there.
    void fence(unsigned i, unsigned epoch) {
        State next = now_;
        auto& box = next.boxes[i];
        box.epoch = static_cast<std::uint8_t>(epoch);
        if (holds(RowRule::epoch_lasts)) box.epoch_flushed = box.epoch;
        add(next, Step::fences, i);
    }
    void gathers(const Controller& self) {
        if (self.phase != Phase::gathering) return;
        std::uint8_t there = 0, settled = 0;
        for (unsigned i = 0; i < options_.boxes; ++i) {
            if (!has(now_.store_members, i)) continue;
            if (now_.boxes[i].epoch == self.epoch) {
                there |= bit(i);
                settled = std::max(settled, now_.boxes[i].settled);
            } else if (now_.boxes[i].alive) {
                fence(i, self.epoch);
            }
        }
        const bool waits = now_.old.phase != Phase::gone && now_.old.lease != 0 &&
                           holds(RowRule::lease_is_waited_for);
        // One that lacks the row is no help to it.
        const auto whole = static_cast<std::uint8_t>(there & ~now_.store_dirty);
        if (waits || options_.boxes - count(whole) > options_.losses) return;
        State next = now_;
        next.store_members = next.current.members = there;
        next.current.phase = Phase::resolving;
        next.current.settled = settled;
        if (!holds(RowRule::settled_waits_for_outcomes))
            next.current.settled = static_cast<std::uint8_t>(base_of(self.epoch));
        add(next, Step::members_chosen, there);
    }
    bool is_in_doubt(unsigned transaction) const {
        for (unsigned i = 0; i < options_.boxes; ++i) {
            const auto record = now_.boxes[i].records[transaction];
            if (has(now_.current.members, i) && (record == Record::prepared || is_soft(record)))
                return true;
        }
        return false;
    }
    Decision decide(unsigned transaction) const {
        const auto& known = now_.transactions[transaction];
        const auto asked =
            holds(RowRule::survivors_decide)
                ? static_cast<std::uint8_t>(known.participants & now_.current.members)
                : known.participants;
        bool all = true;
        for (unsigned i = 0; i < options_.boxes; ++i) {
            if (!has(asked, i)) continue;
            const bool member = has(now_.current.members, i);
            const auto record = member ? now_.boxes[i].records[transaction] : Record::none;
            if (is_committed(record)) return Decision::commit;
            if (is_aborted(record)) return Decision::abort;
            all = all && record == Record::prepared;
        }
        return all ? Decision::commit : Decision::abort;
    }
    void resolves(const Controller& self) {
        if (self.phase != Phase::resolving) return;
        if (self.decision != Decision::none) return carries_out(self);
        for (unsigned t = 0; t < transactions_max; ++t) {
            if (!is_in_doubt(t)) continue;
            State next = now_;
            next.current.transaction = static_cast<std::uint8_t>(t);
            next.current.decision = decide(t);
            const bool commits = next.current.decision == Decision::commit;
            return add(next, commits ? Step::decides_commit : Step::decides_abort, 0, t);
        }
        serves(self);
    }
    void carries_out(const Controller& self) {
        const unsigned t = self.transaction;
        const auto& known = now_.transactions[t];
        const bool commits = self.decision == Decision::commit;
        bool ended = true;
        for (unsigned i = 0; i < options_.boxes; ++i) {
            if (!has(known.participants, i) || !has(self.members, i)) continue;
            const auto record = now_.boxes[i].records[t];
            const bool is_done =
                commits ? record == Record::committed || record == Record::none : has_aborted(i, t);
            ended = ended && is_done;
            if (is_done || !obeys(i, self.epoch)) continue;
            if (commits && record == Record::prepared) commit(i, t, Step::resolves);
            if (!commits && !is_aborted(record) && !is_committed(record))
                abort(i, t, Step::resolves);
        }
        if (!ended) return;
        State next = now_;
        next.current.decision = Decision::none;
        add(next, commits ? Step::write_ended : Step::abort_ended, 0, t);
    }
    void serves(const Controller& self) {
        State next = now_;
        next.current.phase = Phase::serving;
        next.current.settled = static_cast<std::uint8_t>(base_of(self.epoch));
        const auto out = static_cast<std::uint8_t>(options_.written & ~self.members);
        for (unsigned i = 0; i < options_.boxes; ++i) {
            if (!has(self.members, i)) continue;
            next.current.executed |= now_.boxes[i].notes;
            for (auto record : now_.boxes[i].records)
                if (is_committed(record) && holds(RowRule::committed_without_is_lacked))
                    next.store_dirty |= out;
        }
        add(next, Step::serves);
    }
    void writes(const Controller& self) {
        const unsigned t = self.transaction;
        const auto& known = now_.transactions[t];
        if (self.phase == Phase::serving) return starts(self);
        if (self.phase == Phase::preparing) {
            if ((known.participants & ~known.prepared) != 0) return;
            State next = now_;
            next.answered |= bit(known.version);
            next.transactions[t].decision = Decision::commit;
            self_of(next).phase = Phase::committing;
            return add(next, Step::answers_host, 0, t);
        }
        if (self.phase != Phase::committing && self.phase != Phase::aborting) return;
        const bool commits = self.phase == Phase::committing;
        for (unsigned i = 0; i < options_.boxes; ++i) {
            if (!has(known.participants, i) || !has(self.members, i)) continue;
            const auto record = now_.boxes[i].records[t];
            if (commits ? record != Record::committed && record != Record::none
                        : !has_aborted(i, t))
                return;
        }
        State next = now_;
        auto& after = self_of(next);
        after.phase = Phase::serving;
        if (commits) {
            after.executed |= bit(known.version);
            if (holds(RowRule::committed_without_is_lacked))
                after.dirty |= static_cast<std::uint8_t>(options_.written & ~self.members);
        }
        if ((after.dirty & ~next.store_dirty) == 0)
            after.settled = static_cast<std::uint8_t>(t + 1);
        add(next, commits ? Step::write_ended : Step::abort_ended, 0, t);
    }
    void starts(const Controller& self) {
        for (unsigned version = 1; version <= options_.writes; ++version) {
            if (has(now_.answered, version)) continue;
            if (version == 2 && !options_.two_hosts && !has(now_.answered, 1)) continue;
            State next = now_;
            if (has(self.executed, version) && holds(RowRule::executed_once)) {
                next.answered |= bit(version);
                add(next, Step::answers_from_note, 0, version);
                continue;
            }
            if (self.tried == options_.tries) continue;
            const unsigned t = base_of(self.epoch) + self.tried;
            auto& after = self_of(next);
            ++after.tried;
            after.transaction = static_cast<std::uint8_t>(t);
            after.phase = Phase::preparing;
            next.transactions[t].version = static_cast<std::uint8_t>(version);
            next.transactions[t].participants =
                static_cast<std::uint8_t>(options_.written & self.members);
            add(next, Step::starts_write, version, t);
        }
    }
    void counts_out(const Controller& self) {
        if (self.phase == Phase::gathering || now_.exclusions == options_.exclusions) return;
        const auto whole =
            static_cast<std::uint8_t>(self.members & ~(now_.store_dirty | self.dirty));
        if (by_old_ && holds(RowRule::store_knows_epochs)) return;
        for (unsigned i = 0; i < options_.boxes; ++i) {
            const auto rest = static_cast<std::uint8_t>(whole & ~bit(i));
            if (!has(self.members, i) || options_.boxes - count(rest) > options_.losses) continue;
            State next = now_;
            auto& after = self_of(next);
            ++next.exclusions;
            after.members &= static_cast<std::uint8_t>(~bit(i));
            if (holds(RowRule::membership_lasts_first)) next.store_members = after.members;
            auto& known = next.transactions[self.transaction];
            if (self.phase == Phase::preparing && has(known.participants, i)) {
                after.phase = Phase::aborting;
                known.decision = Decision::abort;
            }
            add(next, Step::counts_out, i);
        }
    }
    void upkeep(const Controller& self) {
        const bool idle = self.phase == Phase::serving;
        if (idle && (self.dirty & ~now_.store_dirty) != 0) {
            State next = now_;
            next.store_dirty |= self.dirty;
            next.current.settled = static_cast<std::uint8_t>(base_of(self.epoch) + self.tried);
            add(next, Step::notes_dirty);
        }
        const bool may_return =
            idle || (!holds(RowRule::return_waits_for_settled) && self.phase == Phase::committing);
        const bool has_noted = (self.dirty & ~now_.store_dirty) == 0;
        for (unsigned i = 0; i < options_.boxes; ++i) {
            if (!now_.boxes[i].alive) continue;
            if (!has(self.members, i) && may_return && has_noted) {
                if (now_.boxes[i].epoch != self.epoch)
                    fence(i, self.epoch);
                else
                    readmits(i);
            }
            if (idle && has(self.members & now_.store_dirty, i) && obeys(i, self.epoch))
                rebuilds(i);
        }
    }
    void readmits(unsigned i) {
        State next = now_;
        auto& box = next.boxes[i];
        // What it had in doubt it lacks only if it was committed without it, and then it is noted.
        for (auto& record : box.records)
            if (record != Record::committed) record = Record::none;
        box.settled = std::max(box.settled, now_.current.settled);
        next.current.members |= bit(i);
        next.store_members = next.current.members;
        // Whoever goes on with a write while it returns sees that it is given that too.
        if (now_.current.phase == Phase::committing) next.store_dirty |= bit(i);
        add(next, Step::readmits, i);
    }
    void rebuilds(unsigned i) {
        for (unsigned from = 0; from < options_.boxes; ++from) {
            const auto clean = now_.current.members & options_.written & ~now_.store_dirty;
            if (!has(static_cast<std::uint8_t>(clean), from) || !now_.boxes[from].alive) continue;
            State next = now_;
            next.boxes[i].home = next.boxes[i].home_flushed = now_.boxes[from].home;
            for (auto& record : next.boxes[i].records)  // a newer record stands behind them
                if (record == Record::committed) record = Record::none;
            next.store_dirty &= static_cast<std::uint8_t>(~bit(i));
            next.current.dirty &= static_cast<std::uint8_t>(~bit(i));
            return add(next, Step::rebuilds, i);
        }
    }

    // What a replaced controller still does.
    void old_reads() {
        const auto& old = now_.old;
        if (old.phase == Phase::gone) return;
        if (old.lease != 0) {
            State next = now_;
            next.old.lease = 0;
            add(next, Step::lease_lapses);
        }
        if (old.lease == 0 && holds(RowRule::lease_is_looked_at)) return;
        const auto reader = static_cast<unsigned>(std::countr_zero(options_.written));
        if (old.phase != Phase::serving || !has(old.members, reader)) return;
        const bool lacks = has(old.dirty | now_.store_dirty, reader);
        if (lacks || !obeys(reader, old.epoch)) return;
        const auto version = now_.boxes[reader].home;
        if (has(now_.overwritten, version) || is_lost(now_, options_, version))
            sink_.violated("an old controller answers with what was overwritten",
                           {Step::old_reads, static_cast<std::uint8_t>(reader), 0, true});
    }
};

}  // namespace

bool is_lost(const State& state, const RowModelOptions& options, unsigned version) {
    if (options.two_hosts) return version == 0 && state.answered != 0;
    return (state.answered >> (version + 1)) != 0;
}

State first_state(const RowModelOptions& options) {
    State state{};
    for (unsigned i = 0; i < options.boxes; ++i) {
        state.boxes[i].alive = 1;
        state.boxes[i].epoch = state.boxes[i].epoch_flushed = 1;
    }
    state.store_epoch = 1;
    state.store_members = static_cast<std::uint8_t>((1u << options.boxes) - 1);
    state.current.phase = Phase::serving;
    state.current.epoch = 1;
    state.current.members = state.store_members;
    state.current.lease = 1;
    return state;
}

void follow(const State& state, const RowModelOptions& options, Sink& sink) {
    ControllerMoves(state, options, sink).all();
    follow_boxes(state, options, sink);
}

std::optional<std::string> look(State& state, const RowModelOptions& options) {
    if (state.current.phase != Phase::serving) return {};
    std::optional<std::uint8_t> found;
    for (unsigned i = 0; i < options.boxes; ++i) {
        const auto clean =
            state.current.members & options.written & ~(state.store_dirty | state.current.dirty);
        if (!has(static_cast<std::uint8_t>(clean), i) || !state.boxes[i].alive) continue;
        if (found && *found != state.boxes[i].home)
            return "members that should agree do not: data and parity are of different writes";
        found = state.boxes[i].home;
    }
    if (!found) return {};
    if (is_lost(state, options, *found)) return "an answered write is lost";
    if (has(state.overwritten, *found)) return "what was overwritten is back";
    if (state.last != *found) state.overwritten |= bit(state.last);
    state.last = *found;
    return {};
}

std::string to_text(const Move& move) {
    static constexpr const char* words[] = {"begin",
                                            "another controller takes office",
                                            "obeys the new epoch",
                                            "members are chosen",
                                            "decides to commit",
                                            "decides to abort",
                                            "is told the outcome",
                                            "the row is served",
                                            "starts a write",
                                            "begins its record, or refuses to",
                                            "has prepared",
                                            "answers the host",
                                            "answers what was executed before",
                                            "commits",
                                            "aborts",
                                            "the write has ended",
                                            "the try has ended",
                                            "flushes",
                                            "is counted out",
                                            "loses power",
                                            "is back",
                                            "hears settled",
                                            "frees its record",
                                            "what members lack is kept",
                                            "is let in again",
                                            "is rebuilt",
                                            "the old lease lapses",
                                            "is read for the old controller"};
    std::string text = move.by_old ? "(old controller) " : "";
    text += words[static_cast<std::size_t>(move.step)];
    return text + " [box " + std::to_string(move.box) + ", transaction " +
           std::to_string(move.transaction) + "]";
}

}  // namespace weft::sim::row
