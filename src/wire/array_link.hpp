// SPDX-License-Identifier: Apache-2.0
// What a box says of its connections to its peers (the answer to list_links): a count, and a record
// for each peer and direction.
#pragma once

#include "wire/array_connection.hpp"

namespace weft::wire {

struct ArrayLinkList {
    std::uint16_t count = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'4c'6e'6b'31));  // "WeftLnk1"
        v("count", h.count);
        v.pack(reserved<48>);
    }
    bool operator==(const ArrayLinkList&) const = default;
};
static_assert(wire_size<ArrayLinkList>() == 16);

/// Times are in microseconds.
struct ArrayLinkRecord {
    std::uint8_t direction = 0, state = 0;
    std::uint16_t resent_per_mille = 0;
    ArrayConnectionEnd peer{};
    ArrayNetworkEnd local{}, remote{};
    std::uint64_t connections = 0, attempts_failed = 0, ended = 0, terminated = 0;
    std::uint64_t done = 0, refused = 0, timed_out = 0, unreachable = 0, retried = 0;
    std::uint64_t octets_sent = 0, octets_received = 0;
    std::uint32_t under_way = 0, waiting = 0;
    std::uint64_t oldest = 0, last_took = 0, since_progress = 0, since_last_end = 0;
    std::uint64_t round_trip = 0;  ///< 0: not known, nor are the next two
    std::uint64_t segments_sent = 0, segments_resent = 0;
    Octets<128> last_end{};  ///< a sentence, perhaps cut short

    static constexpr void describe(auto& v, auto& h) {
        v("direction", h.direction);
        v("state", h.state);
        v("resent per mille", h.resent_per_mille);
        v.pack(reserved<32>);
        v.nested("peer", h.peer);
        v.pack(reserved<32>);
        v.nested("local", h.local);
        v.nested("remote", h.remote);
        v("connections", h.connections);
        v("attempts failed", h.attempts_failed);
        v("ended", h.ended);
        v("terminated", h.terminated);
        v("done", h.done);
        v("refused", h.refused);
        v("timed out", h.timed_out);
        v("unreachable", h.unreachable);
        v("retried", h.retried);
        v("octets sent", h.octets_sent);
        v("octets received", h.octets_received);
        v("under way", h.under_way);
        v("waiting", h.waiting);
        v("oldest", h.oldest);
        v("last took", h.last_took);
        v("since progress", h.since_progress);
        v("since last end", h.since_last_end);
        v("round trip", h.round_trip);
        v("segments sent", h.segments_sent);
        v("segments resent", h.segments_resent);
        v("last end", h.last_end);
    }
    bool operator==(const ArrayLinkRecord&) const = default;
};
static_assert(wire_size<ArrayLinkRecord>() == 360);

}  // namespace weft::wire
