// SPDX-License-Identifier: Apache-2.0
// The connection of the target's iSER datamover, and the PDUs that come and go over it.
#include "iscsi/iser_target_mover.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace weft::iscsi {

IserTargetMover::IserTargetMover(IserTarget& target, std::unique_ptr<verbs::QueuePair> queue_pair,
                                 TargetDatamoverUser& user)
    : target_(target),
      user_(user),
      queue_pair_(std::move(queue_pair)),
      number_(queue_pair_->number()) {}

IserTargetMover::~IserTargetMover() {
    *alive_ = false;
    target_.forget(number_);
    connection_.reset();
    drop_receives();
}

Result<void> IserTargetMover::accept(verbs::ConnectionRequest& request, Style style) {
    style_ = style;
    verbs::ConnectOptions options{.inbound_reads = 1, .checksums = target_.options_.checksums};
    // What the peer does not say it serves is one at a time.
    options.outbound_reads =
        std::min({target_.options_.reads, iser::reads_max, request.inbound_reads().value_or(1)});
    std::array<std::byte, wire_size<wire::IserPrivateData>()> reply{};
    if (style == Style::rdma_first) {
        auto asked = decode<wire::IserPrivateData>(request.private_data());
        may_invalidate_ =
            target_.options_.invalidates && asked && !asked->send_with_invalidate_unsupported;
        encode(wire::IserPrivateData{.zero_based_addresses_unsupported = true,
                                     .send_with_invalidate_unsupported = !may_invalidate_},
               reply);
        if (asked) options.private_data = reply;
    }
    WEFT_TRY(connection_, request.accept(*queue_pair_, options, *ears_));
    return {};
}

Result<void> IserTargetMover::wait_for_request(std::unique_ptr<Stream> stream) {
    responder_ = target_.device_->make_responder(
        [this](std::unique_ptr<verbs::ConnectionRequest> request) {
            if (over_) return;
            if (auto accepted = accept(*request, Style::after_login); !accepted)
                end(accepted.error());
        },
        [this] { end(Error{.code = Code::disconnected}); });
    return responder_->respond(std::move(stream), {});
}

void IserTargetMover::begin_full_feature(const ConnectionTerms& terms) {
    WEFT_CHECK(!full_feature_);
    full_feature_ = true;
    terms_ = terms;
    hello_due_ = terms.hello_required && style_ == Style::after_login;
    slots_ = std::vector<Slot>(terms.tasks_max);
    for (auto& slot : slots_) slot.is_answer = true;
    reading_ = Ring<Slot*>(std::max(terms.tasks_max, 1u));
}

std::uint32_t IserTargetMover::control_data_max() const {
    if (!full_feature_) return iser::data_segment_max;
    if (style_ == Style::rdma_first && !terms_.discovery)
        return std::min(terms_.send_segment_max, iser::small_initiator_data_max);
    return std::min<std::uint32_t>(terms_.send_segment_max, iser::data_segment_max);
}

void IserEars::established() {
    if (mover_) mover_->established();
}
void IserEars::failed(Error why) {
    mover_ ? mover_->failed(why) : over_();
}
void IserEars::disconnected() {
    mover_ ? mover_->disconnected() : over_();
}

void IserTargetMover::established() {
    pump_sends();
    pump_reads();
}

void IserTargetMover::received(iser::Receive& receive) {
    if (leaving_ || over_ || fault_) return give_back(receive);
    if (held_.empty() && room_to_send() && !handling_held_) return handle(receive);
    keep(receive, held_);
}

void IserTargetMover::keep(iser::Receive& receive, IntrusiveQueue<iser::Receive>& where) {
    if (!may_hold_another()) return give_back(receive);
    where.push_back(receive);
    hold_receive();
}

/// False: it has been failed for what it holds already.
bool IserTargetMover::may_hold_another() {
    target_.relieve();
    if (receives_held_ >= iser::receives_held_max) take_too_much();
    return !fault_ && !over_;
}

