// SPDX-License-Identifier: Apache-2.0
// Every bound of iSER, both sides, in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/instant.hpp"
#include "wire/iscsi_header.hpp"
#include "wire/iser.hpp"

namespace weft::iscsi::iser {

/// What stands before additional headers and data in every Send but the Hello messages.
inline constexpr std::size_t headers_size = wire::iser_header_size + wire::basic_header_size;
/// A command block of 260 octets and the length of a bidirectional read: RFC 7145's default of
/// MaxAHSLength.
inline constexpr std::size_t additional_headers_max = 256;
/// The longest data segment of a login, on both sides, and what we declare for later.
inline constexpr std::size_t data_segment_max = 8192;
/// The octets one receive has room for.
inline constexpr std::size_t receive_bytes =
    headers_size + additional_headers_max + data_segment_max;

/// Linux and libiscsi up to 1.19 post receives of 204 octets once logged in, whatever lengths they
/// negotiated: this is what they leave for data.
inline constexpr std::uint32_t small_initiator_data_max = 128;

/// Pieces one registration may have: of an initiator's buffer, of one RDMA Read's place.
inline constexpr std::size_t pieces_max = 256;
/// RDMA Reads a target has under way on one connection, where the initiator serves so many.
inline constexpr std::uint16_t reads_max = 32;
/// RDMA Reads an initiator serves at a time.
inline constexpr std::uint16_t reads_served = 32;

/// Work a queue pair of the target holds, posted: Writes, Reads with their registrations, Sends.
inline constexpr std::uint32_t target_sends = 512;
/// Every so many Writes in a row one is signalled, so that room in a full queue is noticed.
inline constexpr std::uint32_t writes_per_signal = 32;

/// Receives of all connections of a target: at first, more each time they run low, and at most.
inline constexpr std::size_t receives_first = 256;
inline constexpr std::size_t receives_more = 256;
inline constexpr std::size_t receives_max = 8192;
inline constexpr std::size_t receives_low = 64;
/// What one connection may hold of them: PDUs not worked on yet, and data whose place is not known.
inline constexpr std::size_t receives_held_max = 512;
/// PDUs of a connection that wait to be sent before its receives are left lying.
inline constexpr std::size_t controls_waiting_max = 64;

/// Receives of an initiator beyond one for each command: pings, messages, refusals.
inline constexpr std::size_t initiator_receives_more = 16;
/// Buffers an initiator has for data that goes along with commands.
inline constexpr std::size_t initiator_send_buffers = 64;

/// Between a target's last word and its end of the connection, where the initiator does not end it
/// first: libiscsi frees memory twice if it is not the one who does.
inline constexpr Duration farewell_patience = std::chrono::seconds(1);
inline constexpr std::size_t departing_max = 1024;
/// Between what an initiator heard last and its end of the connection, where the target does not
/// end it first: a Send of Linux's siw whose receiver hangs up at once fails, arrived or not, and
/// its target then believes that it has not said goodbye.
inline constexpr Duration farewell_delay = std::chrono::milliseconds(20);

}  // namespace weft::iscsi::iser
