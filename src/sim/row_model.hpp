// SPDX-License-Identifier: Apache-2.0
// The protocol that keeps a row of a volume whole, as a model small enough to try everything that
// can happen: every order of messages, crashes of boxes and controllers at every moment, a
// controller that was replaced and does not know it. Nothing here is production code. It is what
// production code is written from, and when a rule is left out it says why the rule is there.
//
// What a model of this size leaves out: one row, two writes of the same blocks, values that are
// only "of which write" (so any code of m parities is the same model, with other participants).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::sim {

/// The rules of the protocol; the model is right with all of them and wrong without any one.
enum class RowRule : std::uint8_t {
    prepare_lasts,           ///< the paper's staging does not: it is lost with the power
    survivors_decide,        ///< not "all who once took part": one of them may be gone for ever
    membership_lasts_first,  ///< before anything is answered that was done without a member
    epoch_lasts,             ///< a box remembers which controllers it no longer obeys
    keep_until_settled,      ///< records are not freed as soon as they are home
    abort_lasts,             ///< before it counts as ended
    committed_without_is_lacked,  ///< by members that are out, though they may never have seen it
    return_waits_for_settled,     ///< a member that is let in must not be asked of older writes
    late_prepare_is_refused,      ///< one whose transaction was aborted here before it came
    recall_sees_all,              ///< also the record that is just being written
    settled_waits_for_outcomes,   ///< of a new controller: not before all in doubt has ended
    executed_once,                ///< a write sent again is known by its number
    lease_is_waited_for,          ///< before the new controller answers anybody
    lease_is_looked_at,           ///< by the old one, when it answers
    store_knows_epochs,           ///< an old controller changes no membership
};
inline constexpr unsigned row_rules = 15;
std::string to_text(RowRule rule);

struct RowModelOptions {
    std::uint8_t boxes = 3;
    std::uint8_t losses = 1;       ///< so many may be counted out: RAID-5 one, 2+2 two
    std::uint8_t written = 0b101;  ///< boxes whose block a write changes
    std::uint8_t controllers = 2;  ///< at most so many take office, one after another
    std::uint8_t box_crashes = 1;
    std::uint8_t exclusions = 1;  ///< of boxes, dead or only out of reach
    std::uint8_t tries = 2;       ///< transactions of each controller
    std::uint8_t writes = 2;
    bool two_hosts = false;          ///< the second write does not wait for the first
    bool old_acts = true;            ///< a controller that was replaced goes on as if it were not
    std::optional<RowRule> without;  ///< a rule that is left out
    std::size_t states_max = 3'000'000;
};

struct RowModelOutcome {
    std::size_t states = 0;
    bool complete = false;  ///< all there are were seen
    std::optional<std::string> violation;
    std::vector<std::string> story;  ///< the shortest that leads to it
};

/// Breadth first, so that what it finds is the shortest there is.
RowModelOutcome check_row(const RowModelOptions& options);

}  // namespace weft::sim
