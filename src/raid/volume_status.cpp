// SPDX-License-Identifier: Apache-2.0
#include "raid/volume_status.hpp"

#include <array>

namespace weft::raid {
namespace {

constexpr std::array<const char*, volume_event_kinds> event_words{
    "volume started",
    "volume stopped: too few boxes",
    "volume given up: requests fail until boxes return",
    "box returned",
    "box lost",
    "box failed",
    "box refused: it is not what it was, or the store is not",
    "box has forgotten what it had flushed: its part is an older copy, and is rebuilt whole",
    "member absent",
    "member current",
    "box took a place",
    "rebuild began",
    "rebuild paused",
    "rebuild resumed",
    "scrub began",
    "scrub found a mismatch",
    "scrub repaired a stripe",
    "a stripe could not be repaired",
    "scrub ended",
    "volume grown",
    "box has no room for a larger volume",
    "the store refused a change",
    "another controller is in office",
    "box did not understand an order",
    "what was prepared did not add up and was not written",
    "stripes are in doubt since a controller was lost: their parity is made anew",
    "box lost its power and cannot be spared: what was not flushed may be lost",
    "a block does not match its checksum",
    "a block was repaired from the others",
    "a block is older than the others remember: its box lost a write, at octet",
    "a block is beyond repair: reading it fails",
    "box and another do not reach each other: their data goes by way of the controller",
    "box does not reach a host: its data goes by way of the controller",
};

constexpr std::array outcome_words{
    "done",        "wrong cluster",       "wrong volume", "wrong box",
    "other epoch", "other generation",    "malformed",    "out of range",
    "no room",     "passive side failed", "disk failed",  "unknown transaction",
    "no space",    "already there",       "corrupt",      "lease over",
};

constexpr std::array state_words{"starting",   "healthy", "degraded",
                                 "rebuilding", "stopped", "deposed"};

}  // namespace

std::string to_text(VolumeEventKind kind) {
    return event_words[static_cast<std::size_t>(kind)];
}

std::string to_text(wire::ArrayOutcome outcome) {
    const auto index = static_cast<std::size_t>(outcome);
    if (index < outcome_words.size()) return outcome_words[index];
    return "outcome " + std::to_string(index);
}

std::string to_text(VolumeState state) {
    return state_words[static_cast<std::size_t>(state)];
}

}  // namespace weft::raid
