// SPDX-License-Identifier: Apache-2.0
// Every bound of the iSCSI target, in one place; what both roles share is in limits.hpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/instant.hpp"

namespace weft::iscsi {

/// Commands of a session under way: its window while all is quiet.
inline constexpr std::uint32_t command_window = 128;
/// Answers that may wait to be sent beyond that, before the window stays closed.
inline constexpr std::uint32_t unsent_answers_max = 128;
/// Immediate commands of a session at a time. More are refused by Reject.
inline constexpr std::uint32_t immediate_commands_max = 16;
/// Task slots of a session: all of the above.
inline constexpr std::uint32_t session_tasks_max =
    command_window + unsent_answers_max + immediate_commands_max;
/// Places of the list in which a task is found by its tag: more than there are tasks.
inline constexpr std::size_t task_list_size = 512;
/// Task management functions of a session at a time.
inline constexpr std::size_t managements_max = 32;

/// R2Ts of one command that may wait for their data; what we offer as MaxOutstandingR2T.
inline constexpr std::size_t outstanding_requests_bound = 4;
/// Parts of one command's data that may be asked for again at a time (error recovery level 1).
inline constexpr std::size_t holes_max = 8;

/// PDUs that have gone and are not acknowledged, at error recovery level 1: every task's, and as
/// many others. An initiator that lets more of them pile up acknowledges nothing.
inline constexpr std::uint32_t kept_answers_max = 2 * session_tasks_max;

/// Control PDUs that wait to be sent, above which nothing is received.
inline constexpr std::size_t unsent_control_max = 64;
/// The longest data segment of a PDU that is no data: NOP-Out, Text.
inline constexpr std::size_t control_segment_max = 16u << 10;
/// Sense data in a response, with its length.
inline constexpr std::size_t sense_segment_max = 256;

inline constexpr std::uint32_t connections_per_session_max = 8;
inline constexpr std::size_t sessions_max = 1024;
/// Logins under way at a time, and how long one may take.
inline constexpr std::size_t logins_max = 256;
inline constexpr Duration login_time = std::chrono::seconds(15);

/// After so long without a word from the initiator we ping it; after so long again it is gone.
inline constexpr Duration ping_after = std::chrono::seconds(30);
inline constexpr Duration ping_patience = std::chrono::seconds(30);
/// How long an initiator that was asked to log out may take.
inline constexpr std::uint16_t logout_seconds = 3;
/// How long the last words on a connection may take to be taken by who stopped listening.
inline constexpr Duration farewell_time = std::chrono::seconds(10);
/// How long an initiator may keep us waiting for data of a command that was aborted meanwhile.
inline constexpr Duration abandoned_data_patience = std::chrono::seconds(5);

/// A failed authentication is answered so much later, counted by where it comes from, and
/// doubled each time up to the most: guessing takes time.
inline constexpr Duration guess_delay = std::chrono::seconds(1);
inline constexpr Duration guess_delay_max = std::chrono::seconds(8);
inline constexpr std::size_t guessers_max = 1024;

inline constexpr std::size_t targets_max = 1024;
inline constexpr std::size_t portals_max = 64;

/// What we take in one data segment, in one burst, and unasked for.
inline constexpr std::uint32_t segment_bytes = 256u << 10;
inline constexpr std::uint32_t burst_bytes = 1u << 20;
inline constexpr std::uint32_t first_burst_bytes = 256u << 10;

}  // namespace weft::iscsi
