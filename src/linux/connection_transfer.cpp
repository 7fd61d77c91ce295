// SPDX-License-Identifier: Apache-2.0
// How bytes move between a connection's socket and its engine. After every call of the engine the
// connection may have ended: engine_ is then null, and nothing else may be touched.
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"
#include "base/foreign_memory.hpp"
#include "linux/connection.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {
namespace {

ssize_t read_some(int socket, Buffer place, Buffer staging) {
    iovec parts[] = {{place.data(), place.size()}, {staging.data(), staging.size()}};
    ssize_t got = 0;
    do
        got = place.empty() ? ::recv(socket, staging.data(), staging.size(), 0)
                            : ::readv(socket, parts, 2);
    while (got < 0 && errno == EINTR);
    return got;
}

}  // namespace

void Connection::receive() {
    std::size_t bytes_left = limits::receive_bytes_per_turn;
    int calls_left = limits::receive_calls_per_turn;
    while (engine_ && (readable_ || !leftover_.empty())) {
        if (engine_->finished()) return discard();
        Buffer place = engine_->want();
        if (!engine_) return;
        if (place.empty()) {
            // Waiting for wake(), unless the peer broke off. An orderly end is found by reading.
            if (broken_) end_broken();
            return;
        }
        if (!leftover_.empty()) {
            take_leftover();
            continue;
        }
        if (bytes_left == 0 || calls_left-- == 0) return commons_.loop.make_ready(*this);
        bool whole = place.size() <= bytes_left;
        if (!whole) place = place.first(bytes_left);
        // What was read ahead counts too: who sends many small messages has no longer a turn than
        // who sends a few large ones.
        auto count = read_into(place, whole ? staging_beside(place) : Buffer());
        if (count == 0) return;
        bytes_left -= std::min(bytes_left, count);
    }
}

void Connection::end_failed(int number) {
    auto why = system_error(number);
    // A program that has closed all its descriptors has closed ours too, and given the number away.
    if (number == EBADF || number == ENOTSOCK) socket_.forget();
    end(why);
}

/// In the system's words: without them it would pass for an orderly end.
void Connection::end_broken() {
    int number = pending_error(socket_.number());
    end(system_error(number != 0 ? number : ECONNRESET));
}

/// Nobody wants what still comes. But a peer that is ending too may not read before it has sent its
/// last words, and we would wait for each other.
void Connection::discard() {
    leftover_ = {};
    if (!blocked_) return;
    for (std::size_t left = limits::linger_bytes_per_turn; readable_;) {
        if (left == 0) return commons_.loop.make_ready(*this);
        auto got = read_some(socket_.number(), {}, commons_.staging);
        readable_ = got > 0;  // a stream that broke shows that to who sends
        if (readable_) left -= std::min(left, static_cast<std::size_t>(got));
    }
}

void Connection::try_now() {
    readable_ = true;  // perhaps: reading finds out
    receive();
}

/// How much to read ahead of this place: much among small messages, little amid long payloads.
Buffer Connection::staging_beside(Buffer place) {
    if (place.size() >= limits::long_payload_bytes)
        short_staging_reads_left_ = limits::reads_after_a_long_payload;
    else if (short_staging_reads_left_ == 0)
        return commons_.staging;
    else
        --short_staging_reads_left_;
    return Buffer(commons_.staging).first(limits::staging_bytes_amid_long_payloads);
}

/// How many bytes came: none when there is no more to read now, or no one to read for. Staging is
/// for what follows the wanted place; where only a part of that is offered, there is none.
std::size_t Connection::read_into(Buffer place, Buffer staging) {
    // A small place is given its bytes from staging: that copy costs less than a list of two places
    // costs the kernel, in particular when there is nothing to read.
    if (place.size() <= limits::small_place_bytes && !staging.empty()) place = {};
    auto got = read_some(socket_.number(), place, staging);
    if (got < 0) {
        if (errno == EAGAIN)
            readable_ = false;
        else
            end_failed(errno);
        return 0;
    }
    if (got == 0) {
        send();  // a peer that only stopped sending may still be listening
        if (engine_) end(Error{.code = Code::disconnected});
        return 0;
    }
    auto count = static_cast<std::size_t>(got);
    // Less than asked for means the socket is empty: the next bytes make a new edge. At the end
    // there will be no new edge, so there we read on.
    if (count < place.size() + staging.size() && !at_end_) readable_ = false;
    commons_.loop.make_hot(*this);
    wake();  // whoever hears something may have to answer
    auto placed = std::min(count, place.size());
    if (placed > 0) engine_->filled(placed);
    auto rest = hand_out(staging.first(count - placed));
    if (engine_ && !rest.empty()) {
        leftover_.assign(rest.begin(), rest.end());
        leftover_taken_ = 0;
    }
    return engine_ ? count : 0;
}

/// Gives the engine what it takes as it is, and copies the rest to one wanted place after the
/// other. Returns what the engine does not want now.
ConstBuffer Connection::hand_out(ConstBuffer bytes) {
    while (!bytes.empty() && engine_ && !engine_->finished()) {
        if (auto taken = takes_ahead_ ? takes_ahead_->take_ahead(bytes) : 0; taken > 0) {
            bytes = bytes.subspan(taken);
            continue;
        }
        if (!engine_) break;
        Buffer place = engine_->want();
        if (place.empty() || !engine_) break;
        auto count = std::min(place.size(), bytes.size());
        if (!touch_foreign_memory([&] { std::memcpy(place.data(), bytes.data(), count); })) {
            end(system_error(EFAULT));
            return {};
        }
        bytes = bytes.subspan(count);
        engine_->filled(count);
    }
    return bytes;
}

void Connection::take_leftover() {
    auto rest = hand_out(std::span(leftover_).subspan(leftover_taken_));
    if (!engine_) return;
    leftover_taken_ = leftover_.size() - rest.size();
    if (rest.empty()) leftover_ = {};
}

void Connection::send() {
    // An engine that gives up has nothing more to send, and then a peer that does not read must not
    // keep the stream open.
    std::array<ConstBuffer, 1> any;
    if (engine_ && blocked_ && engine_->finished() && engine_->pending(any) == 0) return finish();
    std::size_t sent_bytes = 0;
    while (engine_ && !blocked_) {
        std::array<ConstBuffer, limits::send_pieces> pieces;
        std::size_t piece_count = engine_->pending(pieces);
        if (!engine_) return;
        if (piece_count == 0) {
            if (engine_->finished()) finish();
            return;
        }
        if (sent_bytes >= limits::send_bytes_per_turn) return commons_.loop.make_ready(*this);
        std::array<iovec, limits::send_pieces> parts;
        std::size_t total = 0;
        for (std::size_t i = 0; i < piece_count; ++i) {
            parts[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
            total += pieces[i].size();
        }
        WEFT_CHECK(total > 0);
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = piece_count;
        auto gone = ::sendmsg(socket_.number(), &message, MSG_NOSIGNAL);
        if (gone < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) return block();
            return end_failed(errno);
        }
        auto count = static_cast<std::size_t>(gone);
        sent_bytes += count;
        if (count < total) block();
        engine_->sent(count);
    }
}

void Connection::block() {
    blocked_ = true;
    if (engine_->finished() && readable_) commons_.loop.make_ready(*this);  // to discard
    if (interest_ & EPOLLOUT) return;
    interest_ |= EPOLLOUT;
    commons_.loop.change(socket_.number(), interest_, *this);
}

}  // namespace weft::linux
