// SPDX-License-Identifier: Apache-2.0
// What a client makes of a server's replies: to which request they belong, where their bytes go,
// and whether they make sense. The server is not trusted; what breaks a rule ends the connection.
#include <algorithm>
#include <cstring>

#include "nbd/client.hpp"

namespace weft::nbd {

using namespace wire::nbd;

namespace {

/// The protocol's bound on a status chunk: 2^20 extents.
constexpr std::uint32_t status_chunk_max =
    wire_size<MetaContextId>() + (1u << 20) * wire_size<StatusDescriptor>();

Code code_of(ErrorNumber error) {
    switch (error) {
        case ErrorNumber::not_permitted:
            return Code::access_denied;
        case ErrorNumber::no_memory:
        case ErrorNumber::no_space:
            return Code::exhausted;
        case ErrorNumber::invalid:
            return Code::malformed;
        case ErrorNumber::overflow:
            return Code::out_of_range;
        case ErrorNumber::not_supported:
            return Code::unsupported;
        case ErrorNumber::shutdown:
            return Code::disconnected;
        default:
            return Code::io_failed;
    }
}

Error error_of(ErrorNumber error) {
    return {.code = code_of(error), .detail = static_cast<std::uint16_t>(error)};
}

}  // namespace

Result<Client::Flight*> Client::find(std::uint64_t cookie) {
    auto index = cookie & ((1ull << cookie_index_bits) - 1);
    if (index >= flights_.size()) return Error{.code = Code::malformed};
    Flight& flight = flights_[index];
    if (flight.request == nullptr || flight.answered ||
        flight.generation != cookie >> cookie_index_bits)
        return Error{.code = Code::malformed};
    return &flight;
}

Result<void> Client::take_simple(const SimpleReply& reply) {
    WEFT_TRY(receiving_, find(reply.cookie));
    Flight& flight = *receiving_;
    chunk_ = {.done = true, .type = ChunkType::none, .cookie = reply.cookie};
    if (reply.error != ErrorNumber::none) {
        note_error(reply.error);
        return chunk_end();
    }
    if (flight.request->operation == BlockOperation::status) return Error{.code = Code::malformed};
    if (flight.request->operation != BlockOperation::read || flight.request->length == 0)
        return chunk_end();
    if (agreement().structured_replies) return Error{.code = Code::malformed};
    flight.placed.add(0, flight.request->length);
    receiver_.expect_payload({flight.request->memory, 0, flight.request->length});
    return {};
}

Result<void> Client::take_chunk(const ChunkHeader& chunk) {
    if (!agreement().structured_replies) return Error{.code = Code::malformed};
    WEFT_TRY(receiving_, find(chunk.cookie));
    chunk_ = chunk;
    if (chunk.type == ChunkType::none) {
        if (chunk.length != 0 || !chunk.done) return Error{.code = Code::malformed};
        return chunk_end();
    }
    if (chunk.type == ChunkType::offset_data) {
        if (chunk.length <= wire_size<DataOffset>()) return Error{.code = Code::malformed};
        receiver_.expect_body(wire_size<DataOffset>());
        return {};
    }
    bool is_status = chunk.type == ChunkType::block_status;
    if (chunk.length == 0 ||
        chunk.length > (is_status ? status_chunk_max : ClientReceiver::body_max))
        return Error{.code = Code::malformed};
    receiver_.expect_body(chunk.length);
    return {};
}

Result<void> Client::take_body(ConstBuffer body) {
    switch (chunk_.type) {
        case ChunkType::offset_data:
            return take_data_offset(body);
        case ChunkType::offset_hole:
            return take_hole(body);
        case ChunkType::block_status:
            return take_status(body);
        default:
            break;
    }
    if (!is_error(chunk_.type)) return Error{.code = Code::unsupported};
    return take_error(body);
}

Result<void> Client::take_error(ConstBuffer body) {
    WEFT_TRY(auto error, decode<ChunkError>(body));
    if (error.error == ErrorNumber::none ||
        error.message_length > body.size() - wire_size<ChunkError>())
        return Error{.code = Code::malformed};
    note_error(error.error);
    return chunk_end();
}

void Client::note_error(ErrorNumber error) {
    receiving_->outcome = error_of(error);
    if (error == ErrorNumber::shutdown && stage_ == Stage::running) stage_ = Stage::leaving;
}

Result<void> Client::take_data_offset(ConstBuffer body) {
    WEFT_TRY(auto data, decode<DataOffset>(body));
    const BlockRequest& request = *receiving_->request;
    std::uint64_t length = chunk_.length - wire_size<DataOffset>();
    // The server chooses where in the answer this belongs; it must be inside what was asked for.
    if (request.operation != BlockOperation::read || data.offset < request.offset ||
        !within(data.offset - request.offset, length, request.length))
        return Error{.code = Code::malformed};
    if (!receiving_->placed.add(data.offset - request.offset, length))
        return Error{.code = Code::malformed};
    receiver_.expect_payload({request.memory, data.offset - request.offset, length});
    return {};
}

Result<void> Client::take_hole(ConstBuffer body) {
    WEFT_TRY(auto hole, decode<HoleRange>(body));
    const BlockRequest& request = *receiving_->request;
    if (body.size() != wire_size<HoleRange>() || hole.length == 0 ||
        request.operation != BlockOperation::read || hole.offset < request.offset ||
        !within(hole.offset - request.offset, hole.length, request.length))
        return Error{.code = Code::malformed};
    if (!receiving_->placed.add(hole.offset - request.offset, hole.length))
        return Error{.code = Code::malformed};
    block::ScatterCursor place(request.memory, hole.offset - request.offset, hole.length);
    while (place.left() > 0) {
        auto piece = place.piece();
        std::memset(piece.data(), 0, piece.size());
        place.advance(piece.size());
    }
    return chunk_end();
}

Result<void> Client::take_status(ConstBuffer body) {
    BlockRequest& request = *receiving_->request;
    WEFT_TRY(auto context, decode<MetaContextId>(body));
    body = body.subspan(wire_size<MetaContextId>());
    if (request.operation != BlockOperation::status ||
        context.id != agreement().allocation_context || body.empty() ||
        body.size() % wire_size<StatusDescriptor>() != 0 ||
        std::exchange(receiving_->status_told, true))
        return Error{.code = Code::malformed};
    std::uint64_t covered = 0;
    request.extent_count = 0;
    while (!body.empty() && request.extent_count < request.extents.size() &&
           covered < request.length) {
        WEFT_TRY(auto extent, decode<StatusDescriptor>(body));
        body = body.subspan(wire_size<StatusDescriptor>());
        if (extent.length == 0) return Error{.code = Code::malformed};
        // The last one may reach beyond what was asked; ours never do.
        auto length = std::min<std::uint64_t>(extent.length, request.length - covered);
        request.extents[request.extent_count++] = {length, extent.hole, extent.zero};
        covered += length;
    }
    return chunk_end();
}

Result<void> Client::chunk_end() {
    Flight& flight = *std::exchange(receiving_, nullptr);
    if (!chunk_.done) return {};
    const BlockRequest& request = *flight.request;
    bool all_read =
        request.operation != BlockOperation::read || flight.placed.is_whole(request.length);
    bool all_told = request.operation != BlockOperation::status || flight.status_told;
    if (flight.outcome && !(all_read && all_told)) return Error{.code = Code::malformed};
    flight.answered = true;
    if (flight.sent) land(flight);
    return {};
}

}  // namespace weft::nbd
