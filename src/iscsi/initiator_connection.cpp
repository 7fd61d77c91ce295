// SPDX-License-Identifier: Apache-2.0
#include "iscsi/initiator_connection.hpp"

#include <utility>

#include "iscsi/connection_terms.hpp"
#include "iscsi/initiator_session.hpp"

namespace weft::iscsi {

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
    last_heard = session_.user_.time();
    // The next ping is due sooner than the end of the patience with this one was.
    if (std::exchange(pinged, false)) session_.user_.deadline_changed();
    // A target numbers its statuses one after another, and sends them in order.
    if (count == StatusCount::counts) expected_status_number_ = numbers.status_number + 1;
    if (state_ == State::ready) session_.heard(numbers);
}

void InitiatorConnection::lost(std::optional<Error> why) {
    session_.connection_lost(*this, why);
}

}  // namespace weft::iscsi
