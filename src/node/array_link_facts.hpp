// SPDX-License-Identifier: Apache-2.0
// What a party of an array can say of its connections to one peer: plain values, for people.
#pragma once

#include <string>

#include "weft/world.hpp"
#include "wire/array_connection.hpp"

namespace weft::node {

/// Since the party knows the peer.
struct ArrayLinkCounters {
    std::uint64_t connections = 0;  ///< made and proved
    std::uint64_t attempts_failed = 0;
    std::uint64_t ended = 0;       ///< of the connections
    std::uint64_t terminated = 0;  ///< of those, by a Terminate that quotes a steering tag
    // Of transfers, which only the side that connects has:
    std::uint64_t done = 0;
    std::uint64_t refused = 0;      ///< the peer did not allow that steering tag
    std::uint64_t timed_out = 0;    ///< nothing moved for too long
    std::uint64_t unreachable = 0;  ///< no fresh connection could be made
    std::uint64_t retried = 0;      ///< begun again over another connection
    /// Outbound of the transfers that are done; inbound all there were, with their headers.
    std::uint64_t octets_sent = 0, octets_received = 0;
};

struct ArrayLinkFacts {
    enum class Direction : std::uint8_t {
        outbound,  ///< we connect, and begin the transfers
        inbound,   ///< the peer does
    };
    enum class State : std::uint8_t {
        down,        ///< no connection; the next transfer makes one
        connecting,  ///< one is being made or proved
        pausing,     ///< the last ones ended at once: the next is made soon
        idle,        ///< connected, and nothing is under way
        busy,        ///< connected, and what is under way gets on
        congested,   ///< the same, slowly: the network loses packets, or a transfer takes seconds
        stalled,     ///< connected, and nothing has moved for a second or more
    };
    Direction direction{};
    State state{};
    wire::ArrayConnectionEnd peer{};
    Address local, remote;  ///< of the connection there is; without one, where the peer should be
    ArrayLinkCounters counters{};
    std::string last_end;       ///< why the last connection or attempt ended, a sentence
    Duration since_last_end{};  ///< meaningless without last_end
    std::uint32_t under_way = 0, waiting = 0;
    Duration oldest{};                       ///< how long the oldest under way has been
    Duration last_took{};                    ///< the last transfer that ended, from being posted
    Duration since_progress{};               ///< since a byte moved either way; of a connection
    std::optional<StreamCondition> network;  ///< of the connection, where the system says
    std::uint32_t resent_per_mille = 0;      ///< lately
};

const char* to_text(ArrayLinkFacts::State state);

}  // namespace weft::node
