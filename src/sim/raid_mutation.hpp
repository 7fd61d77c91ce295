// SPDX-License-Identifier: Apache-2.0
// Rules of the array that are broken on purpose, one at a time, so that it is known that the
// checkers would see it. All of it is done to messages, disks, memory and the store: production
// code has no such switch.
#pragma once

#include <cstdint>

namespace weft::sim {

enum class RaidMutation : std::uint8_t {
    none,
    flushes_do_nothing,           ///< what was prepared does not last
    membership_is_lost,           ///< the store says it has kept what it has not
    epoch_is_forgotten,           ///< by a box that loses power: it obeys the old controller again
    recall_finds_nothing,         ///< a new controller believes that nothing is in doubt
    aborts_are_lost,              ///< and are answered as if they were not
    commits_are_lost,             ///< and are answered as if they were not
    hosts_are_strangers,          ///< a write sent again is not known by its number
    transfers_are_damaged,        ///< and nobody adds up what was prepared
    volume_is_lost_by_boxes,      ///< a box says it knows who is a member, and forgets it
    epochs_are_not_checked,       ///< boxes obey whoever sends
    all_must_have_prepared,       ///< who was counted out too, before a write in doubt is committed
    missed_writes_are_forgotten,  ///< what journals recall is not noted for who was away
    dirty_map_is_stale,           ///< what is written without a box is not added to what it lacks
    checksums_see_nothing,        ///< blocks rot, and their checksum still matches
    tags_are_kept,                ///< a host's memory stays open when its request has ended
    copies_are_believed,          ///< a box says that it knows all there was, and was put back
    checkpoints_run_ahead,        ///< what was rebuilt is noted as lasting, and is not flushed
    sinks_are_closed_at_once,     ///< a host keeps no memory for boxes that may still write
    ends_count_against_all,       ///< a connection's end fails every transfer that was on it
    complaints_fence,             ///< a box that others cannot reach is taken away
    reads_pass_writes,            ///< a write does not start while anything is being read
    rebuilds_have_no_floor,       ///< nothing is rebuilt while hosts ask for anything
};

}  // namespace weft::sim
