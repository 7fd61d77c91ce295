// SPDX-License-Identifier: Apache-2.0
// How many connections a server keeps, and who makes room for a newcomer: the unfinished handshake
// that was begun first. It has had the most time, and an honest peer ends its handshake within
// milliseconds. So peers that connect and say nothing keep nobody out, however many they are.
//
// Connections whose handshake is finished never make room: where they are connections_max, a
// newcomer is refused.
#pragma once

#include <concepts>
#include <cstddef>

namespace weft::node {

struct ConnectionRoom {
    std::size_t connections_max;
    std::size_t handshakes_max;  ///< of them, those whose handshake is unfinished
};

template <class Connection>
concept RoomMaking = requires(Connection& connection) {
    /// Not hung up yet. What is hung up may stay in the list until it can be destroyed.
    { connection.is_open() } -> std::same_as<bool>;
    { connection.is_unfinished() } -> std::same_as<bool>;
    connection.hang_up();
};

/// Hangs up unfinished handshakes, the oldest first, until there is room for one connection more.
/// False if there is none even then. `connections` are in the order in which they came.
template <class Connections>
requires RoomMaking<typename Connections::value_type>
bool make_room(Connections& connections, const ConnectionRoom& room) {
    std::size_t open = 0, unfinished = 0;
    for (auto& each : connections) {
        if (!each.is_open()) continue;
        ++open;
        if (each.is_unfinished()) ++unfinished;
    }
    for (auto& each : connections) {
        if (unfinished < room.handshakes_max && open < room.connections_max) return true;
        if (!each.is_open() || !each.is_unfinished()) continue;
        each.hang_up();
        --open;
        --unfinished;
    }
    return open < room.connections_max;
}

}  // namespace weft::node
