// SPDX-License-Identifier: Apache-2.0
#include "iscsi/target_connection.hpp"

#include "iscsi/connection_terms.hpp"
#include "iscsi/iser_limits.hpp"
#include "iscsi/target_management.hpp"
#include "iscsi/target_send.hpp"

namespace weft::iscsi {
namespace {

std::uint32_t command_number_of(const ReceivedPdu& pdu) {
    return static_cast<std::uint32_t>(
        load_big_endian<4>(pdu.header.data() + wire::command_number_at));
}

/// Over iSER data beyond what goes along is better read than sent unasked for, one receive at a
/// time; and there is nothing to be repeated, nor a digest to find it by.
void adapt_to_rdma(Wishes& wishes) {
    wishes.header_digest = wishes.data_digest = DigestWish::never;
    wishes.terms.rdma_extensions = true;
    wishes.terms.target_segment_max = iser::data_segment_max;
    wishes.terms.initial_r2t = true;
    wishes.terms.error_recovery_level = 0;
}

}  // namespace

TargetConnection::TargetConnection(TargetNode& node, Origin origin, Holder holder)
    : node_(node),
      origin_(std::move(origin)),
      holder_(std::move(holder)),
      login_deadline_(node.now() + login_time),
      heard_at_(node.now()) {
    login_.emplace(static_cast<LoginPolicy&>(*this), command_window);
}

TargetConnection::~TargetConnection() {
    WEFT_CHECK(stage_ == Stage::gone);
}

// ---------------------------------------------------------------------------------------- login

LoginAdmission TargetConnection::admit(const LoginName& name) {
    initiator_ = name.initiator_name;
    target_name_ = name.target_name;
    auto admission = node_.admit(name);
    admission.wishes.terms.rdma_target_segment_max = iser::data_segment_max;
    if (origin_.rdma)
        adapt_to_rdma(admission.wishes);
    else
        admission.wishes.terms.rdma_extensions = holder_.turn_to_rdma != nullptr;
    return admission;
}

std::optional<std::string> TargetConnection::secret_of(const LoginName& name,
                                                       std::string_view user) {
    const auto* rules = node_.rules_for(name);
    if (rules == nullptr) return std::nullopt;
    for (const auto& known : rules->users)
        if (known.name == user) return known.secret;
    return std::nullopt;
}

std::optional<ChapCredentials> TargetConnection::own_credentials(const LoginName& name) {
    const auto* rules = node_.rules_for(name);
    return rules ? rules->own : std::nullopt;
}

void TargetConnection::fill_with_chance(Buffer octets) {
    node_.options().chance(octets);
}

std::optional<LoginSeat> TargetConnection::seat(const LoginName& name, const Terms& terms) {
    return node_.seat(name, terms, *this);
}

void TargetConnection::try_seat() {
    if (stage_ != Stage::login || login_->state() != LoginTarget::State::waiting) return;
    if (auto seat = node_.seat(login_->name(), login_->terms(), *this))
        login_goes_on(login_->seated(*seat));
}

void TargetConnection::login_goes_on(LoginTarget::State state) {
    switch (state) {
        case LoginTarget::State::waiting:
            return;
        case LoginTarget::State::running:
            return send_login_response();
        case LoginTarget::State::accepted:
            send_login_response();
            return begin_full_feature();
        case LoginTarget::State::refused:
            login_status_ = login_->status();
            ++node_.statistics().logins_refused;
            if (login_status_ == wire::LoginStatus::authentication_failure) {
                // Who guesses secrets shall have to wait for each answer.
                response_due_ = node_.now() + node_.delay_after_guess(origin_.remote.host);
                return;
            }
            send_login_response();
            return close_when_sent();
        case LoginTarget::State::broken:
            fault_ = Error{.code = Code::malformed};
            return close();
    }
}

void TargetConnection::send_login_response() {
    if (!login_->has_response()) return;
    mover_->send({.header = login_->response_header(), .data = login_->response_data()},
                 StatusCount::given);
}

void TargetConnection::begin_full_feature() {
    const auto& name = login_->name();
    terms_ = login_->terms();
    id_ = name.connection_id;
    status_number_ = login_->next_status_number();
    session_ = node_.find_session(login_->target_session_handle());
    WEFT_CHECK(session_ != nullptr);
    if (!session_->begun()) session_->begin(login_->expected_command_number());
    session_->join(*this);
    if (!login_->user().empty()) node_.proved(origin_.remote.host);
    ++node_.statistics().logins;
    stage_ = Stage::full_feature;
    text_.emplace(node_.options().wishes, terms_, [this](std::string_view value, TextQueue& out) {
        const bool discovery = terms_.session_type == SessionType::discovery;
        if (value == "All" && !discovery) return false;
        if (value.empty() && discovery) return false;
        auto only = value == "All" ? std::string_view() : value.empty() ? target_name_ : value;
        if (!discovery && only != target_name_) return true;  // others are not told about here
        node_.describe_targets(session_->name(), only, origin_.local, out);
        return true;
    });
    if (terms_.rdma_extensions && !origin_.rdma)
        holder_.turn_to_rdma(target_connection_terms(terms_));
    else
        mover_->begin_full_feature(target_connection_terms(terms_));
    login_.reset();
    if (holder_.logged_in) holder_.logged_in();
}

// ------------------------------------------------------------------------------------- commands

TargetMoverTask* TargetConnection::command(const ReceivedPdu& pdu) {
    if (stage_ != Stage::full_feature) {
        if (stage_ == Stage::login) control(pdu);
        if (stage_ == Stage::leaving) refused(pdu, wire::RejectReason::waiting_for_logout);
        return nullptr;
    }
    auto command = decode<wire::ScsiCommandPdu>(pdu.header);
    if (!command || session_->target() == nullptr) {
        refused(pdu, wire::RejectReason::protocol_error);
        return nullptr;
    }
    // Outside the window, or here already: not for us (section 4.2.2.1).
    if (!command->immediate && !session_->admits(command->numbers.command_number)) return nullptr;
    // One whose answer is on its way, or kept until it is acknowledged, does not own its tag.
    if (auto* task = session_->find_task(command->task_tag); task && !task->answering()) {
        refused(pdu, wire::RejectReason::task_in_progress);
        return nullptr;
    }
    auto* task = session_->new_task(command->immediate);
    if (task == nullptr) {
        refused(pdu, wire::RejectReason::too_many_immediate_commands);
        return nullptr;
    }
    if (!task->load(*command, pdu.additional_headers, *this)) {
        task->forget();
        refused(pdu, wire::RejectReason::invalid_pdu_field);
        return nullptr;
    }
    session_->list(*task);
    return task;
}

void TargetConnection::begin(TargetMoverTask& moved) {
    auto& task = static_cast<TargetTask&>(moved);
    ++node_.statistics().commands;
    if (task.immediate()) return task.execute();
    session_->enter(task.command_number(), {.task = &task, .connection = this});
}

TargetMoverTask* TargetConnection::find_task(wire::InitiatorTaskTag tag) {
    auto* task = session_ ? session_->find_task(tag) : nullptr;
    return task && task->connection() == this ? task : nullptr;
}

void TargetConnection::data_taken(TargetMoverTask& task, DataOutcome outcome) {
    static_cast<TargetTask&>(task).data_taken(outcome);
}

void TargetConnection::answered(TargetMoverTask& moved) {
    auto& task = static_cast<TargetTask&>(moved);
    auto& sums = node_.statistics();
    if (task.answer.status != wire::ScsiStatus::good) ++sums.failed;
    sums.bytes_read += std::min<std::uint64_t>(task.answer.length_in, task.in_length);
    sums.bytes_written += std::min<std::uint64_t>(task.answer.length_out, task.out_length);
    task.answered();
}

// ------------------------------------------------------------------------------- other requests

void TargetConnection::control(const ReceivedPdu& pdu) {
    if (stage_ == Stage::login) {
        if (login_->state() != LoginTarget::State::running) return close();
        return login_goes_on(login_->take(pdu.header, pdu.data));
    }
    if (stage_ == Stage::gone) return;
    switch (pdu.basic.opcode) {
        case wire::IscsiOpcode::nop_out:
        case wire::IscsiOpcode::task_management_request:
        case wire::IscsiOpcode::text_request:
        case wire::IscsiOpcode::logout_request:
            break;
        case wire::IscsiOpcode::login_request:
            return refused(pdu, wire::RejectReason::protocol_error);
        default:
            return refused(pdu, wire::RejectReason::command_not_supported);
    }
    // An answer to our ping says so by having no task tag; it has no turn.
    const bool answers = pdu.basic.opcode == wire::IscsiOpcode::nop_out &&
                         pdu.basic.task_tag == wire::InitiatorTaskTag::none;
    if (pdu.basic.immediate || answers) return request(pdu);
    const auto number = command_number_of(pdu);
    if (!session_->admits(number)) return;
    session_->enter(number, {.task = nullptr,
                             .connection = this,
                             .header = {pdu.header.begin(), pdu.header.end()},
                             .data = {pdu.data.begin(), pdu.data.end()}});
}

wire::TargetNumbers TargetConnection::numbers(StatusCount count) {
    wire::TargetNumbers numbers{.status_number = status_number_};
    if (count == StatusCount::counts) ++status_number_;
    if (session_ == nullptr) return numbers;
    numbers.expected_command_number = session_->expected_command_number();
    numbers.max_command_number = session_->max_command_number();
    return numbers;
}

void TargetConnection::acknowledged(std::uint32_t) {
    heard_ = true;
}

void TargetConnection::refused(const ReceivedPdu& pdu, wire::RejectReason reason) {
    if (stage_ == Stage::gone) return;
    if (stage_ == Stage::login) return close();
    ++node_.statistics().rejects;
    send(wire::RejectPdu{.reason = reason}, pdu.header, StatusCount::counts);
}

// ------------------------------------------------------------------------------------ life, time

void TargetConnection::tick(Instant now) {
    if (stage_ == Stage::gone) return;
    if (std::exchange(heard_, false)) {
        heard_at_ = now;
        pinged_at_.reset();
    }
    if (response_due_ && now >= *response_due_) {
        response_due_.reset();
        send_login_response();
        close_when_sent();
    }
    if (!mover_->awaits_abandoned_data())
        abandoned_since_.reset();
    else if (!abandoned_since_)
        abandoned_since_ = now;
    const bool late = (stage_ == Stage::login && now >= login_deadline_ && !response_due_) ||
                      (leave_by_ && now >= *leave_by_) ||
                      (pinged_at_ && now >= *pinged_at_ + ping_patience) ||
                      (abandoned_since_ && now >= *abandoned_since_ + abandoned_data_patience);
    if (late) {
        if (!leave_by_) fault_ = Error{.code = Code::timed_out};
        return close();
    }
    if (stage_ != Stage::full_feature || pinged_at_ || now < heard_at_ + ping_after) return;
    pinged_at_ = now;
    send(wire::NopInPdu{.task_tag = wire::InitiatorTaskTag::none,
                        .transfer_tag = wire::TargetTransferTag{1}},
         {}, StatusCount::peeks);
}

void TargetConnection::tell_window() {
    send(wire::NopInPdu{.task_tag = wire::InitiatorTaskTag::none,
                        .transfer_tag = wire::TargetTransferTag::none},
         {}, StatusCount::peeks);
}

void TargetConnection::ask_to_leave(Instant now) {
    if (stage_ == Stage::login) return close();
    if (stage_ != Stage::full_feature || leave_by_) return;
    leave_by_ = now + std::chrono::seconds(logout_seconds);
    send(wire::AsynchronousMessagePdu{.event = wire::AsynchronousEvent::logout_requested,
                                      .parameter3 = logout_seconds},
         {}, StatusCount::counts);
}

void TargetConnection::close() {
    if (stage_ == Stage::gone) return;
    mover_->close();
}

void TargetConnection::begin_leaving() {
    if (stage_ == Stage::full_feature) stage_ = Stage::leaving;
}

void TargetConnection::close_when_sent() {
    if (stage_ == Stage::gone) return;
    begin_leaving();
    if (!leave_by_) leave_by_ = node_.now() + farewell_time;
    mover_->close_when_sent();
}

void TargetConnection::lost(std::optional<Error> why) {
    if (stage_ == Stage::gone) return;
    if (!fault_) fault_ = why;
    const bool orderly = stage_ == Stage::leaving;
    if (orderly) fault_.reset();
    stage_ = Stage::gone;
    node_.forget(*this);
    leave_session();
    // The holder destroys us later; whoever waits for our place in the session may have it now.
    holder_.gone();
}

}  // namespace weft::iscsi
