// SPDX-License-Identifier: Apache-2.0
// Takes an NBD server's bytes: greeting, option replies, then replies with the payload of reads.
//
// What follows a reply's header depends on the request it answers, which only the client knows. So
// after each header the client may say what comes: a small body to be looked at, or payload and the
// memory it belongs in. If it says nothing, the next header comes.
#pragma once

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
    ConstBuffer data;  ///< valid until the next filled()
};

/// What expect_body() asked for.
struct ReplyBody {
    ConstBuffer data;  ///< valid until the next filled()
};

/// What expect_payload() asked for is in place.
struct PayloadPlaced {};

class ClientReceiver {
public:
    using Event = std::variant<wire::nbd::Greeting, OptionReply, wire::nbd::SimpleReply,
                               wire::nbd::ChunkHeader, ReplyBody, PayloadPlaced>;

    static constexpr std::size_t body_max = 64u << 10;

    ClientReceiver() { begin_header(Stage::greeting, wire_size<wire::nbd::Greeting>()); }
    ClientReceiver(const ClientReceiver&) = delete;
    ClientReceiver& operator=(const ClientReceiver&) = delete;

    Buffer want() { return stage_ == Stage::payload ? payload_.piece() : part_.subspan(have_); }
    Result<std::optional<Event>> filled(std::size_t count);

    /// The handshake is over: replies follow.
    void begin_replies() { begin_header(Stage::reply, wire_size<wire::nbd::SimpleReply>()); }
    /// `size` octets follow, to be reported as a ReplyBody; at most body_max. Then replies follow,
    /// which makes it fit for the end of an EXPORT_NAME handshake too.
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
    Result<std::optional<Event>> end_part();
    Result<std::optional<Event>> end_option_reply();
    Result<std::optional<Event>> end_reply();

    Stage stage_{};
    std::array<std::byte, wire_size<wire::nbd::ChunkHeader>()> header_{};
    std::vector<std::byte> body_;
    Buffer part_;           ///< the part being received: header_ or body_
    std::size_t have_ = 0;  ///< how much of it has come
    block::ScatterCursor payload_;
    wire::nbd::OptionReplyHeader option_;
};
static_assert(StreamReceiver<ClientReceiver>);

}  // namespace weft::nbd