void IserTargetMover::take_too_much() {
    fail({.code = Code::exhausted, .where = static_cast<std::uint32_t>(receives_held_)});
}

void IserTargetMover::hold_receive() {
    ++receives_held_;
    ++target_.receives_held_;
}

void IserTargetMover::let_go_of_receive() {
    --receives_held_;
    --target_.receives_held_;
}

void IserTargetMover::handle_held() {
    if (handling_held_) return;
    handling_held_ = true;
    while (!held_.empty() && room_to_send() && !over_) {
        auto& receive = held_.pop_front();
        let_go_of_receive();
        leaving_ || fault_ ? give_back(receive) : handle(receive);
    }
    handling_held_ = false;
}

void IserTargetMover::handle(iser::Receive& receive) {
    if (hello_due_) return take_hello(receive);
    auto message = iser::read_message(receive.octets());
    if (!message) {
        give_back(receive);
        return fail(message.error());
    }
    auto& pdu = message->pdu;
    // Where it stands in all that have one; the others are refused anyway.
    auto numbers = decode<wire::InitiatorNumbers>(pdu.header.subspan(wire::command_number_at));
    if (full_feature_) user_.acknowledged(numbers->expected_status_number);
    switch (pdu.basic.opcode) {
        case wire::IscsiOpcode::scsi_command:
            return command_came(*message, receive);
        case wire::IscsiOpcode::data_out:
            return data_out_came(*message, receive);
        case wire::IscsiOpcode::snack_request:
            user_.refused(pdu, wire::RejectReason::protocol_error);  // RFC 7145 section 7.3.9
            break;
        default:
            user_.control(pdu);
    }
    give_back(receive);
}

void IserTargetMover::take_hello(iser::Receive& receive) {
    hello_due_ = false;
    auto hello = decode<wire::IserHello>(receive.octets());
    give_back(receive);
    if (!hello) return fail(hello.error());
    // RFC 5046 and the figures of RFC 7145 say 1 where its text says 10: whoever covers either.
    auto covers = [&](std::uint8_t version) {
        return hello->version_min <= version && version <= hello->version_max;
    };
    bool is_known = covers(wire::iser_version) || covers(1);
    reads_allowed_ = std::min(connection_->facts().outbound_reads, hello->inbound_reads);
    bool rejected = !is_known || (hello->inbound_reads > 0 && *reads_allowed_ == 0);
    auto& control = make_control();
    control.count = StatusCount::given;  // it is no PDU, and has none
    control.octets.resize(wire::iser_header_size);
    encode(wire::IserHelloReply{.rejected = rejected,
                                .version_current = covers(wire::iser_version) ? wire::iser_version
                                                                              : std::uint8_t{1},
                                .outbound_reads = *reads_allowed_},
           control.octets);
    outgoing_.push_back(control);
    pump_sends();
    if (rejected) close_when_sent();
}

void IserTargetMover::command_came(const iser::Message& message, iser::Receive& receive) {
    auto pdu = message.pdu;
    if (!pdu.data.empty() && !may_hold_another()) return give_back(receive);
    pdu.data = {};
    auto* task = full_feature_ ? user_.command(pdu) : nullptr;
    if (!task) return give_back(receive);
    auto& slot = slot_of(*task);
    WEFT_CHECK(slot.task == nullptr);
    slot.task = task;
    slot.advertised = message.advertised;
    slot.data_out.begin(
        *task,
        {.first_burst_max = terms_.first_burst_max,
         .burst_max = terms_.burst_max,
         .immediate_data = terms_.immediate_data,
         .solicited_only = style_ == Style::rdma_first || terms_.solicited_tags_only},
        message.advertised.write_buffer_valid &&
            message.advertised.write_buffer.steering_tag != SteeringTag{});
    slot.immediate_data = message.pdu.data;
    slot.immediate = slot.immediate_data.empty() ? nullptr : &receive;
    if (slot.immediate)
        hold_receive();
    else
        give_back(receive);
    user_.begin(*task);
}

