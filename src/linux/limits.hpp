// SPDX-License-Identifier: Apache-2.0
// Every bound of this folder in one place: how much one turn of the loop may do before the others
// get theirs, and how long each queue may grow.
#pragma once

#include <chrono>
#include <cstddef>

namespace weft::linux::limits {

// One turn of the loop.
inline constexpr int events_per_turn = 64;  ///< descriptors answered
inline constexpr int rounds_per_turn = 4;   ///< served again when disks answered at once
inline constexpr std::size_t deferred_tasks = 1u << 20;

// Polling. Reading from one connection in vain takes about a quarter of a microsecond.
/// Connections tried by reading: with more of them, asking epoll for all at once is cheaper.
inline constexpr std::size_t hot_connections = 8;
/// Tries between two questions to epoll, which is how long a timer, a disk, a newcomer or a
/// connection that is not hot may wait: some ten microseconds.
inline constexpr std::size_t tries_between_looks = 32;
/// Tries before a silent connection is left to epoll: about a millisecond of polling it alone.
inline constexpr unsigned fruitless_tries_while_hot = 4096;

// Streams.
/// Read ahead of what was wanted. Twice this saves no more calls; half of it costs 64 KiB writes a
/// tenth of their speed.
inline constexpr std::size_t staging_bytes = 128 * 1024;
/// Amid long payloads, what is read ahead only has to hold the next header: the more of the next
/// payload lands in staging, the more must be copied out of it.
inline constexpr std::size_t long_payload_bytes = 32 * 1024;
inline constexpr std::size_t staging_bytes_amid_long_payloads = 2 * 1024;
inline constexpr unsigned reads_after_a_long_payload = 3;
/// Places up to this size are filled by a copy from staging.
inline constexpr std::size_t small_place_bytes = 1024;
inline constexpr std::size_t receive_bytes_per_turn = 1024 * 1024;
inline constexpr int receive_calls_per_turn = 16;
inline constexpr std::size_t send_bytes_per_turn = 4 * 1024 * 1024;
inline constexpr std::size_t send_pieces = 128;
/// What a Unix socket holds for a reader who is busy. The usual 208 KiB is less than one long
/// reply: with more, 256 KiB reads at depth 16 are a seventh faster.
inline constexpr int unix_send_bytes = 1024 * 1024;

// Sockets that were finished with while the peer may still be sending.
inline constexpr std::size_t lingering_sockets = 256;
inline constexpr std::chrono::seconds linger_time{1};
inline constexpr std::size_t linger_bytes = 64 * 1024 * 1024;
inline constexpr std::size_t linger_bytes_per_turn = 1024 * 1024;

// TCP asks a silent peer whether it is still there, and gives it up after two minutes in all.
inline constexpr int keepalive_idle_s = 60;
inline constexpr int keepalive_interval_s = 10;
inline constexpr int keepalive_probes = 6;

// Listeners.
inline constexpr int accepts_per_turn = 16;
inline constexpr std::chrono::milliseconds accept_pause{100};  ///< when descriptors ran out

// Files.
inline constexpr unsigned ring_depth = 256;  ///< operations the kernel holds at once
inline constexpr unsigned file_threads = 4;  ///< where there is no ring
inline constexpr std::size_t operations_per_disk = 64;
inline constexpr std::size_t waiting_requests_per_disk = 64 * 1024;
inline constexpr std::size_t pieces_per_operation = 32;
inline constexpr std::size_t bytes_per_operation = 8 * 1024 * 1024;
inline constexpr std::size_t brief_read_bytes = 256 * 1024;
/// A 64 KiB write costs a third less in place than handed over, one of a megabyte the same.
inline constexpr std::size_t brief_write_bytes = 128 * 1024;
/// A write in place that took this long has waited for the disk. Then the engine does them all for
/// so many times as long: waiting takes no more than a fiftieth of the loop's time.
inline constexpr std::chrono::milliseconds slow_in_place{1};
inline constexpr int patience_after_a_slow_one = 50;
inline constexpr std::size_t small_file_bytes = 16 * 1024 * 1024;  ///< read as a whole
inline constexpr std::size_t replacements_waiting = 1024;
inline constexpr std::size_t bounce_bytes = 256 * 1024;  ///< direct I/O from unaligned memory
inline constexpr std::size_t zero_bytes = 64 * 1024;     ///< the zeroes written where none are made

}  // namespace weft::linux::limits
