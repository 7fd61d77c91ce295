// SPDX-License-Identifier: Apache-2.0
// Every bound of the iSCSI layer, in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/instant.hpp"

namespace weft::iscsi {

/// Text one PDU may carry during login: the default of MaxRecvDataSegmentLength, which nobody may
/// exceed before other lengths are agreed on.
inline constexpr std::size_t login_segment_max = 8192;
/// Text one side may send in one exchange, all continued PDUs together. RFC 7143 section 6.2 asks
/// for 8192 octets, and for 64 KiB where long authentication items are taken.
inline constexpr std::size_t text_bytes_max = 64u << 10;
/// Pairs in one exchange; real peers send about thirty.
inline constexpr std::size_t text_pairs_max = 256;
/// Login requests a login may take: continued text in pieces of a few octets would go on for ever.
inline constexpr std::size_t login_steps_max = 64;

/// iSCSI names have up to 223 octets (RFC 7143 section 4.2.7.2).
inline constexpr std::size_t name_max = 223;

/// A challenge or a response, as octets (RFC 7143 section 12.1.3), and the least a secret may have.
inline constexpr std::size_t chap_binary_max = 1024;
inline constexpr std::size_t chap_secret_min = 12;
/// What a challenge of ours has. Short, since libiscsi 1.19 over iSER takes no more than 128
/// octets of text in a second login response.
inline constexpr std::size_t chap_challenge_size = 16;

/// Commands an initiator has under way in one session; the target's window may be smaller.
inline constexpr std::uint32_t initiator_commands_max = 128;
/// R2Ts of one command a target may have open with us: what we offer as MaxOutstandingR2T.
inline constexpr std::uint32_t initiator_requests_max = 8;
/// Control PDUs that wait to be sent; above it nothing more is read, since a target that asks
/// without end and takes no answers would otherwise fill our memory.
inline constexpr std::size_t initiator_control_max = 64;
/// The longest data segment of a PDU that is no data: text, sense, what a ping carries.
inline constexpr std::size_t initiator_scratch = 64u << 10;
/// Data-In of one command that may be asked for again at a time (recovery level 1), and how often
/// anything may be, before the connection is taken for useless.
inline constexpr std::size_t initiator_holes_max = 8;
inline constexpr std::size_t initiator_snacks_max = 256;
/// Connections of one session.
inline constexpr std::size_t initiator_connections_max = 8;
/// How often a command that was not carried out for a passing reason is tried again: a unit
/// attention is told once per cause, a full target several times.
inline constexpr unsigned command_attempts_max = 16;
/// How often a command is sent again because its session was lost or its data damaged: one that
/// does that each time is not to be had.
inline constexpr unsigned command_resends_max = 5;
/// And a target that is busy is asked for half a minute.
inline constexpr unsigned busy_attempts_max = 600;
/// Between two tries at a target that is busy.
inline constexpr Duration busy_pause = std::chrono::milliseconds(50);
/// A target that has said nothing for so long is lost; it is pinged when half of that has passed.
inline constexpr Duration target_silence = std::chrono::seconds(10);
/// A command that takes longer is aborted, unless told otherwise; and a target that takes longer to
/// say that it did so is asked for more.
inline constexpr Duration command_patience_usual = std::chrono::seconds(60);
inline constexpr Duration rescue_patience = std::chrono::seconds(15);
/// A login that takes longer has failed.
inline constexpr Duration login_patience = std::chrono::seconds(30);
/// The longest read or write a disk of ours asks for in one command, if the target does not want
/// less; and the longest part of a range it has zeroed or unmapped by one.
inline constexpr std::uint32_t initiator_transfer_max = 8u << 20;
/// The same over RDMA from a target that does not say: what tgtd has buffers for.
inline constexpr std::uint32_t initiator_rdma_transfer_unsaid = 512u << 10;
inline constexpr std::uint32_t initiator_zero_blocks_max = 1u << 22;
/// Extents asked for in one command.
inline constexpr std::size_t initiator_extents_max = 64;
/// Text a target may send about the targets there are, and their number.
inline constexpr std::size_t discovery_bytes_max = 4u << 20;
/// And the answers it may take for that.
inline constexpr std::size_t discovery_exchanges_max = 8192;
/// Blocks of other sizes than these are no disk's.
inline constexpr std::uint32_t block_bytes_min = 512;
inline constexpr std::uint32_t block_bytes_max = 64u << 10;

}  // namespace weft::iscsi
