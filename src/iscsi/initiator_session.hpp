// SPDX-License-Identifier: Apache-2.0
// A session of an initiator: logins of its connections, numbered commands within the target's
// window, pings, discovery, logout; and beginning again when a connection is lost.
//
// Without recovery levels above 0 the loss of one connection is the loss of the session (RFC 7143
// section 7.1.5): all others are closed, and a new session takes the place of the old one. Which
// commands are then sent again is argued in initiator_command.hpp. Everything else waits, in order,
// until the session is there or given up.
//
// The session opens no connection itself: it asks its user for one and is given a datamover, TCP or
// iSER. It is told the time.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/intrusive_queue.hpp"
#include "base/sequence_number.hpp"
#include "iscsi/initiator_command.hpp"
#include "iscsi/initiator_connection.hpp"
#include "wire/iscsi_task_management.hpp"

namespace weft::iscsi {

/// A target somebody told us of, and where it can be reached.
struct DiscoveredTarget {
    std::string name;
    std::vector<std::string> addresses;  ///< host:port,portal-group
};

struct SessionOptions {
    std::string initiator_name;
    std::string initiator_alias;
    std::string target_name;
    SessionType type = SessionType::normal;
    wire::InitiatorSessionId initiator_session_id{};
    std::size_t connections = 1;
    Wishes wishes{};
    std::optional<ChapCredentials> credentials{};
    std::optional<ChapCredentials> expected_of_target{};
    bool send_writes_again = true;
    /// A command that takes longer is aborted; counted from the tick after it was sent. Zero: none
    /// is.
    Duration command_patience{};
    /// A target that has said nothing for so long is lost.
    Duration silence = target_silence;
    /// After so long without a word it is pinged, so that one that is there has something to say.
    Duration ping_interval = target_silence / 2;
};

class InitiatorSessionUser {
public:
    /// Open a connection and give its mover to attach(). Never asked twice for one that is open.
    virtual void connection_wanted(std::size_t index) = 0;
    /// The mover of this connection is not used any more and may be destroyed, not from inside.
    virtual void connection_unwanted(std::size_t index) = 0;
    virtual void fill_with_chance(Buffer octets) = 0;
    /// For whatever the target says: silence is counted from its last word, not from a tick.
    virtual Instant time() const = 0;

    /// The first connection has logged in: commands go.
    virtual void session_up() = 0;
    /// No connection is left. begin() may be called again, not from inside.
    virtual void session_down(Error why) = 0;
    /// The time of deadline() may have changed.
    virtual void deadline_changed() = 0;

protected:
    ~InitiatorSessionUser() = default;
};

class InitiatorSession {
public:
    InitiatorSession(SessionOptions options, InitiatorSessionUser& user);
    ~InitiatorSession();
    InitiatorSession(const InitiatorSession&) = delete;
    InitiatorSession& operator=(const InitiatorSession&) = delete;

    /// Logs in, for the first time or again.
    void begin();
    /// The mover of a connection asked for. Its user is connection(index).
    void attach(std::size_t index, InitiatorDatamover& mover);
    InitiatorDatamoverUser& connection(std::size_t index) { return *connections_[index]; }
    /// The connection asked for could not be had.
    void attach_failed(std::size_t index, Error why);

    void submit(InitiatorCommand& command);
    /// The same, before all that waits, even while the session is held.
    void submit_first(InitiatorCommand& command);
    /// While held, only what is submitted first goes: somebody is looking whether the logical unit
    /// is still the one it was.
    void hold(bool held);
    // The same command once more, which the target turned away or broke off. What is known of its
    // journey still counts.
    void submit_again(InitiatorCommand& command);
    /// After a pause: the target was busy.
    void submit_later(InitiatorCommand& command);
    /// The session is not what it should be: it ends, and may be begun anew.
    void drop(Error why) { end_session(why); }
    /// All that waits ends with this error: nobody believes any more that the session comes back.
    void give_up(Error why);
    /// Before the end, and nothing else follows: no command is told of it, they are their makers'
    /// again. Their memory is, when the movers are destroyed.
    void forget_all();
    /// Says goodbye when nothing is under way; then session_down comes with Code::disconnected.
    void leave();

    /// Of a discovery session that is up. Answered once: by what there is, or an error.
    void discover(std::function<void(Result<std::vector<DiscoveredTarget>>)> told);

    bool up() const { return state_ == State::up; }
    bool down() const { return state_ == State::down; }
    bool idle() const {
        return under_way_ == 0 && first_.empty() && waiting_.empty() && later_.empty();
    }
    const Terms& terms() const { return terms_; }
    /// Why the last login was refused.
    wire::LoginStatus login_status() const { return login_status_; }
    /// Where the target said it is now.
    const std::string& redirected_to() const { return redirected_to_; }
    std::size_t connection_count() const;
    /// Sessions begun, commands sent again: for statistics and tests.
    std::uint64_t logins() const { return logins_; }
    std::uint64_t sent_again() const { return sent_again_; }
    std::uint64_t rescues() const { return rescues_; }

