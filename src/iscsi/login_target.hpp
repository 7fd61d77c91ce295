// SPDX-License-Identifier: Apache-2.0
// The target's side of a login (RFC 7143 section 6.3) as a machine: a Login Request in, at most one
// Login Response out. It is the same over TCP and inside iSER's Sends.
//
// All questions that need to know the world go to a LoginPolicy: is there such a target, may this
// initiator use it, what is the secret of that name, does the session exist. Every key the
// initiator offers is answered in the very response to the request that brought it, and nothing is
// offered in return but what must be declared: libiscsi 1.19 over iSER, tgtd and others do not
// survive a target that negotiates longer than they do.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "iscsi/chap.hpp"
#include "iscsi/negotiation.hpp"
#include "wire/iscsi_login.hpp"

namespace weft::iscsi {

/// Who wants to log in to what.
struct LoginName {
    std::string initiator_name;
    std::string initiator_alias;
    std::string target_name;  ///< empty in a discovery session
    SessionType session_type = SessionType::normal;
    wire::InitiatorSessionId initiator_session_id{};
    std::uint16_t target_session_handle = 0;  ///< 0: a new session, or one in place of the old
    std::uint16_t connection_id = 0;
};

/// The commands a session takes: what every response tells the initiator.
struct CommandWindow {
    std::uint32_t expected = 0;  ///< ExpCmdSN
    std::uint32_t last = 0;      ///< MaxCmdSN
};

/// What a target has to say when it has heard who comes.
struct LoginAdmission {
    /// not_found, authorization_failure, target_moved_temporarily, service_unavailable, …
    wire::LoginStatus status = wire::LoginStatus::success;
    std::string target_address{};  ///< of a redirection: host[:port], no portal group
    std::uint16_t portal_group_tag = 1;
    std::string target_alias{};  ///< empty: none is declared
    bool authentication_required = false;
    Wishes wishes{};
    /// Of one more connection to a session: what the session agreed on.
    std::optional<Terms> session_terms{};
    /// And its window: one computed from the login's own number might promise too much.
    std::optional<CommandWindow> session_window{};
};

/// Where a login ends: its place in a session.
struct LoginSeat {
    wire::LoginStatus status = wire::LoginStatus::success;
    std::uint16_t target_session_handle = 0;
    /// One more connection: the session's window as it is now. A new session's begins with the
    /// number of the login.
    std::optional<CommandWindow> session_window{};
};

class LoginPolicy {
public:
    /// Asked once per login, when the initiator has said who it is and before anything is answered.
    virtual LoginAdmission admit(const LoginName& name) = 0;

    /// The secret by which this user proves who he is to this target; none: there is no such user.
    virtual std::optional<std::string> secret_of(const LoginName& name, std::string_view user) = 0;
    /// What the target proves itself with, if the initiator asks it to.
    virtual std::optional<ChapCredentials> own_credentials(const LoginName& name) = 0;
    /// Octets nobody can foresee.
    virtual void fill_with_chance(Buffer octets) = 0;

    /// The login is about to succeed. None: not yet (an old session is being closed), and
    /// LoginTarget::seated() will be called later. Asked once.
    virtual std::optional<LoginSeat> seat(const LoginName& name, const Terms& terms) = 0;

protected:
    ~LoginPolicy() = default;
};

class LoginTarget {
public:
    enum class State : std::uint8_t {
        running,   ///< more requests are expected
        waiting,   ///< for seated(); no response is due yet
        accepted,  ///< the response at hand is the last: then the full feature phase
        refused,   ///< the response at hand is the last: then close
        broken,    ///< the peer does not speak iSCSI: close without a word
    };

    /// `window`: the commands a new session may have under way, for MaxCmdSN.
    LoginTarget(LoginPolicy& policy, std::uint32_t window);
    LoginTarget(const LoginTarget&) = delete;
    LoginTarget& operator=(const LoginTarget&) = delete;

    /// One Login Request: its basic header and its data segment. Call again only after the response
    /// was sent. Anything that is no Login Request is answered with invalid_during_login.
    State take(ConstBuffer header, ConstBuffer data);
    /// Answers a seat() that had to wait.
    State seated(const LoginSeat& seat);

    State state() const { return state_; }
    bool has_response() const { return has_response_; }
    /// The response at hand, until the next take().
    const std::array<std::byte, wire::basic_header_size>& response_header() const {
        return response_header_;
    }
    ConstBuffer response_data() const { return response_data_; }

    const LoginName& name() const { return name_; }
    const Terms& terms() const;
    wire::LoginStatus status() const { return status_; }
    /// Who proved himself, if somebody had to.
    const std::string& user() const { return user_; }
    /// Once accepted: the handle, and the numbers that follow the last response.
    std::uint16_t target_session_handle() const { return seat_.target_session_handle; }
    std::uint32_t next_status_number() const { return status_number_; }
    std::uint32_t expected_command_number() const { return window_.expected; }

private:
    enum class Authentication : std::uint8_t {
        open,        ///< nothing was said yet
        chosen,      ///< CHAP: the algorithm comes next
        challenged,  ///< the response comes next
        done,
    };

    using Refusal = std::optional<wire::LoginStatus>;  ///< none: go on

    State refuse(wire::LoginStatus status);
    State respond();
    State accept();
    void write_response(bool transit, wire::LoginStage next_stage);
    Refusal check_header(const wire::LoginRequestPdu& request);
    Refusal take_text();
    Refusal take_pairs();
    Refusal take_said(const TextKeyRule& rule, std::string_view value);
    Refusal introduce();
    bool ready_to_leave() const;

    Refusal authenticate();
    Refusal choose_method();
    Refusal challenge();
    Refusal verify();
    Refusal answer_challenge(const std::string& user_secret);

    LoginPolicy& policy_;
    std::uint32_t window_size_;
    CommandWindow window_;
    State state_ = State::running;
    bool has_response_ = false;
    std::array<std::byte, wire::basic_header_size> response_header_{};
    ConstBuffer response_data_;

    LoginName name_;
    bool first_seen_ = false;  ///< the first request came: all others must match it
    bool introduced_ = false;  ///< the policy has been asked
    bool declared_ = false;    ///< what we must declare in the operational stage was said
    wire::LoginRequestPdu first_{};
    wire::LoginRequestPdu request_{};
    wire::LoginStage stage_{};
    LoginAdmission admission_;
    std::optional<Negotiation> negotiation_;
    TextAssembly incoming_;
    TextQueue outgoing_;
    std::size_t steps_ = 0;

    Authentication authentication_ = Authentication::open;
    std::string user_;
    SaidKeys said_;
    ChapAlgorithm algorithm_{};
    ChapChallenge own_challenge_;

    wire::LoginStatus status_ = wire::LoginStatus::success;
    LoginSeat seat_;
    std::uint32_t status_number_ = 0;
};

}  // namespace weft::iscsi
