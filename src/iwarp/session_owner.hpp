// SPDX-License-Identifier: Apache-2.0
// What a connection in full operation asks of the queue pair it serves.
#pragma once

#include <optional>

#include "iwarp/message.hpp"
#include "weft/verbs.hpp"
#include "wire/ddp.hpp"
#include "wire/terminate.hpp"

namespace weft::iwarp {

/// A receive the application posted. It stays where it is until receive_ended().
struct PostedReceive {
    std::uint64_t id = 0;
    std::span<const verbs::LocalMemory> local;
};

/// How a receive ended.
struct ReceiveOutcome {
    verbs::Status status = verbs::Status::success;
    verbs::Ended what = verbs::Ended::received;
    bool solicited = false;
    std::uint32_t bytes = 0;
    std::uint32_t immediate = 0;
    std::optional<SteeringTag> invalidated{};
};

/// What a Terminate quotes of the message it is about, as far as it does. The number of an untagged
/// message of ours counts those of next_work() only.
struct Quoted {
    std::optional<wire::Segment> header{};
    std::optional<wire::ReadRequest> read_request{};
};

/// Who found the fault.
enum class FaultOf : std::uint8_t { us, peer };

class SessionOwner {
public:
    /// The next message of the send queue, if one may go now; MessageSource's rules.
    virtual std::optional<Message> next_work() = 0;
    /// The oldest message of next_work() has been handed to TCP whole: none of its bytes is lent
    /// any more. Never comes for a message that the end of the session cut short.
    virtual void work_sent() = 0;
    /// The oldest read or atomic under way has its answer: `original` is an atomic's.
    virtual void read_ended(std::uint64_t original) = 0;
    /// Its answer came, and the memory for it was gone: our own fault. The session fails of it.
    virtual void read_failed() = 0;

    /// The oldest posted receive, for a message that begins; null if there is none.
    virtual const PostedReceive* take_receive() = 0;
    virtual void receive_ended(const ReceiveOutcome& outcome) = 0;

    /// The session wants to be asked again for bytes to send or a place for them to go.
    virtual void wake() = 0;
    /// The first whole FPDU of the peer has come: now a responder knows that the peer is ready.
    virtual void peer_spoke() = 0;
    /// The connection is over because of `why`, which a Terminate tells the peer; or, if it came
    /// from the peer, which the peer's Terminate told us: then `about` is a message of ours, else
    /// one of the peer's.
    /// Called once, and nothing after it but work_sent(), for what the stream had already.
    virtual void session_failed(const wire::TerminateControl& why, FaultOf whose,
                                const Quoted& about) = 0;

protected:
    ~SessionOwner() = default;
};

}  // namespace weft::iwarp
