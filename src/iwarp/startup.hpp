// SPDX-License-Identifier: Apache-2.0
// MPA's opening (RFC 5044 section 7, RFC 6581): one frame each way, then FPDUs.
//
// The initiator's frame goes at once; the responder's when the application has seen the request and
// decided. Nothing of what follows a frame is read here: want() asks for exactly the frame.
//
// The peer's frame must be whole within Wishes::patience of the connection, however many pieces it
// comes in. Once this has said how it ended, unless by an error after which the stream is just
// closed, it may be dropped: none of its bytes is lent then.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "iwarp/negotiation.hpp"
#include "weft/buffer.hpp"

namespace weft::iwarp {

enum class StartupEvent : std::uint8_t {
    requested,    ///< responder: the peer's frame is here; accept() or reject()
    established,  ///< initiator: accepted. Responder: our accepting frame is wholly sent
    /// Initiator: the application there does not want us. Responder: our rejection is wholly sent.
    /// Either way the stream has served its purpose.
    rejected,
};

/// Whether a peer whose frame was refused for this is to hear of it in a Terminate (RFC 6581
/// section 8).
bool is_to_be_explained(Error why);

class Startup {
public:
    // `now`: when the connection was made; the peer's frame is waited for from then on. Refused as
    // check_wishes() does, and for private data that is too long: see accept().
    static Result<Startup> initiate(const Wishes& wishes, ConstBuffer private_data, Instant now);
    static Result<Startup> respond(const Wishes& wishes, Instant now);
    // May be moved at any time: what it lends stays where it is.
    Startup(Startup&&) = default;
    Startup& operator=(Startup&&) = default;

    Buffer want();
    /// An Error that is_to_be_explained() comes only when our frame is sent; the Terminate goes in
    /// an FPDU as terms() say. After any other the peer does not know how to read one, and the
    /// stream is just closed.
    Result<std::optional<StartupEvent>> filled(std::size_t count);
    std::size_t pending(std::span<ConstBuffer> pieces);
    /// The end comes from here if our frame is the last thing to be waited for.
    Result<std::optional<StartupEvent>> sent(std::size_t count);
    /// None while the application decides.
    std::optional<Instant> deadline() const;
    /// Code::timed_out when the peer has taken too long to send its frame, or to take our reply.
    Result<void> tick(Instant now);

    // After `requested`, until one of them succeeds:
    /// Refused (Code::out_of_range) if the private data is too long: 512 octets, or 508 where the
    /// request was enhanced. Linux takes 252.
    Result<void> accept(const Wishes& wishes, ConstBuffer private_data, Instant now);
    Result<void> reject(ConstBuffer private_data, Instant now);

    /// What the peer's application sent along; after `requested`, `established` or `rejected`.
    ConstBuffer peer_private_data() const { return peer_private_data_; }
    /// The reads the peer serves and wants, as its frame has them, for applications to look at;
    /// none if the peer did not say.
    std::optional<std::uint16_t> peer_inbound_reads() const;
    std::optional<std::uint16_t> peer_outbound_reads() const;
    /// What was agreed; after `established`, or after accept().
    const Terms& terms() const { return terms_; }

private:
    enum class Stage : std::uint8_t {
        header,        ///< of the peer's frame
        private_data,  ///< behind it
        deciding,      ///< responder: the application does
        sending,       ///< all is decided; our frame is not wholly sent
        over,
        failed,
    };

    Startup(Role role, const Wishes& wishes, Instant now);
    bool is_reading() const { return stage_ == Stage::header || stage_ == Stage::private_data; }
    Result<void> take_header();
    Result<std::optional<StartupEvent>> take_frame();
    Result<StartupEvent> conclude_reply();
    Result<void> answer(const StartupFrame& reply, ConstBuffer private_data, Instant until);
    Result<void> write(const StartupFrame& frame, ConstBuffer private_data);
    Result<std::optional<StartupEvent>> end_once_sent();
    Error fail(Error error);

    Role role_;
    Stage stage_ = Stage::header;
    Wishes wishes_;
    Instant deadline_;
    std::vector<std::byte> incoming_;  ///< as long as the part of the frame that is known of
    std::size_t received_ = 0;
    std::vector<std::byte> outgoing_;
    std::size_t sent_ = 0;
    Result<StartupEvent> ending_ = StartupEvent{};  ///< how it ends, once our frame is sent
    StartupFrame from_peer_;
    ConstBuffer peer_private_data_;  ///< inside incoming_
    Terms terms_;
};

}  // namespace weft::iwarp
