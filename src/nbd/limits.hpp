// SPDX-License-Identifier: Apache-2.0
// Every bound of the NBD server and client, in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/instant.hpp"

namespace weft::nbd {

/// The longest read or write: what nbdkit, qemu and the kernel allow too.
inline constexpr std::uint32_t transfer_max = 32u << 20;

/// Requests a connection may have under way. libnbd and qemu keep 16 to 64.
inline constexpr std::size_t requests_in_flight_max = 128;

/// Payload a connection may make us hold, when the device cannot lend its own memory.
inline constexpr std::size_t payload_bytes_max = 64u << 20;

/// Payload all connections of a server together may make us hold, unless its holder says
/// otherwise; and the least it may say, so that one client alone can have the longest transfer.
/// The whole is this and a reserve for each connection (docs/decisions/payload-memory.md).
inline constexpr std::size_t pool_bytes = 1u << 30;
inline constexpr std::size_t pool_bytes_min = 2 * std::size_t{transfer_max};
/// What a connection that holds nothing may ask for and have at once, whatever others hold.
inline constexpr std::size_t reserve_bytes = 256u << 10;
/// How long a request waits for memory others hold. Then it is answered "no memory".
inline constexpr Duration memory_patience = std::chrono::seconds(30);

/// A refused write of up to this size is read to its end and answered; a larger one ends the
/// connection, since a client that far off is not speaking to us.
inline constexpr std::uint64_t refused_payload_max = 64u << 20;

/// An option's data: the longest legal name and a few dozen meta context queries.
inline constexpr std::size_t option_bytes_max = 16u << 10;
/// A longer option is read to its end and answered "too big" up to here; then we hang up.
inline constexpr std::size_t option_skip_max = 1u << 20;
/// Options one client may try. Real ones need fewer than ten, but for a lister, which asks a few
/// for each export.
inline constexpr std::size_t options_max = 8192;
/// Option replies waiting to be sent, above which no further option is read.
inline constexpr std::size_t option_replies_bytes_max = 64u << 10;
/// How long a client may take to say what it wants.
inline constexpr Duration handshake_time = std::chrono::seconds(30);
/// Clients of one server that have not said it yet. One more, and the oldest of them is hung up.
inline constexpr std::size_t handshakes_max = 256;

/// A server that owes us an answer and gives no sign of life for this long, twice in a row at the
/// most, is given up. Long, because a flush of a slow array may take most of a minute.
inline constexpr Duration server_patience = std::chrono::seconds(60);

/// How long a server may take, from the first connection attempt to the end of the handshake, even
/// if it gives signs of life: one that says an octet a minute never ends.
inline constexpr Duration server_handshake_time = std::chrono::seconds(60);
/// Option replies one server may give us. Real ones give fewer than ten.
inline constexpr std::size_t server_option_replies_max = 256;

/// Extents told in one block status reply. Clients ask again for the rest.
inline constexpr std::size_t extents_max = 512;

inline constexpr std::size_t exports_max = 1024;

}  // namespace weft::nbd
