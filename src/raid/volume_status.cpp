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
    "box and another reach each other again",
    "box reaches the host again",
    "box answers slowly: reads go around it",
    "box answers as soon as the others again",
    "box's journal is full: writes wait",
    "box has no memory to stage in: writes wait",
    "box's disk is full: writes wait",
    "box has room again",
};

constexpr std::array outcome_words{
    "done",         "wrong cluster",    "wrong volume", "wrong box",
    "other epoch",  "other generation", "malformed",    "out of range",
    "no room",      "peer unreachable", "disk failed",  "unknown transaction",
    "no space",     "already there",    "corrupt",      "lease over",
    "peer refused", "peer timed out",
};

constexpr std::array state_words{"starting",   "healthy", "degraded",
                                 "rebuilding", "stopped", "deposed"};

}  // namespace

std::string to_text(VolumeEventKind kind) {
    return event_words[static_cast<std::size_t>(kind)];
}

namespace {

/// As people say it: "180 ms", "2.4 s", "350 us".
std::string span_text(Duration span) {
    const auto us = span / std::chrono::microseconds(1);
    if (us < 1000) return std::to_string(us) + " us";
    if (us < 10'000'000) return std::to_string(us / 1000) + " ms";
    return std::to_string(us / 1'000'000) + " s";
}

}  // namespace

std::string to_text(const VolumeEvent& event, const std::string& other) {
    switch (event.kind) {
        case VolumeEventKind::link_broken:
            return "box and " + other +
                   " do not reach each other: their data goes by way of the controller";
        case VolumeEventKind::link_mended:
            return "box and " + other + " reach each other again";
        case VolumeEventKind::box_slow:
            if (event.others == Duration{})
                return "box answers slowly (no answer for " + span_text(event.took) +
                       "): writes wait for it";
            return "box answers slowly (no answer for " + span_text(event.took) + ", others take " +
                   span_text(event.others) + "): reads go around it";
        case VolumeEventKind::journal_full:
            return "box's journal is full: writes wait for room (" + std::to_string(event.number) +
                   ")";
        case VolumeEventKind::disk_full:
            return "box's disk is full: writes wait for room (" + std::to_string(event.number) +
                   ")";
        default:
            break;
    }
    auto what = to_text(event.kind);
    if (event.why != wire::ArrayOutcome::done) what += ": " + to_text(event.why);
    if (event.number != 0) what += " (" + std::to_string(event.number) + ")";
    return what;
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
