// SPDX-License-Identifier: Apache-2.0
#include "sim/row_model.hpp"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "base/check.hpp"
#include "sim/row_model_state.hpp"

namespace weft::sim {

using row::Move;
using row::State;

namespace {

/// All states seen, each with the one it was first reached from.
class Search final : public row::Sink {
public:
    explicit Search(const RowModelOptions& options) : options_(options) {
        seen_.reserve(std::min<std::size_t>(options.states_max, 1u << 20));
    }

    RowModelOutcome run() {
        add(row::first_state(options_), {});
        std::size_t next = 0;
        while (next < states_.size() && !outcome_.violation &&
               states_.size() < options_.states_max) {
            at_ = next++;
            row::follow(State(states_[at_].state), options_, *this);
        }
        outcome_.complete = next == states_.size() && !outcome_.violation;
        outcome_.states = states_.size();
        return outcome_;
    }

    void add(const State& reached, const Move& move) override {
        if (outcome_.violation) return;
        State state = reached;
        const auto wrong = row::look(state, options_);
        states_.push_back({state, at_, move});
        if (!seen_.insert(states_.size() - 1).second) return states_.pop_back();
        if (wrong) tell(*wrong, states_.size() - 1);
    }
    void violated(const std::string& what, const Move& move) override {
        if (outcome_.violation) return;
        tell(what, at_);
        outcome_.story.push_back(to_text(move));
    }

private:
    struct Seen {
        State state;
        std::size_t from;
        Move move;
    };
    struct Hash {
        const std::deque<Seen>* states;
        std::size_t operator()(std::size_t index) const {
            const auto* octets = reinterpret_cast<const std::uint8_t*>(&(*states)[index].state);
            std::uint64_t sum = 0xcbf2'9ce4'8422'2325;
            for (std::size_t i = 0; i < sizeof(State); ++i)
                sum = (sum ^ octets[i]) * 0x100'0000'01b3;
            return sum;
        }
    };
    struct Same {
        const std::deque<Seen>* states;
        bool operator()(std::size_t one, std::size_t other) const {
            return (*states)[one].state == (*states)[other].state;
        }
    };

    void tell(const std::string& what, std::size_t index) {
        outcome_.violation = what;
        for (; index != 0; index = states_[index].from)
            outcome_.story.push_back(to_text(states_[index].move));
        std::ranges::reverse(outcome_.story);
    }

    const RowModelOptions& options_;
    std::deque<Seen> states_;
    std::unordered_set<std::size_t, Hash, Same> seen_{16, Hash{&states_}, Same{&states_}};
    std::size_t at_ = 0;
    RowModelOutcome outcome_;
};

}  // namespace

RowModelOutcome check_row(const RowModelOptions& options) {
    WEFT_CHECK(options.boxes <= row::boxes_max);
    WEFT_CHECK(options.controllers * options.tries <= row::transactions_max);
    return Search(options).run();
}

std::string to_text(RowRule rule) {
    switch (rule) {
        case RowRule::prepare_lasts:
            return "what is prepared lasts";
        case RowRule::survivors_decide:
            return "survivors decide";
        case RowRule::membership_lasts_first:
            return "membership lasts before answers";
        case RowRule::epoch_lasts:
            return "the epoch lasts";
        case RowRule::keep_until_settled:
            return "records are kept until settled";
        case RowRule::abort_lasts:
            return "aborts last";
        case RowRule::committed_without_is_lacked:
            return "what was committed without a member it lacks";
        case RowRule::return_waits_for_settled:
            return "a return waits for older writes";
        case RowRule::late_prepare_is_refused:
            return "late prepares are refused";
        case RowRule::recall_sees_all:
            return "recall sees what is being written";
        case RowRule::settled_waits_for_outcomes:
            return "settled waits for outcomes";
        case RowRule::executed_once:
            return "a write is executed once";
        case RowRule::lease_is_waited_for:
            return "the old lease is waited for";
        case RowRule::lease_is_looked_at:
            return "a lease is looked at before answers";
        case RowRule::store_knows_epochs:
            return "the store knows epochs";
    }
    return "unknown";
}

}  // namespace weft::sim
