// SPDX-License-Identifier: Apache-2.0
#include "iscsi/initiator_connection.hpp"

#include "iscsi/initiator_session.hpp"

namespace weft::iscsi {

ConnectionTerms initiator_connection_terms(const Terms& terms) {
    const bool rdma = terms.rdma_extensions;
    ConnectionTerms result;
    result.header_digest = terms.header_digest;
    result.data_digest = terms.data_digest;
    result.send_segment_max = rdma ? terms.rdma_target_segment_max : terms.target_segment_max;
    result.receive_segment_max =
        rdma ? terms.rdma_initiator_segment_max : terms.initiator_segment_max;
    result.first_burst_max = terms.first_burst;
    result.burst_max = terms.max_burst;
    result.outstanding_requests_max = terms.max_outstanding_r2t;
    result.initial_request_needed = terms.initial_r2t;
    result.immediate_data = terms.immediate_data;
    result.data_in_order = terms.data_pdu_in_order;
    result.sequences_in_order = terms.data_sequence_in_order;
    result.error_recovery_level = static_cast<std::uint8_t>(terms.error_recovery_level);
    result.tasks_max = initiator_commands_max;
    result.rdma_extensions = rdma;
    result.discovery = terms.session_type == SessionType::discovery;
    result.solicited_tags_only = terms.tagged_buffer_for_solicited_only;
    result.hello_required = terms.hello_required;
    return result;
}

void InitiatorConnection::attach(InitiatorDatamover& mover) {
    WEFT_CHECK(state_ == State::wanted);
    mover_ = &mover;
    state_ = State::opening;
    expected_status_number_ = 0;
    under_way = 0;
    pinged = was_ready = false;
}

void InitiatorConnection::close() {
    if (mover_ == nullptr || state_ == State::closing) return;
    state_ = State::closing;
    mover_->close();
}

void InitiatorConnection::leave() {
    if (mover_ == nullptr || state_ == State::closing) return;
    state_ = State::closing;
    mover_->close_when_sent();
}

void InitiatorConnection::opened() {
    if (state_ != State::opening) return;
    state_ = State::login;
    login_.emplace(session_.login_options(index_));
    send_login();
}

void InitiatorConnection::send_login() {
    mover_->send({.header = login_->request_header(), .data = login_->request_data()});
}

void InitiatorConnection::control(const ReceivedPdu& pdu) {
    if (state_ == State::login) return take_login(pdu);
    if (state_ == State::ready) session_.take(*this, pdu);
}

void InitiatorConnection::take_login(const ReceivedPdu& pdu) {
    switch (login_->take(pdu.header, pdu.data)) {
        case LoginInitiator::State::running:
            return send_login();
        case LoginInitiator::State::accepted: {
            state_ = State::ready;
            was_ready = true;
            mover_->begin_full_feature(initiator_connection_terms(login_->terms()));
            session_.logged_in(*this, *login_);
            login_.reset();
            return;
        }
        case LoginInitiator::State::redirected:
            return session_.login_failed(*this, {.code = Code::unsupported}, *login_);
        case LoginInitiator::State::refused:
            return session_.login_failed(*this,
                                         {.code = Code::access_denied,
                                          .detail = static_cast<std::uint16_t>(login_->status())},
                                         *login_);
        case LoginInitiator::State::failed:
            return session_.login_failed(*this, login_->error(), *login_);
    }
}

InitiatorMoverTask* InitiatorConnection::find_task(wire::InitiatorTaskTag tag) {
    return session_.find_task(tag);
}

void InitiatorConnection::responded(InitiatorMoverTask& task, const InitiatorAnswer& answer) {
    session_.responded(static_cast<InitiatorCommand&>(task), answer);
}

void InitiatorConnection::retired(InitiatorMoverTask& task) {
    session_.retired(static_cast<InitiatorCommand&>(task));
}

void InitiatorConnection::heard(const wire::TargetNumbers& numbers, StatusCount count) {
    last_heard = session_.now_;
    pinged = false;
    // A target numbers its statuses one after another, and sends them in order.
    if (count == StatusCount::counts) expected_status_number_ = numbers.status_number + 1;
    if (state_ == State::ready) session_.heard(numbers);
}

void InitiatorConnection::lost(std::optional<Error> why) {
    session_.connection_lost(*this, why);
}

}  // namespace weft::iscsi
