// SPDX-License-Identifier: Apache-2.0
#include "iwarp/startup.hpp"

#include "base/check.hpp"
#include "iwarp/fault.hpp"

namespace weft::iwarp {
namespace {

constexpr std::size_t header_size = wire_size<wire::MpaRequest>();
static_assert(header_size == wire_size<wire::MpaReply>());
constexpr std::uint32_t at_private_data_size = 18;

Error invalid_frame(Error why) {
    why.detail = fault(wire::MpaError::invalid_startup_frame).detail;
    return why;
}

template <class Frame>
Result<wire::MpaTerms> terms_in(ConstBuffer octets) {
    auto frame = decode<Frame>(octets);
    if (!frame) return invalid_frame(frame.error());
    return frame->terms;
}

std::optional<std::uint16_t> if_negotiated(std::uint16_t reads) {
    if (reads == wire::reads_not_negotiated) return std::nullopt;
    return reads;
}

}  // namespace

bool is_to_be_explained(Error why) {
    return why.detail == fault(wire::MpaError::insufficient_inbound_reads).detail ||
           why.detail == fault(wire::MpaError::no_matching_ready_message).detail;
}

Startup::Startup(Role role, const Wishes& wishes, Instant now)
    : role_(role), wishes_(wishes), deadline_(now + wishes.patience), incoming_(header_size) {}

Result<Startup> Startup::initiate(const Wishes& wishes, ConstBuffer private_data, Instant now) {
    if (auto checked = check_wishes(Role::initiator, wishes); !checked) return checked.error();
    Startup startup(Role::initiator, wishes, now);
    if (auto written = startup.write(request_for(wishes), private_data); !written)
        return written.error();
    return startup;
}

Result<Startup> Startup::respond(const Wishes& wishes, Instant now) {
    if (auto checked = check_wishes(Role::responder, wishes); !checked) return checked.error();
    return Startup(Role::responder, wishes, now);
}

Buffer Startup::want() {
    if (!is_reading()) return {};
    return Buffer(incoming_).subspan(received_);
}

Result<std::optional<StartupEvent>> Startup::filled(std::size_t count) {
    WEFT_CHECK(is_reading() && count <= incoming_.size() - received_);
    received_ += count;
    std::optional<StartupEvent> nothing_yet;
    if (received_ < incoming_.size()) return nothing_yet;
    if (stage_ == Stage::header) {
        if (auto taken = take_header(); !taken) return fail(taken.error());
        if (received_ < incoming_.size()) return nothing_yet;
    }
    auto event = take_frame();
    if (!event) return fail(event.error());
    return event;
}

Result<void> Startup::take_header() {
    WEFT_TRY(from_peer_.terms, role_ == Role::initiator ? terms_in<wire::MpaReply>(incoming_)
                                                        : terms_in<wire::MpaRequest>(incoming_));
    if (auto checked = check_revision(from_peer_.terms); !checked) return checked.error();
    auto size = from_peer_.terms.private_data_size;
    if (size > wire::private_data_limit)
        return invalid_frame({.code = Code::malformed, .where = at_private_data_size});
    incoming_.resize(header_size + size);
    stage_ = Stage::private_data;
    return {};
}

Result<std::optional<StartupEvent>> Startup::take_frame() {
    auto data =
        wire::decode_private_data(from_peer_.terms, ConstBuffer(incoming_).subspan(header_size));
    if (!data) return invalid_frame({.code = Code::malformed, .where = at_private_data_size});
    from_peer_.enhanced = data->enhanced;
    peer_private_data_ = data->application;
    terms_ = framing_terms(role_, from_peer_, wishes_);
    if (role_ == Role::responder) {
        stage_ = Stage::deciding;
        return std::optional(StartupEvent::requested);
    }
    ending_ = conclude_reply();
    if (!ending_ && !is_to_be_explained(ending_.error())) return ending_.error();
    stage_ = Stage::sending;
    return end_once_sent();
}

Result<StartupEvent> Startup::conclude_reply() {
    // A rejection need not be as enhanced as our request: it may come from someone who rejects
    // just because he does not know what that is.
    if (from_peer_.terms.rejected) return StartupEvent::rejected;
    WEFT_TRY(terms_, conclude(from_peer_, wishes_));
    return StartupEvent::established;
}

Result<void> Startup::accept(const Wishes& wishes, ConstBuffer private_data, Instant now) {
    if (auto checked = check_wishes(Role::responder, wishes); !checked) return checked.error();
    auto agreed = answer_to(from_peer_, wishes);
    if (auto done = answer(agreed.reply, private_data, now + wishes.patience); !done) return done;
    terms_ = agreed.terms;
    ending_ = StartupEvent::established;
    return {};
}

Result<void> Startup::reject(ConstBuffer private_data, Instant now) {
    ending_ = StartupEvent::rejected;
    return answer(rejection_of(from_peer_, wishes_), private_data, now + wishes_.patience);
}

Result<void> Startup::answer(const StartupFrame& reply, ConstBuffer private_data, Instant until) {
    WEFT_CHECK(stage_ == Stage::deciding);
    if (auto written = write(reply, private_data); !written) return written;
    deadline_ = until;
    stage_ = Stage::sending;
    return {};
}

Result<void> Startup::write(const StartupFrame& frame, ConstBuffer private_data) {
    auto room = wire::private_data_limit - (frame.enhanced ? wire_size<wire::EnhancedTerms>() : 0);
    if (private_data.size() > room) return Error{.code = Code::out_of_range};
    wire::MpaPrivateData data{.enhanced = frame.enhanced, .application = private_data};
    auto terms = wire::terms_for(frame.terms, data);
    outgoing_.resize(header_size + terms.private_data_size);
    if (role_ == Role::initiator)
        encode(wire::MpaRequest{.terms = terms}, outgoing_);
    else
        encode(wire::MpaReply{.terms = terms}, outgoing_);
    encode_private_data(data, Buffer(outgoing_).subspan(header_size));
    return {};
}

std::size_t Startup::pending(std::span<ConstBuffer> pieces) {
    if (pieces.empty() || sent_ == outgoing_.size() || stage_ == Stage::failed) return 0;
    pieces[0] = ConstBuffer(outgoing_).subspan(sent_);
    return 1;
}

Result<std::optional<StartupEvent>> Startup::sent(std::size_t count) {
    WEFT_CHECK(count <= outgoing_.size() - sent_);
    sent_ += count;
    if (stage_ != Stage::sending) return std::optional<StartupEvent>{};
    return end_once_sent();
}

Result<std::optional<StartupEvent>> Startup::end_once_sent() {
    if (sent_ < outgoing_.size()) return std::optional<StartupEvent>{};
    if (!ending_) return fail(ending_.error());
    stage_ = Stage::over;
    return std::optional(*ending_);
}

std::optional<Instant> Startup::deadline() const {
    if (is_reading() || stage_ == Stage::sending) return deadline_;
    return std::nullopt;
}

Result<void> Startup::tick(Instant now) {
    auto until = deadline();
    if (!until || now < *until) return {};
    return fail({.code = Code::timed_out});
}

Error Startup::fail(Error error) {
    stage_ = Stage::failed;
    return error;
}

std::optional<std::uint16_t> Startup::peer_inbound_reads() const {
    if (!from_peer_.enhanced) return std::nullopt;
    return if_negotiated(from_peer_.enhanced->inbound_reads);
}

std::optional<std::uint16_t> Startup::peer_outbound_reads() const {
    if (!from_peer_.enhanced) return std::nullopt;
    return if_negotiated(from_peer_.enhanced->outbound_reads);
}

}  // namespace weft::iwarp
