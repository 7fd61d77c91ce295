// SPDX-License-Identifier: Apache-2.0
// A command that has come to a box, or the answer that the box has given to it: what a script may
// stop.
#pragma once

#include "raid/order_codec.hpp"

namespace weft::sim {

struct RaidMessage {
    unsigned box = 0;  ///< which machine
    bool is_answer = false;
    wire::ArrayAction action{};
    wire::TransactionNumber transaction{};
    wire::ArrayOrderHeader order{};               ///< of an order
    const raid::EncodedOrder* command = nullptr;  ///< of what has just come to the box
    wire::ArrayOutcome outcome{};                 ///< of an answer

    bool prepares() const { return wire::is_order(action) && order.prepares; }
    /// Commits as part of a write, or because the next controller says so.
    bool commits() const {
        return action == wire::ArrayAction::resolve ||
               (wire::is_order(action) &&
                order.phase == static_cast<std::uint8_t>(raid::Phase::commit));
    }
};

inline RaidMessage message_of(unsigned box, const raid::EncodedOrder& command) {
    RaidMessage message{.box = box,
                        .action = command.command_block.action,
                        .transaction = command.command_block.transaction,
                        .order = {},
                        .command = &command};
    if (wire::is_order(message.action))
        if (auto header = decode<wire::ArrayOrderHeader>(command.parameters))
            message.order = *header;
    return message;
}

}  // namespace weft::sim
