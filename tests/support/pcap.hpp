// SPDX-License-Identifier: Apache-2.0
// Capture files (pcap, Ethernet) for tests: written so that tshark can judge our bytes, and read so
// that our decoders can judge someone else's.
//
//     Capture capture;
//     TcpConversation talk(capture, {.server_port = 3260});
//     auto request = talk.client_sends(login_request);   // the number tshark gives the frame
//     auto answer = talk.server_sends(login_response);
//     auto frames = dissect(capture, {});                // support/tshark.hpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "support/golden.hpp"

namespace weft::test {

struct CapturedPacket {
    std::uint64_t time_us = 0;
    Bytes octets;  ///< from the Ethernet destination on, without frame check sequence
};

class Capture {
public:
    /// Adds a whole Ethernet frame, a millisecond after the last one, and returns its number as
    /// tshark counts: from one.
    std::size_t add(ConstBuffer ethernet_frame);

    const std::vector<CapturedPacket>& packets() const { return packets_; }

    void save(const std::string& path) const;
    /// Throws std::runtime_error if the file is not a pcap of Ethernet frames.
    static Capture load(const std::string& path);

private:
    std::vector<CapturedPacket> packets_;
};

enum class IpVersion : std::uint8_t { v4, v6 };

struct Endpoints {
    IpVersion ip_version = IpVersion::v6;
    std::uint16_t client_port = 49152;
    std::uint16_t server_port = 0;
};

/// A TCP connection without loss. The handshake is written by the constructor; every piece is one
/// segment (longer ones are cut at 60 000 octets) and is acknowledged at once.
class TcpConversation {
public:
    TcpConversation(Capture& capture, Endpoints endpoints);

    /// The number of the frame that carries the (last) octets of the piece.
    std::size_t client_sends(ConstBuffer piece) { return send(client_, server_, piece); }
    std::size_t server_sends(ConstBuffer piece) { return send(server_, client_, piece); }
    /// Both sides close, the client first.
    void close();

private:
    struct Side {
        std::uint8_t host;
        std::uint16_t port;
        std::uint32_t next_sequence;
    };

    std::size_t send(Side& from, Side& to, ConstBuffer piece);
    std::size_t segment(Side& from, const Side& to, std::uint8_t flags, ConstBuffer payload);
    Bytes ip_header(const Side& from, const Side& to, std::size_t tcp_size) const;

    Capture& capture_;
    IpVersion ip_version_;
    Side client_;
    Side server_;
};

/// An Ethernet II header between the hosts that TcpConversation calls 1 and 2.
Bytes ethernet_header(std::uint8_t from_host, std::uint8_t to_host, std::uint16_t ethertype);

/// The Internet checksum (RFC 1071) of the parts, each of which but the last is of even length.
std::uint16_t internet_checksum(std::initializer_list<ConstBuffer> parts);

}  // namespace weft::test
