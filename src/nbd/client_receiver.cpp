// SPDX-License-Identifier: Apache-2.0
#include "nbd/client_receiver.hpp"

namespace weft::nbd {

using namespace wire::nbd;

void ClientReceiver::expect_body(std::size_t size) {
    WEFT_CHECK(size > 0);
    auto kept = std::min(size, body_max);
    skip_left_ = size - kept;
    begin_body(Stage::body, kept);
}

void ClientReceiver::expect_payload(block::ScatterCursor place) {
    WEFT_CHECK(place.left() > 0);
    payload_ = place;
    stage_ = Stage::payload;
}

Result<std::optional<ClientReceiver::Event>> ClientReceiver::filled(std::size_t count) {
    WEFT_CHECK(count > 0 && count <= want().size());
    if (stage_ == Stage::payload) {
        payload_.advance(count);
        if (payload_.left() > 0) return std::optional<Event>{};
        begin_replies();
        return std::optional<Event>(PayloadPlaced{});
    }
    have_ += count;
    if (have_ < part_.size()) return std::optional<Event>{};
    return end_part();
}

Result<std::optional<ClientReceiver::Event>> ClientReceiver::end_part() {
    switch (stage_) {
        case Stage::greeting: {
            WEFT_TRY(auto greeting, decode<Greeting>(part_));
            begin_option_reply();
            return std::optional<Event>(greeting);
        }
        case Stage::option_reply:
            return end_option_reply();
        case Stage::option_data:
            begin_option_reply();
            return std::optional<Event>(OptionReply{option_, body_});
        case Stage::reply:
            return end_reply();
        case Stage::chunk_tail: {
            WEFT_TRY(auto chunk, decode<ChunkHeader>(header_));
            begin_replies();
            return std::optional<Event>(chunk);
        }
        case Stage::body:
            if (skip_left_ > 0)
                begin_skip();
            else
                begin_replies();
            return std::optional<Event>(ReplyBody{body_});
        case Stage::body_skip:
            skip_left_ -= part_.size();
            if (skip_left_ > 0)
                begin_skip();
            else
                begin_replies();
            return std::optional<Event>{};
        case Stage::payload:
            break;
    }
    WEFT_CHECK(false);
}

Result<std::optional<ClientReceiver::Event>> ClientReceiver::end_option_reply() {
    WEFT_TRY(option_, decode<OptionReplyHeader>(part_));
    if (option_.length > body_max) return Error{.code = Code::out_of_range};
    if (option_.length > 0) {
        begin_body(Stage::option_data, option_.length);
        return std::optional<Event>{};
    }
    begin_option_reply();
    return std::optional<Event>(OptionReply{option_, {}});
}

Result<std::optional<ClientReceiver::Event>> ClientReceiver::end_reply() {
    constexpr auto tail = wire_size<ChunkHeader>() - wire_size<SimpleReply>();
    if (load_big_endian<4>(part_.data()) == structured_reply_magic) {
        begin(Stage::chunk_tail, Buffer(header_).last(tail));
        return std::optional<Event>{};
    }
    WEFT_TRY(auto reply, decode<SimpleReply>(part_));
    begin_replies();
    return std::optional<Event>(reply);
}

}  // namespace weft::nbd
