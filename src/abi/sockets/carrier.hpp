// SPDX-License-Identifier: Apache-2.0
// What a stream needs of a queue pair, and how it learns that a request has ended.
#pragma once

#include <cstdint>
#include <span>

#include "abi/sockets/messages.hpp"
#include "weft/buffer.hpp"

namespace weft::abi::sockets {

/// What comes back to the stream when a request has ended: kept in the request's id, so that the
/// stream need not remember what is under way.
struct Receipt {
    std::uint8_t data_entries = 0;     ///< of the send queue
    std::uint8_t control_entries = 0;  ///< of those kept for control
    bool ends_connection = false;
    std::uint32_t ring_bytes = 0;  ///< of the send buffer

    constexpr std::uint64_t id() const {
        return static_cast<std::uint64_t>(ring_bytes) << 32 | data_entries << 16 |
               control_entries << 8 | (ends_connection ? 1 : 0);
    }
    static constexpr Receipt of(std::uint64_t id) {
        return {.data_entries = static_cast<std::uint8_t>(id >> 16),
                .control_entries = static_cast<std::uint8_t>(id >> 8),
                .ends_connection = (id & 1) != 0,
                .ring_bytes = static_cast<std::uint32_t>(id >> 32)};
    }
    bool operator==(const Receipt&) const = default;
};

/// The pieces it is given are of the send buffer, or short enough to go inline.
class Carrier {
public:
    virtual bool say(Message message, Receipt receipt) = 0;
    /// An RDMA Write, and a message that tells of it.
    virtual bool write_and_say(std::span<const ConstBuffer> pieces, const Window& to,
                               Message message, Receipt receipt) = 0;
    virtual bool write(std::span<const ConstBuffer> pieces, const Window& to, Receipt receipt) = 0;

protected:
    ~Carrier() = default;
};

}  // namespace weft::abi::sockets
