// SPDX-License-Identifier: Apache-2.0
// The client's side of option haggling: ask for structured replies, for allocation status, then go.
//
// Servers that lack an option refuse it and the next is tried; a server too old for GO is asked
// with EXPORT_NAME.
#pragma once

#include <string>

#include "nbd/client_receiver.hpp"
#include "nbd/limits.hpp"
#include "nbd/outbox.hpp"

namespace weft::nbd {

/// What the server said of the export, and what both agreed to speak.
struct Agreement {
    std::uint64_t size = 0;
    wire::nbd::TransmissionFlags flags;
    wire::nbd::InfoBlockSize blocks{1, 4096, transfer_max};
    bool structured_replies = false;
    std::optional<std::uint32_t> allocation_context;
};

class ClientHandshake {
public:
    explicit ClientHandshake(std::string export_name) : export_name_(std::move(export_name)) {}

    enum class Next : std::uint8_t { more, transmission, refused };
    Result<Next> greeting(const wire::nbd::Greeting& greeting, ClientReceiver& receiver,
                          Outbox& out);
    Result<Next> option_reply(const OptionReply& reply, ClientReceiver& receiver, Outbox& out);
    /// The end of an EXPORT_NAME handshake.
    Result<Next> export_name_reply(const ReplyBody& body);

    /// Says that we leave, where the protocol has a word for it: between greeting and export.
    void abort(Outbox& out);

    const Agreement& agreement() const { return agreement_; }
    /// Once `refused`: what that means to us, and the server's own words if it gave some.
    Error refusal_error() const { return refusal_error_; }
    const std::string& refusal() const { return refusal_; }

private:
    void ask(wire::nbd::Option option, std::size_t size, Outbox& out);
    void ask_for_allocation_status(Outbox& out);
    void ask_to_go(Outbox& out);
    void ask_by_name(ClientReceiver& receiver, Outbox& out);
    Result<Next> context_reply(const OptionReply& reply, Outbox& out);
    Result<void> note_info(ConstBuffer data);

    std::string export_name_;
    Agreement agreement_;
    std::string refusal_;
    Error refusal_error_{.code = Code::access_denied};
    wire::nbd::Option asked_{};
    std::size_t replies_seen_ = 0;
    bool no_zeroes_ = false;
    bool size_known_ = false;
};

}  // namespace weft::nbd
