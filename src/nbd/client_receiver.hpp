// SPDX-License-Identifier: Apache-2.0
// Takes an NBD server's bytes: greeting, option replies, then replies with the payload of reads.
//
// What follows a reply's header depends on the request it answers, which only the client knows. So
// after each header the client may say what comes: a small body to be looked at, or payload and the
// memory it belongs in. If it says nothing, the next header comes.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "base/stream_receiver.hpp"
#include "block/scatter.hpp"
#include "wire/nbd.hpp"

namespace weft::nbd {

struct OptionReply {
    wire::nbd::OptionReplyHeader header;
    ConstBuffer data;  ///< valid until want() is asked again
};

/// What expect_body() asked for, or the first body_max octets of it.
struct ReplyBody {
    ConstBuffer data;  ///< valid until want() is asked again
};

/// What expect_payload() asked for is in place.
struct PayloadPlaced {};

class ClientReceiver {
public:
    using Event = std::variant<wire::nbd::Greeting, OptionReply, wire::nbd::SimpleReply,
                               wire::nbd::ChunkHeader, ReplyBody, PayloadPlaced>;

    /// Room for 8192 extents, the longest thing a server has to say.
    static constexpr std::size_t body_max =
        wire_size<wire::nbd::MetaContextId>() + 8192 * wire_size<wire::nbd::StatusDescriptor>();

    ClientReceiver() { begin_header(Stage::greeting, wire_size<wire::nbd::Greeting>()); }
    ClientReceiver(const ClientReceiver&) = delete;
    ClientReceiver& operator=(const ClientReceiver&) = delete;

    Buffer want() { return stage_ == Stage::payload ? payload_.piece() : part_.subspan(have_); }
    Result<std::optional<Event>> filled(std::size_t count);

    /// The handshake is over: replies follow.
    void begin_replies() { begin_header(Stage::reply, wire_size<wire::nbd::SimpleReply>()); }
    /// `size` octets follow, to be reported as a ReplyBody; what exceeds body_max is read and
    /// forgotten. Then replies follow, which makes it fit for the end of an EXPORT_NAME handshake
    /// too.
    void expect_body(std::size_t size);
    /// Payload follows and belongs there.
    void expect_payload(block::ScatterCursor place);

private:
    enum class Stage : std::uint8_t {
        greeting,
        option_reply,
        option_data,
        reply,       ///< as much as a simple reply has: enough to see which kind it is
        chunk_tail,  ///< the four octets a structured reply's header has more
        body,
        body_skip,  ///< the rest of a body too long to keep
        payload,
    };

    void begin(Stage stage, Buffer part) { stage_ = stage, part_ = part, have_ = 0; }
    void begin_header(Stage stage, std::size_t size) { begin(stage, Buffer(header_).first(size)); }
    void begin_body(Stage stage, std::size_t size) {
        body_.resize(size);
        begin(stage, body_);
    }
    void begin_option_reply() {
        begin_header(Stage::option_reply, wire_size<wire::nbd::OptionReplyHeader>());
    }
    void begin_skip() {
        begin(Stage::body_skip, Buffer(body_).first(std::min(skip_left_, body_.size())));
    }
    Result<std::optional<Event>> end_part();
    Result<std::optional<Event>> end_option_reply();
    Result<std::optional<Event>> end_reply();

    Stage stage_{};
    std::array<std::byte, wire_size<wire::nbd::ChunkHeader>()> header_{};
    std::vector<std::byte> body_;
    Buffer part_;           ///< the part being received: header_ or body_
    std::size_t have_ = 0;  ///< how much of it has come
    std::size_t skip_left_ = 0;
    block::ScatterCursor payload_;
    wire::nbd::OptionReplyHeader option_;
};
static_assert(StreamReceiver<ClientReceiver>);

}  // namespace weft::nbd
