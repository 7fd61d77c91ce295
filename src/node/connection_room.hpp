// SPDX-License-Identifier: Apache-2.0
// How many connections a server keeps, and who makes room for a newcomer: the unfinished handshake
// that was begun first. It has had the most time, and an honest peer ends its handshake within
// milliseconds. So peers that connect and say nothing keep nobody out, however many they are.
//
// Connections whose handshake is finished never make room: where they are connections_max, or one
// peer has of_one_peer_max of them, a newcomer is refused.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace weft::node {

struct ConnectionRoom {
    std::size_t connections_max;
    std::size_t handshakes_max;  ///< of them, those whose handshake is unfinished
    std::size_t of_one_peer_max = ~std::size_t{0};  ///< of them, those of one peer
};

enum class Admission : std::uint8_t {
    granted,
    too_many,              ///< of all
    too_many_of_one_peer,  ///< of the newcomer's own
};

template <class Connection>
concept RoomMaking = requires(Connection& connection) {
    /// Not hung up yet. What is hung up may stay in the list until it can be destroyed.
    { connection.is_open() } -> std::same_as<bool>;
    { connection.is_unfinished() } -> std::same_as<bool>;
    connection.hang_up();
};

/// Hangs up unfinished handshakes, the oldest first, until of the connections that are `counted`
/// fewer than this are left, and of unfinished ones fewer than that. False if that cannot be.
template <class Connections, class Counted>
bool reduce_to(Connections& connections, std::size_t open_max, std::size_t unfinished_max,
               const Counted& counted) {
    std::size_t open = 0, unfinished = 0;
    for (auto& each : connections) {
        if (!each.is_open() || !counted(each)) continue;
        ++open;
        if (each.is_unfinished()) ++unfinished;
    }
    for (auto& each : connections) {
        if (unfinished < unfinished_max && open < open_max) return true;
        if (!each.is_open() || !each.is_unfinished() || !counted(each)) continue;
        each.hang_up();
        --open;
        --unfinished;
    }
    return open < open_max;
}

/// Makes room for one connection more, if that is possible. `connections` are in the order in which
/// they came; `is_of_peer` says which of them are the newcomer's.
template <class Connections, class IsOfPeer>
requires RoomMaking<typename Connections::value_type> Admission
make_room(Connections& connections, const ConnectionRoom& room, const IsOfPeer& is_of_peer) {
    const auto unfinished_max = room.handshakes_max;
    if (!reduce_to(connections, room.of_one_peer_max, unfinished_max, is_of_peer))
        return Admission::too_many_of_one_peer;
    const auto everybody = [](const auto&) { return true; };
    return reduce_to(connections, room.connections_max, unfinished_max, everybody)
               ? Admission::granted
               : Admission::too_many;
}

}  // namespace weft::node
