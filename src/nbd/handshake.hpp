// SPDX-License-Identifier: Apache-2.0
// The server's side of option haggling: an option comes in, replies go into the outbox.
#pragma once

#include <string>
#include <variant>

#include "nbd/export.hpp"
#include "nbd/outbox.hpp"
#include "nbd/server_receiver.hpp"

namespace weft::nbd {

/// What client and server agreed to speak.
struct Dialect {
    bool structured_replies = false;
    bool allocation_status = false;  ///< "base:allocation" was chosen
};

class Handshake {
public:
    static constexpr std::uint32_t allocation_context_id = 1;

    explicit Handshake(const Exports& exports) : exports_(exports) {}

    void greet(Outbox& out) const;
    Result<void> flags(wire::nbd::ClientFlags flags);

    enum class Next : std::uint8_t { more_options, transmission, goodbye };
    /// Answers one option. An error means the client broke the protocol and must be dropped.
    Result<Next> option(const ReceivedOption& received, Outbox& out);

    /// What was chosen, once option() answered `transmission`.
    const Export& chosen() const { return *chosen_; }
    const Dialect& dialect() const { return dialect_; }

private:
    struct Question;  // an option under way, with its way to answer

    Result<Next> export_name(std::string_view name, Outbox& out);
    void list(Question& question);
    bool info(Question& question, bool go);
    void structured_reply(Question& question);
    void meta_context(Question& question, bool set);

    const Exports& exports_;
    const Export* chosen_ = nullptr;
    Dialect dialect_;
    std::string allocation_export_;  ///< the export whose allocation status was asked for
    std::size_t options_seen_ = 0;
    bool no_zeroes_ = false;
    bool fixed_newstyle_ = false;
};

}  // namespace weft::nbd
