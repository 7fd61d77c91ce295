// SPDX-License-Identifier: Apache-2.0
// The names of registered memory and what may be done with it: what travels on the wire and what an
// application holds in its hands are the same words.
#pragma once

#include <cstdint>

namespace weft {

/// Names registered memory: a 24-bit index and, in the low octet, a key that changes whenever the
/// index is used again, so that an old tag does not open new memory. Never 0.
enum class SteeringTag : std::uint32_t {};

/// The tag that names no region but all memory of this process, by its plain addresses: for what is
/// sent from memory that is not worth registering. It counts in the local pieces of Sends and
/// Writes only, on queue pairs that were made for it (QueuePairOptions::sends_own_memory). The
/// table of tags has no entry for it, so no peer can ever use it, and nothing can come in by it.
inline constexpr SteeringTag own_memory{0};

/// What may be done with registered memory. Its owner may always read it.
enum class Rights : std::uint8_t {
    local_read = 0,
    local_write = 1 << 0,
    remote_read = 1 << 1,
    remote_write = 1 << 2,
    remote_atomic = 1 << 3,
    bind_windows = 1 << 4,
};
constexpr Rights operator|(Rights a, Rights b) {
    return static_cast<Rights>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr Rights operator&(Rights a, Rights b) {
    return static_cast<Rights>(static_cast<std::uint8_t>(a) & static_cast<std::uint8_t>(b));
}
/// Whether `held` has all of `asked`.
constexpr bool allows(Rights held, Rights asked) {
    return (held & asked) == asked;
}

/// How offsets into a region are counted.
enum class Addressing : std::uint8_t {
    by_address,  ///< an offset is the address the owner knows the byte by
    from_zero,   ///< an offset counts from the region's first byte
};

}  // namespace weft
