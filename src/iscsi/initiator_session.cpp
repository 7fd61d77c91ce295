// SPDX-License-Identifier: Apache-2.0
// How a session begins and ends. Its commands are in initiator_commands.cpp, what else a target
// says in initiator_notices.cpp.
#include "iscsi/initiator_session.hpp"

#include <algorithm>

namespace weft::iscsi {

InitiatorSession::InitiatorSession(SessionOptions options, InitiatorSessionUser& user)
    : options_(std::move(options)), user_(user) {
    WEFT_CHECK(options_.connections > 0 && options_.connections <= initiator_connections_max);
    for (std::size_t i = 0; i < connections_.size(); ++i)
        connections_[i] = std::make_unique<InitiatorConnection>(*this, i);
    for (std::uint32_t slot = initiator_commands_max; slot-- > 0;) free_slots_.push_back(slot);
}

InitiatorSession::~InitiatorSession() {
    WEFT_CHECK(idle());
}

void InitiatorSession::begin() {
    WEFT_CHECK(state_ == State::down);
    state_ = State::logging_in;
    leaving_ = draining_ = logout_sent_ = logout_answered_ = false;
    target_session_handle_ = 0;
    redirected_to_.clear();
    login_deadline_ = now_ + login_patience;
    user_.deadline_changed();
    connections_[0]->want();
    user_.connection_wanted(0);
}

LoginOptions InitiatorSession::login_options(std::size_t index) {
    LoginOptions login;
    login.initiator_name = options_.initiator_name;
    login.target_name = options_.target_name;
    login.session_type = options_.type;
    login.initiator_session_id = options_.initiator_session_id;
    login.connection_id = static_cast<std::uint16_t>(index);
    login.command_number = command_number_.value();
    login.wishes = options_.wishes;
    login.credentials = options_.credentials;
    login.expected_of_target = options_.expected_of_target;
    user_.fill_with_chance(login.chance);
    if (index == 0) {
        login.initiator_alias = options_.initiator_alias;
    } else {
        login.target_session_handle = target_session_handle_;
        login.session_terms = terms_;
    }
    return login;
}

void InitiatorSession::attach(std::size_t index, InitiatorDatamover& mover) {
    connections_[index]->attach(mover);
    connections_[index]->last_heard = user_.time();
    if (state_ == State::ending) connections_[index]->close();
}

void InitiatorSession::attach_failed(std::size_t index, Error why) {
    const bool dispensable = can_do_without(*connections_[index]);
    connections_[index]->forget();
    if (state_ == State::ending) return finish_down();
    if (!dispensable) end_session(why);
}

void InitiatorSession::logged_in(InitiatorConnection& connection, const LoginInitiator& login) {
    login_status_ = login.status();
    if (connection.index() > 0) {
        heard(login.numbers());
        start_waiting();
        return;
    }
    ++logins_;
    terms_ = login.terms();
    target_session_handle_ = login.target_session_handle();
    // A new session: its window is what the target says now, whatever the old one's was. The first
    // command has the number of the login, which is immediate and uses none up; tgtd over iSER
    // says that it expects the next, and does not mean it.
    expected_command_number_ = command_number_;
    max_command_number_ = SequenceNumber32(login.numbers().max_command_number);
    state_ = State::up;
    login_deadline_.reset();
    const std::size_t more = std::min<std::size_t>(options_.connections, terms_.max_connections);
    for (std::size_t i = 1; i < more; ++i) {
        connections_[i]->want();
        user_.connection_wanted(i);
    }
    user_.deadline_changed();
    user_.session_up();
    start_waiting();
}

/// One more connection that never came to be: the session goes on with those it has.
bool InitiatorSession::can_do_without(const InitiatorConnection& connection) const {
    return connection.index() > 0 && !connection.was_ready && state_ == State::up;
}

void InitiatorSession::login_failed(InitiatorConnection& connection, Error why,
                                    const LoginInitiator& login) {
    if (can_do_without(connection)) return connection.close();
    login_status_ = login.status();
    redirected_to_ = login.target_address();
    end_session(why);
}

void InitiatorSession::connection_lost(InitiatorConnection& connection, std::optional<Error> why) {
    const bool ours = connection.state() == InitiatorConnection::State::closing;
    const bool dispensable = can_do_without(connection);
    connection.forget();
    user_.connection_unwanted(connection.index());
    if (dispensable) return;
    if (state_ != State::ending)
        end_session(ours ? why_down_ : why.value_or(Error{.code = Code::disconnected}));
    else
        finish_down();
}

void InitiatorSession::end_session(Error why) {
    if (state_ == State::down || state_ == State::ending) return;
    state_ = State::ending;
    why_down_ = why;
    login_deadline_.reset();
    for (auto& connection : connections_) {
        // One that was asked for comes later, and is closed then.
        if (connection->state() == InitiatorConnection::State::none) continue;
        logout_answered_ ? connection->leave() : connection->close();
    }
    finish_down();
}

void InitiatorSession::finish_down() {
    const bool alone = std::ranges::all_of(connections_, [](const auto& connection) {
        return connection->state() == InitiatorConnection::State::none;
    });
    if (!alone) return;
    state_ = State::down;
    rescue_.reset();
    if (discovered_) end_discovery(why_down_);
    collect_unfinished();
    user_.deadline_changed();
    user_.session_down(why_down_);
}

void InitiatorSession::collect_unfinished() {
    // All connections are gone: nobody holds a command's memory any more.
    std::vector<InitiatorCommand*> unfinished;
    for (InitiatorCommand*& command : slots_)
        if (command != nullptr) unfinished.push_back(std::exchange(command, nullptr));
    free_slots_.clear();
    for (std::uint32_t slot = initiator_commands_max; slot-- > 0;) free_slots_.push_back(slot);
    under_way_ = again_under_way_ = 0;
    std::ranges::sort(unfinished, {},
                      [](const InitiatorCommand* command) { return command->journey.order; });
    IntrusiveQueue<InitiatorCommand> again, again_first;
    std::vector<InitiatorCommand*> over;
    for (InitiatorCommand* command : unfinished) {
        if (command->journey.answered && !command->journey.damaged) {
            over.push_back(command);
        } else if (may_send_again(*command)) {
            command->journey.again = true;
            (command->journey.first ? again_first : again).push_back(*command);
        } else {
            command->journey.end = {.delivered = Error{.code = Code::disconnected}};
            over.push_back(command);
        }
    }
    again.append(waiting_);
    waiting_ = again;
    again_first.append(first_);
    first_ = again_first;
    held_ = false;
    for (InitiatorCommand* command : over) {
        const CommandEnd end = command->journey.end;
        command->journey.order = 0;
        command->ended(end);
    }
}

bool InitiatorSession::may_send_again(InitiatorCommand& command) {
    const bool harmless = command.effect == Effect::reads ||
                          (command.effect == Effect::replaces && options_.send_writes_again &&
                           !command.journey.overtaken);
    if (!harmless || ++command.journey.resends > command_resends_max) return false;
    ++sent_again_;
    return true;
}

void InitiatorSession::give_up(Error why) {
    IntrusiveQueue<InitiatorCommand> all;
    all.append(first_);
    all.append(waiting_);
    for (InitiatorCommand* command : std::exchange(later_, {})) all.push_back(*command);
    again_later_ = 0;
    later_deadline_.reset();
    while (!all.empty()) {
        InitiatorCommand& command = all.pop_front();
        command.journey.order = 0;
        command.ended({.delivered = why});
    }
}

void InitiatorSession::forget_all() {
    slots_ = {};
    under_way_ = again_under_way_ = again_later_ = 0;
    rescue_.reset();
    later_.clear();
    while (!first_.empty()) first_.pop_front();
    while (!waiting_.empty()) waiting_.pop_front();
}

void InitiatorSession::leave() {
    leaving_ = true;
    if (state_ == State::logging_in) return end_session({.code = Code::disconnected});
    log_out_if_idle();
}

std::size_t InitiatorSession::connection_count() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        connections_, [](const auto& connection) { return connection->ready(); }));
}

