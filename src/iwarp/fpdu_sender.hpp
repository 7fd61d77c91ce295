// SPDX-License-Identifier: Apache-2.0
// Cuts messages into DDP segments, wraps each in an FPDU (RFC 5044) and lends them out for sending.
//
// Nothing is copied: an FPDU is lent as its header (scratch), its payload (registered memory, piece
// by piece) and its trailer (scratch). Several may be lent at once, so that one sendmsg carries
// many. Towards a peer that asked for markers each FPDU is built in a buffer of its own instead:
// markers stand amid the payload.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "iwarp/memory_table.hpp"
#include "iwarp/message.hpp"

namespace weft::iwarp {

struct FpduSenderOptions {
    bool checksum = true;
    bool markers = false;
    std::size_t ulpdu_max = 0;  ///< see wire::largest_ulpdu; header and payload of one segment
};

class FpduSender {
public:
    FpduSender(MessageSource& source, MemoryTable& memory, const FpduSenderOptions& options);
    ~FpduSender();  ///< releases what it held

    /// As StreamEngine::pending(): takes messages from the source as room allows.
    std::size_t pending(std::span<ConstBuffer> pieces);
    void sent(std::size_t count);

    /// Whether an FPDU has been sent in part: what may be said next must wait for its end.
    bool amid_fpdu() const;
    /// Takes no more messages, and drops the FPDUs not begun; the one amid is still completed.
    /// `last`, if there is one, goes out after it: a Terminate.
    void wind_up(std::optional<Message> last);
    /// Nothing more will ever be pending.
    bool is_wound_up() const;
};

}  // namespace weft::iwarp
