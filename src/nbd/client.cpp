// SPDX-License-Identifier: Apache-2.0
// How requests travel to the server and back. What it replies is read in client_replies.cpp.
#include "nbd/client.hpp"

#include <algorithm>

#include "block/admission.hpp"

namespace weft::nbd {

using namespace wire::nbd;

namespace {

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

/// Why the server could not carry this request out, known without asking it.
std::optional<Error> refusal_of(const BlockRequest& request, const BlockTraits& traits,
                                const TransmissionFlags& flags) {
    if (auto refused = block::refusal_of(request, traits)) return refused;
    if (request.length > ~std::uint32_t{0} && request.operation != BlockOperation::flush)
        return Error{.code = Code::out_of_range};
    bool zeroes = request.operation == BlockOperation::write_zeroes;
    bool beyond_it = (request.operation == BlockOperation::prefetch && !flags.can_cache) ||
                     (zeroes && request.fast_only && !flags.can_zero_fast);
    if (beyond_it) return Error{.code = Code::unsupported};
    return std::nullopt;
}

RequestHeader header_of(const BlockRequest& request, std::uint64_t cookie, bool durable) {
    if (request.operation == BlockOperation::flush)
        return {.command = Command::flush, .cookie = cookie};
    unsigned flags = durable ? flag_durable : 0;
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
      to_send_(requests_in_flight_max),
      done_(requests_in_flight_max) {
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
            .can_report_status = agreed.allocation_context.has_value(),
            .can_flush = agreed.flags.can_flush,
            .can_write_durably = agreed.flags.can_write_durably || agreed.flags.can_flush};
}

void Client::submit(BlockRequest& request) {
    if (stage_ == Stage::failed || stage_ == Stage::leaving)
        return request.completed(Error{.code = Code::disconnected});
    waiting_.push_back(request);
    launch_waiting();
    tell();
}

void Client::disconnect() {
    if (stage_ == Stage::running) stage_ = Stage::leaving;
    if (stage_ == Stage::handshake) give_up({.code = Code::disconnected});
    launch_waiting();
    holder_.wake();
    tell();
}

void Client::launch_waiting() {
    if (stage_ != Stage::running && stage_ != Stage::leaving) return;
    bool had_nothing_to_send = to_send_.empty();
    while (!waiting_.empty() && !free_.empty()) launch(waiting_.pop_front());
    if (stage_ == Stage::leaving && idle() && waiting_.empty() && !goodbye_queued_) {
        goodbye_queued_ = true;
        outbox_.add(RequestHeader{.command = Command::disconnect});
        holder_.wake();
    }
    if (had_nothing_to_send && !to_send_.empty()) holder_.wake();
}

void Client::launch(BlockRequest& request) {
    bool owed_nothing = !owed_an_answer();
    Flight& flight = flights_[free_.back()];
    free_.pop_back();
    flight = Flight{.request = &request, .generation = flight.generation};
    const auto& flags = agreement().flags;
    if (auto refused = refusal_of(request, traits(), flags)) {
        flight.outcome = *refused;
        return finish(flight);
    }
    // A server that offers no flush keeps nothing back, as far as anyone can tell.
    if (request.operation == BlockOperation::flush && !flags.can_flush) return finish(flight);
    if (owed_nothing) ++signs_of_life_;  // the server's silence until now meant nothing
    bool durable = request.durable && block::changes_data(request.operation);
    flight.flush_follows = durable && !flags.can_write_durably && flags.can_flush;
    flight.header_only = request.operation != BlockOperation::write;
    dispatch(flight, header_of(request, next_cookie(flight), durable && flags.can_write_durably));
}

std::uint64_t Client::next_cookie(Flight& flight) const {
    return std::uint64_t{++flight.generation} << cookie_index_bits | index_of(flight);
}

void Client::dispatch(Flight& flight, const RequestHeader& header) {
    flight.sent = flight.answered = false;
    encode(header, flight.header);
    to_send_.push_back(index_of(flight));
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
        if (front_sent_ < total) break;
        front_sent_ -= total;
        to_send_.pop_front();
        flight.sent = true;
        if (flight.request == nullptr || flight.finished) continue;  // failed before it had left
        if (stage_ == Stage::failed)
            finish(flight);
        else if (flight.answered)
            land(flight);
    }
    WEFT_CHECK(!to_send_.empty() || front_sent_ == 0);
    tell();
}

Buffer Client::want() {
    if (stage_ == Stage::failed) return {};
    return receiver_.want();
}

void Client::filled(std::size_t count) {
    ++signs_of_life_;
    auto outcome = receiver_.filled(count);
    if (!outcome) {
        drop(outcome.error());
    } else if (*outcome) {
        if (auto taken = take(**outcome); !taken) drop(taken.error());
    }
    tell();
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
    if (!fault_) fault_ = why;
    stage_ = Stage::failed;
    receiving_ = nullptr;
    for (auto& flight : flights_) {
        if (flight.request == nullptr || flight.finished) continue;
        flight.outcome = why;
        // The world may have been lent its maker's memory, and has it until sent() or closed().
        if (flight.header_only || flight.sent) finish(flight);
    }
    if (open_ == Open::not_yet) open_ = Open::to_tell;
}

bool Client::finished() const {
    return stage_ == Stage::failed || (goodbye_queued_ && outbox_.empty());
}

std::optional<Instant> Client::deadline() const {
    if (stage_ == Stage::failed || !owed_an_answer()) return std::nullopt;
    return next_check_.value_or(Instant{});
}

void Client::tick(Instant now) {
    if (stage_ == Stage::failed || !owed_an_answer()) return;
    if (next_check_ && now < *next_check_) return;
    bool silent = std::exchange(signs_at_check_, signs_of_life_) == signs_of_life_;
    bool dawdles = stage_ == Stage::handshake && next_check_;
    if (silent || dawdles) {
        drop({.code = Code::timed_out});
        holder_.wake();
        return tell();
    }
    next_check_ = now + (stage_ == Stage::handshake ? server_handshake_time : server_patience);
}

void Client::closed(std::optional<Error> why) {
    if (stage_ != Stage::failed) fail(why.value_or(Error{.code = Code::disconnected}));
    for (auto& flight : flights_)
        if (flight.request != nullptr && !flight.finished) finish(flight);
    tell();
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
        open_ = Open::to_tell;
        launch_waiting();
    }
    holder_.wake();
    return {};
}

