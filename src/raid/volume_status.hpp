// SPDX-License-Identifier: Apache-2.0
// What people are told of a volume: how it is now, and what has happened to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "raid/bands.hpp"
#include "weft/instant.hpp"
#include "wire/array_superblock.hpp"
#include "wire/scsi_array.hpp"

namespace weft::raid {

enum class VolumeEventKind : std::uint8_t {
    started,            ///< requests are served from now on
    stopped,            ///< more boxes are away than the code can do without; requests wait
    given_up,           ///< and have waited long enough: they fail until boxes return
    box_returned,       ///< a member is there again
    box_lost,           ///< a member cannot be reached
    box_failed,         ///< a member is there and does not do what it must; `why`
    box_refused,        ///< what it says of the volume is not what we know; `why`
    box_put_back,       ///< its part is an older copy, or its disk loses what it has flushed
    member_absent,      ///< lastingly: the volume goes on without it
    member_current,     ///< its rebuilding has ended
    box_placed,         ///< another box has taken the place
    rebuild_began,      ///< `number`: stripes to go
    rebuild_paused,     ///< by management
    rebuild_resumed,    ///< by management
    scrub_began,        ///< `number`: stripes to go
    scrub_mismatch,     ///< `number`: the stripe whose boxes do not agree
    scrub_repaired,     ///< `number`: the stripe whose parity was made anew
    scrub_unrepaired,   ///< `number`: the stripe whose parity could not be
    scrub_ended,        ///< `number`: mismatches
    grown,              ///< `number`: stripes it has now
    grow_refused,       ///< a box has no room for it
    store_failed,       ///< what must be lasting cannot be made so; nothing changes until it can
    deposed,            ///< boxes obey another controller: this one must stop
    malformed_request,  ///< a box did not understand us: a fault of ours, or of its version
    audit_failed,       ///< what was prepared did not add up, and was not written; `number`: stripe
    stripes_doubtful,   ///< `number`: that were being written when a controller was lost
    writes_lost,        ///< a box that cannot be spared lost its power; `number`: stripes unflushed
    block_corrupt,      ///< a block of this member is not what was written; `number`: its stripe
    block_healed,       ///< it was found again from the others; `number`: its stripe
    block_stale,        ///< a block of this member missed a write; `number`: where on its part
    block_lost,         ///< it cannot be: whoever reads it is told; `number`: its stripe
    link_broken,        ///< two members do not reach each other; `number`: the other's place
    host_cut_off,       ///< a member does not reach a host that is there
    link_mended,        ///< they do again; `other`
    host_reached,       ///< it does again
    box_slow,           ///< it was late; `took`, and `others` of a read, which they then served
    box_quick,          ///< it is no more
    journal_full,       ///< of a member; `number`: writes that wait for room
    windows_full,       ///< the same, of memory to stage in
    disk_full,          ///< the same, of the file system it is on
    has_room,           ///< it has again
};
inline constexpr std::size_t volume_event_kinds =
    static_cast<std::size_t>(VolumeEventKind::has_room) + 1;

struct VolumeEvent {
    VolumeEventKind kind{};
    std::optional<std::uint8_t> place;
    wire::BoxIdentity box{};
    wire::ArrayOutcome why{};
    std::uint64_t number = 0;
    wire::BoxIdentity other{};  ///< of two boxes that it is about
    Duration took{}, others{};  ///< how long it was waited for, and what the others take

    bool operator==(const VolumeEvent&) const = default;
};

/// As words in the middle of a sentence: "member absent", "scrub found a mismatch".
std::string to_text(VolumeEventKind kind);
/// The same with its figures. `other` is the name of the other box, if it is about two.
std::string to_text(const VolumeEvent& event, const std::string& other);
std::string to_text(wire::ArrayOutcome outcome);

enum class VolumeState : std::uint8_t {
    starting,  ///< waits for its boxes
    healthy,
    degraded,    ///< serves, but for the loss of one more it may not
    rebuilding,  ///< degraded, and on the way to be healthy
    stopped,     ///< too few boxes: requests wait, and then fail
    deposed,     ///< another controller is in office
};
std::string to_text(VolumeState state);

struct MemberStatus {
    std::uint8_t place = 0;
    wire::BoxIdentity box{};
    wire::ArrayMemberState state{};
    bool up = false;
    /// By management, or by its own disk: it stays out until it is re-added.
    bool failed = false;
    bool needs_repair = false;  ///< it does not do what it must; a member, since it is needed
    bool slow = false;          ///< reads go around it
    bool full = false;          ///< writes wait for room in it
    Mask unreached = 0;  ///< members it does not reach: their data goes by way of the controller
    bool misses_host = false;  ///< the same of a host
};

struct RebuildStatus {
    std::uint8_t place = 0;
    bool paused = false;
    bool is_stuck = false;                ///< all that is left was found to be beyond repair
    std::uint64_t done = 0, to_do = 0;    ///< stripes, of those that have to be rebuilt at all
    std::uint64_t octets = 0;             ///< written so far, to tell a rate from
    std::uint64_t octets_per_second = 0;  ///< the limit; 0: none
};

struct ScrubStatus {
    bool running = false;
    bool repairs = false;
    std::uint64_t done = 0, to_do = 0;  ///< stripes
    std::uint64_t mismatches = 0, repaired = 0, unchecked = 0;
};

/// Since the manager began.
struct VolumeCounters {
    std::uint64_t requests = 0;        ///< of hosts, answered
    std::uint64_t orders = 0;          ///< commands to boxes, upkeep's included
    std::uint64_t payload_octets = 0;  ///< of data by way of the controller
    std::uint64_t corrupt_blocks = 0;  ///< that did not match their checksum when they were read
    std::uint64_t healed_blocks = 0;   ///< and were found again from the others
    std::uint64_t stale_blocks = 0;    ///< that a scrub found to have missed a write
    std::uint64_t hedged_reads = 0;    ///< that a box was late for: the others served them
    std::uint64_t attempts_again = 0;  ///< made because one before had failed
    std::uint64_t transfers_refused = 0, transfers_timed_out = 0, peers_unreachable = 0;
};

struct VolumeStatus {
    VolumeState state{};
    std::uint64_t size = 0;  ///< octets
    wire::ArrayVolume volume{};
    std::vector<MemberStatus> members;
    std::vector<RebuildStatus> rebuilds;
    ScrubStatus scrub{};       ///< the running one, or the last
    std::size_t requests = 0;  ///< of hosts, under way
    VolumeCounters counters{};
};

}  // namespace weft::raid
