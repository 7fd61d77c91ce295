// SPDX-License-Identifier: Apache-2.0
#include "nbd/client_handshake.hpp"

#include <bit>

namespace weft::nbd {

using namespace wire::nbd;

namespace {

void add_number(Outbox& out, std::uint32_t number) {
    std::array<std::byte, 4> octets{};
    store_big_endian<4>(number, octets.data());
    out.add_octets(octets);
}
void add_string(Outbox& out, std::string_view text) {
    add_number(out, static_cast<std::uint32_t>(text.size()));
    out.add_octets(bytes_of(text));
}

}  // namespace

void ClientHandshake::ask(Option option, std::size_t size, Outbox& out) {
    asked_ = option;
    out.add(OptionHeader{option, static_cast<std::uint32_t>(size)});
}

void ClientHandshake::ask_for_allocation_status(Outbox& out) {
    std::string_view context = allocation_context;
    ask(Option::set_meta_context, 4 + export_name_.size() + 4 + 4 + context.size(), out);
    add_string(out, export_name_);
    add_number(out, 1);
    add_string(out, context);
}

void ClientHandshake::ask_to_go(Outbox& out) {
    // One question besides the export itself: its block sizes.
    std::array<std::byte, 4> questions{};
    store_big_endian<2>(1, questions.data());
    store_big_endian<2>(static_cast<std::uint64_t>(InfoType::block_size), questions.data() + 2);
    ask(Option::go, 4 + export_name_.size() + questions.size(), out);
    add_string(out, export_name_);
    out.add_octets(questions);
}

void ClientHandshake::ask_by_name(ClientReceiver& receiver, Outbox& out) {
    ask(Option::export_name, export_name_.size(), out);
    out.add_octets(bytes_of(export_name_));
    receiver.expect_body(wire_size<ExportNameReply>() + (no_zeroes_ ? 0 : export_name_zeroes));
}

Result<ClientHandshake::Next> ClientHandshake::greeting(const Greeting& greeting,
                                                        ClientReceiver& receiver, Outbox& out) {
    no_zeroes_ = greeting.no_zeroes;
    out.add(ClientFlags{.no_zeroes = no_zeroes_, .fixed_newstyle = greeting.fixed_newstyle});
    if (greeting.fixed_newstyle)
        ask(Option::structured_reply, 0, out);
    else
        ask_by_name(receiver, out);
    return Next::more;
}

Result<ClientHandshake::Next> ClientHandshake::option_reply(const OptionReply& reply,
                                                            ClientReceiver& receiver, Outbox& out) {
    if (++replies_seen_ > server_option_replies_max) return Error{.code = Code::exhausted};
    auto type = reply.header.type;
    if (reply.header.option != asked_) return Error{.code = Code::malformed};
    if (asked_ == Option::structured_reply) {
        if (type != OptionReplyType::ack && !is_error(type)) return Error{.code = Code::malformed};
        agreement_.structured_replies = type == OptionReplyType::ack;
        if (agreement_.structured_replies)
            ask_for_allocation_status(out);
        else
            ask_to_go(out);
        return Next::more;
    }
    if (asked_ == Option::set_meta_context) return context_reply(reply, out);
    if (type == OptionReplyType::info) {
        if (auto noted = note_info(reply.data); !noted) return noted.error();
        return Next::more;
    }
    if (type == OptionReplyType::ack) {
        if (!size_known_) return Error{.code = Code::malformed};
        return Next::transmission;
    }
    if (type == OptionReplyType::error_unsupported) {
        ask_by_name(receiver, out);
        return Next::more;
    }
    if (!is_error(type)) return Error{.code = Code::malformed};
    refusal_ = text_of(reply.data);
    if (type == OptionReplyType::error_unknown) refusal_error_ = {.code = Code::not_found};
    return Next::refused;
}

Result<ClientHandshake::Next> ClientHandshake::context_reply(const OptionReply& reply,
                                                             Outbox& out) {
    auto type = reply.header.type;
    if (type == OptionReplyType::meta_context) {
        WEFT_TRY(auto context, decode<MetaContextId>(reply.data));
        if (text_of(reply.data.subspan(wire_size<MetaContextId>())) != allocation_context)
            return Error{.code = Code::malformed};
        agreement_.allocation_context = context.id;
        return Next::more;
    }
    if (is_error(type))
        agreement_.allocation_context = std::nullopt;  // whatever was said before the error
    else if (type != OptionReplyType::ack)
        return Error{.code = Code::malformed};
    ask_to_go(out);
    return Next::more;
}

void ClientHandshake::abort(Outbox& out) {
    bool haggling = asked_ != Option{} && asked_ != Option::export_name;
    if (haggling) out.add(OptionHeader{Option::abort, 0});
}

Result<void> ClientHandshake::note_info(ConstBuffer data) {
    if (data.size() < 2) return Error{.code = Code::truncated};
    auto kind = static_cast<InfoType>(load_big_endian<2>(data.data()));
    if (kind == InfoType::export_) {
        WEFT_TRY(auto info, decode<InfoExport>(data));
        agreement_.size = info.size;
        agreement_.flags = info.flags;
        size_known_ = true;
    }
    if (kind == InfoType::block_size) {
        WEFT_TRY(auto info, decode<InfoBlockSize>(data));
        if (!std::has_single_bit(info.minimum) || !std::has_single_bit(info.preferred) ||
            info.maximum < info.minimum)
            return Error{.code = Code::malformed};
        agreement_.blocks = info;
    }
    return {};
}

Result<ClientHandshake::Next> ClientHandshake::export_name_reply(const ReplyBody& body) {
    WEFT_TRY(auto reply, decode<ExportNameReply>(body.data));
    agreement_.size = reply.size;
    agreement_.flags = reply.flags;
    return Next::transmission;
}

}  // namespace weft::nbd
