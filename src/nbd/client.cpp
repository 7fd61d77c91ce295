// SPDX-License-Identifier: Apache-2.0
#include "nbd/client.hpp"

#include <algorithm>
#include <cstring>

namespace weft::nbd {

using namespace wire::nbd;

namespace {

constexpr std::uint64_t index_bits = 32;

/// The protocol's bound on a status chunk: 2^20 extents.
constexpr std::uint32_t status_chunk_max =
    wire_size<MetaContextId>() + (1u << 20) * wire_size<StatusDescriptor>();

bool changes_data(BlockOperation operation) {
    return operation == BlockOperation::write || operation == BlockOperation::trim ||
           operation == BlockOperation::write_zeroes;
}

Command command_of(BlockOperation operation) {
    switch (operation) {
        case BlockOperation::read:
            return Command::read;
        case BlockOperation::write:
            return Command::write;
        case BlockOperation::flush:
            return Command::flush;
        case BlockOperation::trim:
            return Command::trim;
        case BlockOperation::write_zeroes:
            return Command::write_zeroes;
        case BlockOperation::prefetch:
            return Command::cache;
        case BlockOperation::status:
            return Command::block_status;
    }
    WEFT_CHECK(false);
}

Code code_of(ErrorNumber error) {
    switch (error) {
        case ErrorNumber::not_permitted:
            return Code::access_denied;
        case ErrorNumber::no_memory:
        case ErrorNumber::no_space:
            return Code::exhausted;
        case ErrorNumber::invalid:
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

/// Why the server could not carry this request out, known without asking it.
std::optional<Error> refusal_of(const BlockRequest& request, const Agreement& agreed) {
    bool moves_data =
        request.operation == BlockOperation::read || request.operation == BlockOperation::write;
    if (!within(request.offset, request.length, agreed.size))
        return Error{.code = Code::out_of_range};
    if (request.length > (moves_data ? agreed.blocks.maximum : ~0u))
        return Error{.code = Code::out_of_range};
    const auto& flags = agreed.flags;
    if (request.durable && changes_data(request.operation) && !flags.can_write_durably)
        return Error{.code = Code::unsupported};
    switch (request.operation) {
        case BlockOperation::read:
            return std::nullopt;
        case BlockOperation::write:
            if (flags.read_only) return Error{.code = Code::access_denied};
            return std::nullopt;
        case BlockOperation::flush:
            if (flags.can_flush) return std::nullopt;
            break;
        case BlockOperation::trim:
            if (flags.can_trim) return std::nullopt;
            break;
        case BlockOperation::write_zeroes:
            if (flags.can_write_zeroes && (!request.fast_only || flags.can_zero_fast))
                return std::nullopt;
            break;
        case BlockOperation::prefetch:
            if (flags.can_cache) return std::nullopt;
            break;
        case BlockOperation::status:
            if (agreed.allocation_context) return std::nullopt;
            break;
    }
    return Error{.code = Code::unsupported};
}

RequestHeader header_of(const BlockRequest& request, std::uint64_t cookie) {
    unsigned flags = 0;
    if (request.durable && changes_data(request.operation)) flags |= flag_durable;
    if (request.operation == BlockOperation::write_zeroes) {
        if (request.keep_space) flags |= flag_no_hole;
        if (request.fast_only) flags |= flag_fast_zero;
    }
    return {static_cast<std::uint16_t>(flags), command_of(request.operation), cookie,
            request.offset, static_cast<std::uint32_t>(request.length)};
}

}  // namespace

Client::Client(std::string export_name, Holder holder)
    : holder_(std::move(holder)),
      handshake_(std::move(export_name)),
      flights_(requests_in_flight_max),
      to_send_(requests_in_flight_max) {
    for (std::uint32_t i = 0; i < flights_.size(); ++i) free_.push_back(i);
}

Client::~Client() {
    WEFT_CHECK(idle() && waiting_.empty());
}

BlockTraits Client::traits() const {
    const auto& agreed = agreement();
    return {.size = agreed.size,
            .minimum_block = agreed.blocks.minimum,
            .preferred_block = agreed.blocks.preferred,
            .maximum_transfer = agreed.blocks.maximum,
            .read_only = agreed.flags.read_only,
            .rotational = agreed.flags.rotational,
            .can_trim = agreed.flags.can_trim,
            .can_write_zeroes = agreed.flags.can_write_zeroes,
            .can_report_status = agreed.allocation_context.has_value()};
}

void Client::submit(BlockRequest& request) {
    if (stage_ == Stage::failed || stage_ == Stage::leaving)
        return request.completed(Error{.code = Code::disconnected});
    waiting_.push_back(request);
    launch_waiting();
}

void Client::disconnect() {
    if (stage_ == Stage::running) stage_ = Stage::leaving;
    if (stage_ == Stage::handshake) give_up({.code = Code::disconnected});
    launch_waiting();
    holder_.wake();
}

void Client::launch_waiting() {
    if (stage_ != Stage::running && stage_ != Stage::leaving) return;
    bool had_nothing_to_send = to_send_.empty();
    while (!waiting_.empty() && !free_.empty()) {
        BlockRequest& request = waiting_.pop_front();
        if (auto refused = refusal_of(request, agreement()))
            request.completed(*refused);
        else
            launch(request);
    }
    if (stage_ == Stage::leaving && idle() && waiting_.empty() && !goodbye_queued_) {
        goodbye_queued_ = true;
        outbox_.add(RequestHeader{.command = Command::disconnect});
        holder_.wake();
    }
    if (had_nothing_to_send && !to_send_.empty()) holder_.wake();
}

void Client::launch(BlockRequest& request) {
    if (idle()) ++signs_of_life_;  // the server's silence until now meant nothing
    auto index = free_.back();
    free_.pop_back();
    Flight& flight = flights_[index];
    auto generation = flight.generation + 1;
    flight = Flight{};
    flight.request = &request;
    flight.generation = generation;
    flight.header_only = request.operation != BlockOperation::write;
    encode(header_of(request, std::uint64_t{generation} << index_bits | index), flight.header);
    to_send_.push_back(index);
}

std::size_t Client::pending(std::span<ConstBuffer> pieces) {
    if (mute_) return 0;
    if (!outbox_.empty()) return outbox_.pending(pieces);
    std::size_t count = 0;
    std::size_t skip = front_sent_;
    auto offer = [&](ConstBuffer piece) {
        auto gone = std::min(skip, piece.size());
        skip -= gone;
        if (gone < piece.size() && count < pieces.size()) pieces[count++] = piece.subspan(gone);
    };
    for (std::size_t i = 0; i < to_send_.size() && count < pieces.size(); ++i) {
        const Flight& flight = flights_[to_send_[i]];
        offer(flight.header);
        if (!flight.header_only)
            for (auto part : flight.request->memory) offer(part);
    }
    return count;
}

void Client::sent(std::size_t count) {
    ++signs_of_life_;
    if (!outbox_.empty()) return outbox_.sent(count);
    front_sent_ += count;
    while (!to_send_.empty()) {
        Flight& flight = flights_[to_send_.front()];
        auto total = flight.header.size() + (flight.header_only ? 0 : flight.request->length);
        if (front_sent_ < total) return;
        front_sent_ -= total;
        to_send_.pop_front();
        flight.sent = true;
        bool over = flight.answered || stage_ == Stage::failed;
        if (over && flight.request != nullptr) retire(flight);
    }
    WEFT_CHECK(front_sent_ == 0);
}

Buffer Client::want() {
    if (stage_ == Stage::failed) return {};
    return receiver_.want();
}

void Client::filled(std::size_t count) {
    ++signs_of_life_;
    auto outcome = receiver_.filled(count);
    if (!outcome) return drop(outcome.error());
    if (!*outcome) return;
    if (auto taken = take(**outcome); !taken) drop(taken.error());
}

void Client::drop(Error why) {
    mute_ = true;
    fail(why);
}

void Client::give_up(Error why) {
    handshake_.abort(outbox_);
    fail(why);
}

void Client::fail(Error why) {
    stage_ = Stage::failed;
    receiving_ = nullptr;
    for (auto& flight : flights_) {
        if (flight.request == nullptr) continue;
        flight.outcome = why;
        // The world may have been lent its maker's memory, and has it until sent() or closed().
        if (flight.header_only || flight.sent) retire(flight);
    }
    while (!waiting_.empty()) {
        BlockRequest& request = waiting_.pop_front();
        request.completed(why);
    }
    if (!std::exchange(opened_told_, true)) holder_.opened(why);
}

bool Client::finished() const {
    return stage_ == Stage::failed || (goodbye_queued_ && outbox_.empty());
}

std::optional<Instant> Client::deadline() const {
    if (stage_ == Stage::failed || !owed_an_answer()) return std::nullopt;
    return next_check_;
}

void Client::tick(Instant now) {
    if (stage_ == Stage::failed || !owed_an_answer() || now < next_check_) return;
    if (std::exchange(signs_at_check_, signs_of_life_) == signs_of_life_) {
        drop({.code = Code::timed_out});
        return holder_.wake();
    }
    next_check_ = now + server_patience;
}

void Client::closed(std::optional<Error> why) {
    if (stage_ != Stage::failed) fail(why.value_or(Error{.code = Code::disconnected}));
    for (auto& flight : flights_)
        if (flight.request != nullptr) retire(flight);
}

Result<void> Client::take(const ClientReceiver::Event& event) {
    if (auto* reply = std::get_if<SimpleReply>(&event)) return take_simple(*reply);
    if (auto* chunk = std::get_if<ChunkHeader>(&event)) return take_chunk(*chunk);
    if (std::holds_alternative<PayloadPlaced>(event)) return chunk_end();
    if (auto* body = std::get_if<ReplyBody>(&event)) {
        if (stage_ == Stage::handshake) return advance(handshake_.export_name_reply(*body));
        return take_body(body->data);
    }
    if (auto* reply = std::get_if<OptionReply>(&event))
        return advance(handshake_.option_reply(*reply, receiver_, outbox_));
    return advance(handshake_.greeting(std::get<Greeting>(event), receiver_, outbox_));
}

Result<void> Client::advance(Result<ClientHandshake::Next> next) {
    if (!next) return next.error();
    if (*next == ClientHandshake::Next::refused) give_up(handshake_.refusal_error());
    if (*next == ClientHandshake::Next::transmission) {
        receiver_.begin_replies();
        stage_ = Stage::running;
        opened_told_ = true;
        holder_.opened({});
        launch_waiting();
    }
    holder_.wake();
    return {};
}

Result<Client::Flight*> Client::find(std::uint64_t cookie) {
    auto index = cookie & ((1ull << index_bits) - 1);
    if (index >= flights_.size()) return Error{.code = Code::malformed};
    Flight& flight = flights_[index];
    if (flight.request == nullptr || flight.answered || flight.generation != cookie >> index_bits)
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
    flight.read_bytes = flight.request->length;
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
    receiving_->read_bytes += length;
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
    receiving_->read_bytes += hole.length;
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
        request.operation != BlockOperation::read || flight.read_bytes == request.length;
    bool all_told = request.operation != BlockOperation::status || flight.status_told;
    if (flight.outcome && !(all_read && all_told)) return Error{.code = Code::malformed};
    flight.answered = true;
    if (flight.sent) retire(flight);
    return {};
}

void Client::retire(Flight& flight) {
    auto& request = *std::exchange(flight.request, nullptr);
    auto outcome = flight.outcome;  // the flight may carry another request before completed() ends
    free_.push_back(static_cast<std::uint32_t>(&flight - flights_.data()));
    request.completed(outcome);
    launch_waiting();
}

}  // namespace weft::nbd
