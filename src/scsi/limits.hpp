// SPDX-License-Identifier: Apache-2.0
// Every bound of the SCSI target, in one place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::scsi {

/// The longest command block there is (SPC-4: 8 octets and an additional length of up to 252).
inline constexpr std::size_t command_block_max = 260;

/// Sense data we make. iSER initiators have room for 126 octets behind its length.
inline constexpr std::size_t sense_max = 124;

/// Parameters of a command of ours, and what is answered to it.
inline constexpr std::size_t vendor_bytes_max = 256u << 10;

inline constexpr std::size_t units_max = 256;
inline constexpr std::uint32_t unit_number_max = 0x3fff;
inline constexpr std::size_t nexuses_max = 1024;
/// Groups of target ports that are reported, and ports in each.
inline constexpr std::size_t port_groups_max = 16;
inline constexpr std::size_t ports_max = 64;

/// Persistent registrations of one unit.
inline constexpr std::size_t registrations_max = 128;

/// Unit attentions that wait for one nexus at one unit.
inline constexpr std::size_t attentions_max = 8;

/// The longest transfer of one command that a unit may be told to offer, and what it offers unless
/// told otherwise.
inline constexpr std::size_t transfer_bytes_max = 16u << 20;
inline constexpr std::size_t transfer_bytes_usual = 8u << 20;

/// Blocks of COMPARE AND WRITE: the field has eight bits.
inline constexpr std::uint32_t compare_and_write_blocks_max = 255;

/// Descriptors of one UNMAP: with its header they fill one pooled buffer of the smallest kind.
inline constexpr std::uint32_t unmap_descriptors_max = 255;

/// What one WRITE SAME can make us write: a bound on how long it can take, not on memory.
inline constexpr std::uint64_t write_same_blocks_max = 0xffff;

/// Memory for parameters and reports, but for those that say otherwise.
inline constexpr std::size_t parameter_bytes = 4096;
inline constexpr std::size_t long_report_bytes = 64u << 10;

/// Pieces in which a unit works through its medium: copies, patterns, erasure.
inline constexpr std::size_t piece_bytes = 1u << 20;

/// The same where the device zeroes by itself.
inline constexpr std::uint64_t zeroes_bytes_max = 256u << 20;

/// Differences of XDWRITE a unit keeps for XDREAD, each of piece_bytes at the most.
inline constexpr std::size_t differences_max = 4;

inline constexpr std::size_t extents_max = 128;  ///< runs told by one GET LBA STATUS

inline constexpr std::uint32_t copy_targets_max = 2;
inline constexpr std::uint32_t copy_segments_max = 16;
inline constexpr std::uint32_t copy_list_bytes_max = 2048;
inline constexpr std::uint64_t copy_segment_bytes_max = 64u << 20;
/// Results of copies a unit keeps, and for how many commands.
inline constexpr std::size_t copy_results_max = 8;
inline constexpr std::uint64_t copy_results_commands = 64;

}  // namespace weft::scsi
