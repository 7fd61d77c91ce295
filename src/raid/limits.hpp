// SPDX-License-Identifier: Apache-2.0
// The bounds of the array. A host's longer request is cut by whoever takes it from the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::raid::limits {

inline constexpr std::uint8_t boxes = 18;    ///< of a volume: 16 with data and two with parity
inline constexpr std::uint8_t mirrors = 4;   ///< copies of a mirror
inline constexpr std::uint8_t absences = 3;  ///< boxes a volume may lack: a mirror of four
inline constexpr std::uint32_t chunk_bytes = 16u << 20;
inline constexpr std::uint32_t request_bytes = 1u << 20;  ///< one transaction
inline constexpr std::size_t pieces_per_order = 4096;
inline constexpr std::size_t parties_per_order = 24;  ///< every box, a host, the controller

inline constexpr std::size_t orders_per_window = 1024;  ///< waiting at a box, of one request
inline constexpr std::size_t requests = 1024;           ///< a volume takes at a time, about

inline constexpr std::uint64_t regions = 1u << 16;  ///< of stripes, in maps of what was written
inline constexpr std::uint64_t lasting_regions = 1u << 12;  ///< of such maps as the store has them
inline constexpr std::uint8_t stripes_ahead = 32;  ///< rebuilt at a time, beyond the first missing
inline constexpr unsigned heals = 1024;            ///< of blocks, for one request
inline constexpr unsigned refusals = 100;          ///< to hear what the volume is, before it is too

/// What a box's journal keeps at a time: transactions it was told to prepare, and those it was told
/// to forget without having heard of them. Together they fit into one answer.
inline constexpr std::size_t journal_transactions = 1024;
inline constexpr std::size_t journal_blocks = 1024;           ///< of 4 KiB, in one record
inline constexpr std::size_t journal_group_bytes = 4u << 20;  ///< written at once, about
inline constexpr std::size_t checksum_pages = 1024;           ///< kept in memory, of 4 KiB

inline constexpr std::size_t executed_commands = 4096;  ///< of a host, known not to be done twice
inline constexpr std::size_t executed_kept = 8192;      ///< in the store, of a volume
inline constexpr std::size_t executed_hosts = 256;      ///< that is known of, of a volume

}  // namespace weft::raid::limits
