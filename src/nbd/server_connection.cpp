// SPDX-License-Identifier: Apache-2.0
#include "nbd/server_connection.hpp"

namespace weft::nbd {

using namespace wire::nbd;

ServerConnection::ServerConnection(const Exports& exports, block::BufferPool& pool,
                                   Statistics& statistics, Instant accepted_at, Holder holder)
    : holder_(std::move(holder)),
      pool_(pool),
      statistics_(statistics),
      handshake_deadline_(accepted_at + handshake_time),
      handshake_(exports) {
    ++statistics_.connections;
    handshake_.greet(outbox_);
}

Buffer ServerConnection::want() {
    switch (stage_) {
        case Stage::handshake:
            if (outbox_.size() > option_replies_bytes_max) return {};
            return receiver_.want();
        case Stage::transmission:
            if (receiver_.at_request() && !transmission_->ready()) return {};
            return receiver_.want();
        case Stage::leaving:
        case Stage::failed:
        case Stage::closed:
            return {};
    }
    return {};
}

void ServerConnection::filled(std::size_t count) {
    auto outcome = receiver_.filled(count);
    if (!outcome) return fail(outcome.error());
    if (!*outcome) return;
    if (auto taken = take(**outcome); !taken) fail(taken.error());
}

void ServerConnection::fail(Error why) {
    // Nothing more is sent: whoever breaks the protocol may not read either. What the world was
    // lent stays where it is until closed().
    fault_ = why;
    stage_ = Stage::failed;
}

Result<void> ServerConnection::take(const ServerReceiver::Event& event) {
    if (auto* request = std::get_if<RequestHeader>(&event)) return take_request(*request);
    if (std::holds_alternative<PayloadEnd>(event)) {
        transmission_->payload_end();
        return {};
    }
    if (auto* option = std::get_if<ReceivedOption>(&event)) return take_option(*option);
    return handshake_.flags(std::get<ClientFlags>(event));
}

Result<void> ServerConnection::take_option(const ReceivedOption& option) {
    WEFT_TRY(auto next, handshake_.option(option, outbox_));
    if (next == Handshake::Next::goodbye) stage_ = Stage::leaving;
    if (next == Handshake::Next::transmission) {
        receiver_.begin_transmission();
        transmission_.emplace(handshake_.chosen(), handshake_.dialect(), receiver_, pool_,
                              statistics_, [this] { device_or_room_changed(); });
        stage_ = Stage::transmission;
    }
    return {};
}

Result<void> ServerConnection::take_request(const RequestHeader& header) {
    if (header.command != Command::disconnect) return transmission_->request(header);
    stage_ = Stage::leaving;  // what is under way is finished and answered first
    return {};
}

void ServerConnection::device_or_room_changed() {
    if (stage_ == Stage::closed)
        holder_.gone();
    else
        holder_.wake();
}

void ServerConnection::dismiss() {
    if (stage_ != Stage::handshake && stage_ != Stage::transmission) return;
    stage_ = Stage::leaving;
    holder_.wake();
}

std::size_t ServerConnection::pending(std::span<ConstBuffer> pieces) {
    if (stage_ == Stage::failed) return 0;
    if (!outbox_.empty()) return outbox_.pending(pieces);
    return transmission_ ? transmission_->pending(pieces) : 0;
}

void ServerConnection::sent(std::size_t count) {
    if (outbox_.empty()) return transmission_->sent(count);
    bool was_waiting = outbox_.size() > option_replies_bytes_max;
    outbox_.sent(count);
    if (was_waiting || outbox_.empty()) holder_.wake();
}

bool ServerConnection::finished() const {
    if (stage_ == Stage::failed) return true;
    if (stage_ != Stage::leaving) return false;
    return !transmission_ ||
           (transmission_->quiet() && transmission_->all_sent() && !transmission_->stalled());
}

std::optional<Instant> ServerConnection::deadline() const {
    if (stage_ == Stage::handshake) return handshake_deadline_;
    return transmission_ ? transmission_->deadline() : std::nullopt;
}

void ServerConnection::tick(Instant now) {
    if (transmission_) return transmission_->tick(now);
    if (stage_ != Stage::handshake || now < handshake_deadline_) return;
    fail({.code = Code::timed_out});
    holder_.wake();
}

void ServerConnection::closed(std::optional<Error> why) {
    if (stage_ == Stage::closed) return;
    if (!fault_) fault_ = why;
    stage_ = Stage::closed;
    if (transmission_) transmission_->abandon();
    if (!transmission_ || transmission_->quiet()) holder_.gone();
}

}  // namespace weft::nbd
