// SPDX-License-Identifier: Apache-2.0
// One RDMAP message on its way out: what the sender cuts into segments.
#pragma once

#include <array>

#include "iwarp/memory_range.hpp"
#include "wire/ddp.hpp"

namespace weft::iwarp {

/// Pieces of registered memory one message may gather; the most a request may have.
inline constexpr std::size_t ranges_per_message = 16;

struct Message {
    wire::RdmapOpcode opcode{};
    SteeringTag tag{};         ///< tagged: where it goes; a Send that invalidates: what
    std::uint64_t offset = 0;  ///< tagged: where in it
    /// The payload, in order; the tags are those to hold while the bytes are lent. A body such as a
    /// Read Request's is payload too: see wire/rdmap.hpp.
    struct Source {
        MemoryRange bytes;
        SteeringTag tag{};  ///< 0: no region's memory, nothing to hold
    };
    std::span<const Source> payload;  ///< stays where it is until message_sent()
};

/// Whence the sender takes its messages. Asked only when the one before is wholly cut up.
class MessageSource {
public:
    /// The next message, if one may go now. It counts as begun.
    virtual std::optional<Message> next_message() = 0;
    /// The oldest message that had begun has been handed to TCP whole.
    virtual void message_sent() = 0;

protected:
    ~MessageSource() = default;
};

}  // namespace weft::iwarp
