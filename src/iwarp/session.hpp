// SPDX-License-Identifier: Apache-2.0
// A connection in full operation: from the last octet of the start-up frames to the end.
//
// It joins the halves. What arrives goes through the FPDU receiver to the inbound rules; what goes
// out is taken in turns from the answers the peer waits for and from the queue pair's own work. The
// first fault ends it: a Terminate is sent, and then nothing more.
#pragma once

#include <array>
#include <optional>

#include "base/ring.hpp"
#include "iwarp/fpdu_receiver.hpp"
#include "iwarp/fpdu_sender.hpp"
#include "iwarp/inbound.hpp"
#include "iwarp/patience.hpp"
#include "iwarp/terms.hpp"

namespace weft::iwarp {

struct SessionOptions {
    Placement placement = Placement::verified;
    /// TCP's, for peers that may not take larger FPDUs; 0: not known, and no reason to be small.
    std::size_t segment_size = 0;
    Duration receive_patience = limits::receive_patience;
};

/// The largest ULPDU to send under these terms.
std::size_t ulpdu_max(const Terms& terms, std::size_t segment_size);

class Session final : private MessageSource {
public:
    Session(SessionOwner& owner, MemoryTable& memory, Asker asker, FpduBuffers& buffers,
            const Terms& terms, const SessionOptions& options);

    // As StreamEngine has them.
    Buffer want();
    void filled(std::size_t count);
    std::size_t take_ahead(ConstBuffer bytes);
    std::size_t pending(std::span<ConstBuffer> pieces);
    void sent(std::size_t count);
    bool finished() const { return ended_; }
    std::optional<Instant> deadline() const;
    void tick(Instant now);

    /// A receive was posted: one that the peer's message may have waited for.
    void receive_posted();
    /// Ends it with a Terminate that says why.
    void fail(Error why);
    /// Ends it without one: what has begun to go out is completed, and no more.
    void close();

    const Terms& terms() const { return terms_; }
    /// For the send queue: who asks for an answer notes it here, if there is room.
    OutstandingReads& reads() { return reads_; }
    /// Writes of the peer that are here whole, and brought something.
    std::uint64_t writes_received() const { return inbound_.writes_received(); }
    /// Whether the peer's message waits for a receive to be posted.
    bool waits_for_receive() const { return receiver_.is_stalled(); }
    /// Whether bytes of that memory are lent to the network by it.
    bool holds(SteeringTag tag) const { return sender_.holds(tag); }
    /// Whether it has ended because the peer takes nothing, so that there is no use in last words.
    bool is_stuck() const { return stuck_; }

private:
    enum class Origin : std::uint8_t { connection, answer, work };
    struct BufferWaiter final : FpduBufferWaiter {
        explicit BufferWaiter(SessionOwner& owner) : owner_(owner) {}
        void buffer_available() override { owner_.wake(); }

    private:
        SessionOwner& owner_;
    };

    std::optional<Message> next_message() override;
    void message_sent() override;

    bool may_speak() const;
    Message ready_message();
    std::optional<Message> next_answer();
    std::optional<Message> next_work();
    void note(Result<void> outcome);
    void end();
    Quoted quoted_by_peer() const;
    bool gives_way(Instant now);
    /// What it quotes.
    Quoted compose_terminate(const wire::TerminateControl& control);

    SessionOwner& owner_;
    const FpduBuffers& buffers_;
    const Terms terms_;
    OutstandingReads reads_;
    ReadResponder responder_;
    Inbound inbound_;
    BufferWaiter receiver_waits_, sender_waits_;
    FpduReceiver receiver_;
    FpduSender sender_;

    Ring<Origin> under_way_;  ///< whose messages the sender has begun
    bool answer_is_next_ = true;
    bool ready_message_due_;
    bool may_begin_;  ///< even if the peer has not spoken
    bool stuck_ = false;
    bool ended_ = false;  ///< nothing more is received, and no message begins

    Patience fpdu_patience_{limits::fpdu_patience};
    Patience receive_patience_;
    Patience restraint_;  ///< before the first word
    Patience rest_{limits::rest_after};
    Patience receiver_holds_{limits::buffer_patience};
    Patience sender_holds_{limits::buffer_patience};

    bool asking_ = false;               ///< the sender is at work: it cannot be wound up now
    std::optional<Error> fault_found_;  ///< meanwhile
    std::optional<ReadResponder::Asked> refused_read_;  ///< what that fault is about, if a read
    std::array<std::byte, wire_size<wire::ReadRequest>()> ready_body_{};
    std::array<std::byte, wire::terminate_limit> terminate_body_{};
    Buffer body_piece_;  ///< of one of these: the first goes out before the other is needed
    Message::Source body_source_;
};

}  // namespace weft::iwarp