    std::optional<Instant> deadline() const;
    void tick(Instant now);

private:
    friend class InitiatorConnection;
    enum class State : std::uint8_t { down, logging_in, up, ending };

    static constexpr unsigned tag_slot_bits = 8;
    static constexpr std::uint32_t ping_tag = 0xf0;  ///< and up, one per connection: above any slot
    static constexpr std::uint32_t text_tag = 0xe0;
    static constexpr std::uint32_t logout_tag = 0xe1;
    static constexpr std::uint32_t rescue_tag = 0xe2;
    static_assert(initiator_commands_max <= text_tag);

    LoginOptions login_options(std::size_t index);
    void logged_in(InitiatorConnection& connection, const LoginInitiator& login);
    void login_failed(InitiatorConnection& connection, Error why, const LoginInitiator& login);
    void connection_lost(InitiatorConnection& connection, std::optional<Error> why);
    void end_session(Error why);
    void collect_unfinished();
    bool may_send_again(InitiatorCommand& command);
    bool can_do_without(const InitiatorConnection& connection) const;
    void finish_down();

    void heard(const wire::TargetNumbers& numbers);
    InitiatorMoverTask* find_task(wire::InitiatorTaskTag tag);
    void responded(InitiatorCommand& command, const InitiatorAnswer& answer);
    void retired(InitiatorCommand& command);
    void take(InitiatorConnection& connection, const ReceivedPdu& pdu);
    void take_text(const ReceivedPdu& pdu);
    void take_reject(const ReceivedPdu& pdu);
    void take_asynchronous(const ReceivedPdu& pdu);
    Result<std::vector<DiscoveredTarget>> read_discovery() const;
    void end_discovery(Result<std::vector<DiscoveredTarget>> outcome);
    void ask_for_targets(wire::TargetTransferTag tag);

    void start_waiting();
    void start(InitiatorCommand& command, InitiatorConnection& connection);
    InitiatorConnection* next_connection();
    bool must_wait(const InitiatorCommand& command) const;
    bool something_to_start() const { return !first_.empty() || (!waiting_.empty() && !held_); }
    bool window_open() const { return command_number_ <= max_command_number_; }
    void mark_overtaken(const InitiatorCommand& acknowledged);
    void log_out_if_idle();

    /// What is being done about a command that takes too long (initiator_rescue.cpp).
    struct Rescue {
        enum class Step : std::uint8_t { abort, reset } step;
        InitiatorCommand* command;  ///< null: it was answered after all
        std::size_t connection;
        wire::LogicalUnit unit;
        Instant patience_ends;
    };
    void watch_commands();
    Instant silence_deadline(const InitiatorConnection& connection) const;
    void watch_silence();
    void rescue(InitiatorCommand& command);
    void try_next_rescue();
    void send_rescue(wire::TaskManagementFunction function);
    void take_management(const ReceivedPdu& pdu);
    void ping(InitiatorConnection& connection);

    SessionOptions options_;
    InitiatorSessionUser& user_;
    State state_ = State::down;
    bool leaving_ = false;
    Error why_down_{.code = Code::disconnected};
    std::array<std::unique_ptr<InitiatorConnection>, initiator_connections_max> connections_;
    std::size_t last_connection_ = 0;
    Terms terms_;
    std::uint16_t target_session_handle_ = 0;
    wire::LoginStatus login_status_ = wire::LoginStatus::success;
    std::string redirected_to_;
    std::uint64_t logins_ = 0;
    std::uint64_t sent_again_ = 0;
    std::uint64_t rescues_ = 0;  ///< commands that took too long

    SequenceNumber32 command_number_{1};
    SequenceNumber32 max_command_number_{0};
    SequenceNumber32 expected_command_number_{1};

    std::array<InitiatorCommand*, initiator_commands_max> slots_{};
    std::vector<std::uint32_t> free_slots_;
    std::uint32_t generation_ = 0;
    std::size_t under_way_ = 0;
    std::size_t again_under_way_ = 0;  ///< of those, sent again
    std::size_t again_later_ = 0;      ///< and of those that wait for a moment
    std::uint64_t next_order_ = 1;
    IntrusiveQueue<InitiatorCommand> first_;
    IntrusiveQueue<InitiatorCommand> waiting_;
    std::vector<InitiatorCommand*> later_;
    bool draining_ = false;  ///< the target wants us to leave: nothing new is sent
    bool logout_sent_ = false;
    bool logout_answered_ = false;
    bool starting_ = false;
    bool held_ = false;

    std::function<void(Result<std::vector<DiscoveredTarget>>)> discovered_;
    std::string discovery_joined_;
    std::size_t discovery_exchanges_ = 0;

    std::optional<Rescue> rescue_;

    Instant now_{};
    std::optional<Instant> login_deadline_;
    std::optional<Instant> later_deadline_;
};

}  // namespace weft::iscsi
