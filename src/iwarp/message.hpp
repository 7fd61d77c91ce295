// SPDX-License-Identifier: Apache-2.0
// One RDMAP message on its way out: what the sender cuts into segments.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "iwarp/memory_range.hpp"
#include "weft/registered_memory.hpp"
#include "wire/ddp.hpp"

namespace weft::iwarp {

/// Pieces of registered memory one message may gather; the most a request may have.
inline constexpr std::size_t ranges_per_message = 16;

struct Message {
    wire::RdmapOpcode opcode{};
    SteeringTag tag{};         ///< tagged: where it goes; a Send that invalidates: what
    std::uint64_t offset = 0;  ///< tagged: where in it

    struct Source {
        MemoryRange bytes;
        SteeringTag tag{};  ///< to be held while the bytes are lent; 0: no region's memory
    };
    /// The bytes it carries, in order: less than 4 GiB. A body such as a Read Request's is payload
    /// too: see wire/rdmap.hpp. The list stays where it is until the next message is asked for, or
    /// wind_up(). The bytes stay as StreamEngine::pending() says: if message_sent() never comes, to
    /// the end of the stream.
    std::span<const Source> payload = {};
};

/// Whence the sender takes its messages. Asked only when the one before is wholly cut up. It may
/// call wind_up() from inside either function, but none of the sender's others.
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
