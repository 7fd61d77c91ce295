// SPDX-License-Identifier: Apache-2.0
// What a box needs of its surroundings to carry out orders: memory that peers can reach, and
// transfers it begins itself. node/ gives both, over RDMA; tests give both in memory.
#pragma once

#include "raid/order_codec.hpp"
#include "weft/buffer.hpp"

namespace weft::raid {

/// A transfer under way: its maker owns it and keeps it until completed() is called, which may be
/// from inside the call that began it.
class PeerTransfer {
public:
    PartyAccess peer{};
    std::uint64_t at = 0;  ///< within the peer's memory, from its base
    Buffer memory{};       ///< ours: a window's, or a landing's

    /// Called exactly once. `disconnected` and `access_denied` mean that the passive side failed.
    virtual void completed(Result<void> outcome) = 0;

protected:
    PeerTransfer() = default;
    ~PeerTransfer() = default;
};

class PeerTransfers {
public:
    virtual void fetch(PeerTransfer& transfer) = 0;  ///< an RDMA Read
    virtual void send(PeerTransfer& transfer) = 0;   ///< an RDMA Write

protected:
    ~PeerTransfers() = default;
};

/// The last octet of a window's tag: another for each of so many transactions in a row.
constexpr std::uint32_t window_keys = 256;

constexpr std::uint32_t window_key(wire::TransactionNumber transaction) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(transaction) % window_keys);
}

/// The tag of a window in a transaction, by the one it has in none.
constexpr SteeringTag tag_in(SteeringTag window, wire::TransactionNumber transaction) {
    return SteeringTag{static_cast<std::uint32_t>(window) | window_key(transaction)};
}

/// A box's windows: memory that is registered under the tag an order names while a request lives,
/// and under none before and after. A late transfer then finds nothing.
class StagingMemory {
public:
    virtual std::uint32_t windows() const = 0;
    virtual std::uint32_t window_limit() const = 0;  ///< octets of one
    /// The window's memory, reachable by peers from now on. `exhausted` if it cannot be made so
    /// now, `malformed` if the tag is not one of this window.
    virtual Result<Buffer> open(std::uint32_t window, SteeringTag tag, std::uint32_t length) = 0;
    virtual void close(std::uint32_t window) = 0;
    /// Memory of `landing_size` for what only passes through; of each window its own.
    virtual Buffer landing(std::uint32_t window) = 0;

    static constexpr std::size_t landing_size = 128 * 1024;

protected:
    ~StagingMemory() = default;
};

}  // namespace weft::raid
