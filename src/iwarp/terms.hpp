// SPDX-License-Identifier: Apache-2.0
// What two sides agree on before the first FPDU, and what each may wish for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/instant.hpp"

namespace weft::iwarp {

enum class Role : std::uint8_t { initiator, responder };

/// The empty message by which an initiator shows that the responder may speak (RFC 6581).
enum class ReadyMessage : std::uint8_t { none, send, write, read };

/// Who is at the other end, as far as the reserved flags of its start-up frame tell.
enum class Peer : std::uint8_t {
    unknown,  ///< gets FPDUs of one TCP segment, and nothing of RFC 7306
    siw,      ///< Linux: takes FPDUs of any size
    weft,     ///< takes everything
};

/// What our side wishes for.
struct Wishes {
    std::uint8_t revision = 2;  ///< as initiator. 1: the plain frames of RFC 5044
    bool checksum = true;       ///< either side's wish is enough
    bool markers = false;       ///< that the peer puts markers in what it sends
    bool peer_to_peer = true;   ///< as initiator, with revision 2
    /// As initiator: what we can send. As responder we take them all.
    bool ready_by_send = true, ready_by_write = true, ready_by_read = true;
    bool show_ourselves = true;  ///< set reserved flags, by which Weft and siw are known
    /// As responder: take who asks with just the flags of an unchanged siw for one. It sets no
    /// reserved flag that would tell; hardware asks otherwise.
    bool trust_plain_siw = true;
    std::uint16_t inbound_reads = 16;
    std::uint16_t outbound_reads = 16;
    std::uint16_t inbound_reads_max = 128;         ///< how far a peer's wish may raise ours
    Duration patience = std::chrono::seconds(10);  ///< for the peer's frame, and to send our reply
};

/// What was agreed.
struct Terms {
    Role role = Role::initiator;
    bool checksum = false;
    bool markers_in = false;                  ///< the peer puts them in what it sends us
    bool markers_out = false;                 ///< we put them in what we send
    std::uint16_t inbound_reads = 0;          ///< the peer's, that we serve at a time
    std::uint16_t outbound_reads = 0;         ///< ours, that may be under way
    ReadyMessage ready = ReadyMessage::none;  ///< sent first by the initiator
    Peer peer = Peer::unknown;

    bool operator==(const Terms&) const = default;
};

}  // namespace weft::iwarp
