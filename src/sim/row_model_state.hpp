// SPDX-License-Identifier: Apache-2.0
// All there is in the model of a row at one moment: boxes, controllers, the store, hosts. Octets
// only, so that two states are the same when their octets are.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sim/row_model.hpp"

namespace weft::sim::row {

inline constexpr unsigned boxes_max = 4, transactions_max = 6;

enum class Record : std::uint8_t {
    none,
    writing,         ///< on its way into the journal, and in nobody's list
    prepared,        ///< outlives the power, undecided
    committed_soft,  ///< decided and home, but only in memory
    committed,
    aborted_soft,
    aborted,
};
enum class Phase : std::uint8_t {
    gone,
    gathering,
    resolving,
    serving,
    preparing,
    aborting,
    committing
};
enum class Decision : std::uint8_t { none, commit, abort };

struct Box {
    std::uint8_t alive, home, home_flushed, settled, epoch, epoch_flushed, notes, notes_soft;
    std::array<Record, transactions_max> records;
};
/// Of which write, and who takes part; what its controller has decided may still be on its way.
struct Transaction {
    std::uint8_t version, participants;
    std::uint8_t delivered;  ///< boxes its prepare has come to, or never will
    std::uint8_t prepared;   ///< boxes that have said so, perhaps long ago
    Decision decision;
};
struct Controller {
    Phase phase;
    std::uint8_t epoch, transaction, members, dirty, settled, executed, tried, lease;
    Decision decision;  ///< on a transaction of somebody before it
};
struct State {
    std::array<Box, boxes_max> boxes;
    std::array<Transaction, transactions_max> transactions;
    Controller current, old;
    std::uint8_t store_epoch, store_members, store_dirty;
    std::uint8_t answered, last, overwritten;  ///< what hosts know
    std::uint8_t crashes, exclusions;

    bool operator==(const State& other) const {
        return std::memcmp(this, &other, sizeof(State)) == 0;
    }
};
static_assert(std::has_unique_object_representations_v<State>);

/// What happened between two states.
enum class Step : std::uint8_t {
    begin,
    controller_takes_office,
    fences,
    members_chosen,
    decides_commit,
    decides_abort,
    resolves,
    serves,
    starts_write,
    begins_record,
    record_lasts,
    answers_host,
    answers_from_note,
    commits_at,
    aborts_at,
    write_ended,
    abort_ended,
    flushes,
    counts_out,
    box_crashes,
    box_restarts,
    hears_settled,
    frees,
    notes_dirty,
    readmits,
    rebuilds,
    lease_lapses,
    old_reads,
};
struct Move {
    Step step{};
    std::uint8_t box = 0, transaction = 0;
    bool by_old = false;
};
std::string to_text(const Move& move);

/// Where states go, each with how it came about.
class Sink {
public:
    virtual void add(const State& state, const Move& move) = 0;
    virtual void violated(const std::string& what, const Move& move) = 0;

protected:
    ~Sink() = default;
};

State first_state(const RowModelOptions& options);
/// Every state that may follow, and what is wrong with any answer that may be given on the way.
void follow(const State& state, const RowModelOptions& options, Sink& sink);
/// What hosts see of the row, where it is served. Changes what they know.
std::optional<std::string> look(State& state, const RowModelOptions& options);

}  // namespace weft::sim::row