void Client::land(Flight& flight) {
    if (std::exchange(flight.flush_follows, false) && flight.outcome) {
        flight.header_only = true;
        bool had_nothing_to_send = to_send_.empty();
        dispatch(flight, {.command = Command::flush, .cookie = next_cookie(flight)});
        if (had_nothing_to_send) holder_.wake();
        return;
    }
    finish(flight);
}

void Client::finish(Flight& flight) {
    flight.finished = true;
    done_.push_back(index_of(flight));
}

bool Client::has_news() const {
    return open_ == Open::to_tell || !done_.empty() ||
           (stage_ == Stage::failed && !waiting_.empty());
}

Client::News Client::take_news() {
    if (open_ == Open::to_tell) {
        open_ = Open::told;
        return {nullptr, fault_ ? Result<void>(*fault_) : Result<void>()};
    }
    if (done_.empty()) return {&waiting_.pop_front(), *fault_};
    Flight& flight = flights_[done_.front()];
    free_.push_back(done_.front());
    done_.pop_front();
    News news{std::exchange(flight.request, nullptr), flight.outcome};
    launch_waiting();  // into the place that came free
    return news;
}

/// After the last piece of news nothing of the client is touched. Calls from inside an earlier one
/// leave theirs to the loop that runs already.
void Client::tell() {
    while (!telling_ && has_news()) {
        auto news = take_news();
        bool last = !has_news();
        telling_ = !last;
        if (news.request != nullptr) {
            news.request->completed(news.outcome);
        } else {
            auto opened = std::move(holder_.opened);  // it must outlive a client it destroys
            opened(news.outcome);
        }
        if (last) return;
        telling_ = false;
    }
}

}  // namespace weft::nbd