std::optional<Instant> InitiatorSession::deadline() const {
    std::optional<Instant> soonest = login_deadline_;
    auto consider = [&](Instant when) { soonest = soonest ? std::min(*soonest, when) : when; };
    if (later_deadline_) consider(*later_deadline_);
    if (rescue_) consider(rescue_->patience_ends);
    if (state_ == State::up)
        for (const auto& connection : connections_)
            if (connection->state() != InitiatorConnection::State::none)
                consider(silence_deadline(*connection));
    return soonest;
}

void InitiatorSession::tick(Instant now) {
    now_ = now;
    if (login_deadline_ && now >= *login_deadline_) return end_session({.code = Code::timed_out});
    if (later_deadline_ && now >= *later_deadline_) {
        later_deadline_.reset();
        again_later_ = 0;
        // In front, as submit_again() has it.
        IntrusiveQueue<InitiatorCommand> ordinary;
        for (InitiatorCommand* command : std::exchange(later_, {}))
            (command->journey.first ? first_ : ordinary).push_back(*command);
        ordinary.append(waiting_);
        waiting_ = ordinary;
        start_waiting();
    }
    if (state_ != State::up) return;
    watch_silence();
    watch_commands();
}

/// When it is pinged, or lost. One that has not logged in cannot be pinged.
Instant InitiatorSession::silence_deadline(const InitiatorConnection& connection) const {
    const bool awaited = connection.pinged || !connection.ready();
    return connection.last_heard + (awaited ? options_.silence : options_.ping_interval);
}

void InitiatorSession::watch_silence() {
    for (auto& connection : connections_) {
        if (connection->state() == InitiatorConnection::State::none) continue;
        // A process that was stopped itself has not listened meanwhile: it asks again.
        if (now_ - silence_deadline(*connection) > options_.ping_interval) {
            connection->last_heard = now_ + -options_.ping_interval;
            connection->pinged = false;
        }
        if (now_ - connection->last_heard >= options_.silence) {
            if (!can_do_without(*connection)) return end_session({.code = Code::timed_out});
            connection->close();
            continue;
        }
        if (connection->ready() && !connection->pinged && now_ >= silence_deadline(*connection))
            ping(*connection);
    }
}

}  // namespace weft::iscsi