void IserTargetMover::data_out_came(const iser::Message& message, iser::Receive& receive) {
    auto pdu = decode<wire::DataOutPdu>(message.pdu.header);
    auto* task = pdu ? user_.find_task(pdu->task_tag) : nullptr;
    if (!task) return give_back(receive);
    if (pdu->transfer_tag != wire::TargetTransferTag::none) {
        // There is no request it could answer: data that is asked for is read.
        user_.refused(message.pdu, wire::RejectReason::protocol_error);
        return give_back(receive);
    }
    auto& slot = slot_of(*task);
    if (!slot.data_out.is_wanted()) return keep(receive, slot.early);
    take_unsolicited(slot, receive);
    settle_data(slot);
}

IserTargetMover::Control& IserTargetMover::make_control() {
    if (free_controls_.empty()) {
        controls_.push_back(std::make_unique<Control>());
        controls_.back()->index = controls_.size() - 1;
        free_controls_.push_back(controls_.back().get());
    }
    auto& control = *free_controls_.back();
    free_controls_.pop_back();
    ++controls_unsent_;
    return control;
}

void IserTargetMover::send(const ControlPdu& pdu, StatusCount count) {
    if (over_ || leaving_) return;
    auto& control = make_control();
    control.count = count;
    control.octets.resize(iser::headers_size + pdu.data.size());
    auto size = iser::write_headers({}, pdu.header, pdu.data.size(), control.octets);
    std::copy(pdu.data.begin(), pdu.data.end(), control.octets.begin() + size);
    outgoing_.push_back(control);
    pump_sends();
}

void IserTargetMover::close_when_sent() {
    leaving_ = true;
    leave_if_sent();
}

void IserTargetMover::leave_if_sent() {
    if (!leaving_ || over_ || controls_unsent_ + answers_unsent_ > 0) return;
    if (std::exchange(said_all_, true)) return;
    target_.world_.defer([this, alive = alive_] {
        if (*alive) see_off();
    });
}

/// To those above it is over. To the initiator too, but it shall be the one who ends the
/// connection.
void IserTargetMover::see_off() {
    if (over_) return;
    said_all_ = false;
    if (controls_unsent_ + answers_unsent_ > 0) return;  // an answer came about in the meantime
    if (connection_)
        target_.see_off(std::move(ears_), std::move(queue_pair_), std::move(connection_));
    end(std::nullopt);
}

void IserTargetMover::close() {
    if (over_) return;
    leaving_ = true;
    connection_.reset();
    responder_.reset();
    target_.world_.defer([this, alive = alive_] {
        if (*alive) end(std::nullopt);
    });
}

/// What the peer said makes no sense: the stream is terminated, as RFC 7145 section 10.1.3.3 asks.
void IserTargetMover::fail(Error why) {
    if (fault_ || over_) return;
    fault_ = why;
    queue_pair_->fail();
}

void IserTargetMover::disconnected() {
    if (fault_) return end(fault_);
    end(leaving_ ? std::nullopt : std::optional(Error{.code = Code::disconnected}));
}

void IserTargetMover::end(std::optional<Error> why) {
    if (std::exchange(over_, true)) return;
    connection_.reset();  // from here on nothing is lent, and nothing comes in
    // Even where the connection lives on for a farewell: a late answer to a Read finds no place.
    sinks_.clear();
    free_sinks_.clear();
    drop_receives();
    user_.lost(why);  // may destroy this
}

void IserTargetMover::drop_receives() {
    while (!held_.empty()) give_back(held_.pop_front());
    for (auto& slot : slots_) {
        while (!slot.early.empty()) give_back(slot.early.pop_front());
        if (slot.immediate) give_back(*std::exchange(slot.immediate, nullptr));
    }
    target_.receives_held_ -= std::exchange(receives_held_, 0);
}

}  // namespace weft::iscsi
