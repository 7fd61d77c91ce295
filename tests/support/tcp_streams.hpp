// SPDX-License-Identifier: Apache-2.0
// Takes the byte streams out of a capture, as the receiving programs read them. Written without
// src/wire, like the writer of captures.
#pragma once

#include "support/pcap.hpp"

namespace weft::test {

/// One direction of a TCP connection.
struct TcpStream {
    Bytes source;  ///< the sender's address and port, as in the packet
    Bytes destination;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
    Bytes octets;
};

struct TcpConnection {
    TcpStream from_client;  ///< who sent the first SYN
    TcpStream from_server;
};

/// The connections of a capture in the order of their SYNs. Segments may come twice or out of
/// order; throws std::runtime_error if one is missing.
std::vector<TcpConnection> tcp_connections(const Capture& capture);

}  // namespace weft::test
