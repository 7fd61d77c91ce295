// SPDX-License-Identifier: Apache-2.0
// The initiator's side of a login as a machine: Login Responses in, Login Requests out. The same
// over TCP and inside iSER's Sends.
//
// Declarations are made once, in the first request: FreeBSD's ctld drops a login that repeats them.
// With credentials it begins in security negotiation; without, at once in the operational stage,
// with all its offers in one request.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "iscsi/chap.hpp"
#include "iscsi/negotiation.hpp"
#include "wire/iscsi_login.hpp"

namespace weft::iscsi {

struct LoginOptions {
    std::string initiator_name;
    std::string initiator_alias;  ///< empty: none is declared
    std::string target_name;      ///< empty in a discovery session
    SessionType session_type = SessionType::normal;
    wire::InitiatorSessionId initiator_session_id{};
    std::uint16_t target_session_handle = 0;  ///< not 0: one more connection of that session
    std::uint16_t connection_id = 0;
    std::uint32_t command_number = 1;
    Wishes wishes{};
    /// One more connection: what the session agreed on.
    std::optional<Terms> session_terms{};

    /// Who we are, if the target wants to know.
    std::optional<ChapCredentials> credentials{};
    /// Who the target must prove to be. It is asked to only if this is set.
    std::optional<ChapCredentials> expected_of_target{};
    std::vector<ChapAlgorithm> algorithms{chap_algorithms_offered.begin(),
                                          chap_algorithms_offered.end()};
    /// Octets nobody can foresee, for the challenge to the target.
    std::array<std::byte, chap_challenge_size> chance{};
};

class LoginInitiator {
public:
    enum class State : std::uint8_t {
        running,
        accepted,
        refused,     ///< by the target: status() says why
        redirected,  ///< the target is elsewhere: target_address()
        failed,      ///< by us: the target broke a rule or could not prove itself: error()
    };

    explicit LoginInitiator(LoginOptions options);
    LoginInitiator(const LoginInitiator&) = delete;
    LoginInitiator& operator=(const LoginInitiator&) = delete;

    /// One Login Response. In state running a new request is at hand then.
    State take(ConstBuffer header, ConstBuffer data);

    State state() const { return state_; }
    /// The request at hand: there is one from the beginning.
    const std::array<std::byte, wire::basic_header_size>& request_header() const {
        return request_header_;
    }
    ConstBuffer request_data() const { return request_data_; }

    const Terms& terms() const { return negotiation_.terms(); }
    wire::LoginStatus status() const { return status_; }
    Error error() const { return error_; }
    const std::string& target_address() const { return target_address_; }
    const std::string& target_alias() const { return target_alias_; }
    std::optional<std::uint32_t> portal_group_tag() const { return portal_group_tag_; }
    std::uint16_t target_session_handle() const { return target_session_handle_; }
    /// Of the last response. The next status number expected is one more than its own.
    const wire::TargetNumbers& numbers() const { return numbers_; }

private:
    enum class Security : std::uint8_t { method_offered, algorithm_offered, answered, over };

    State fail(Error error);
    void introduce();
    void prepare(bool transit);
    Result<void> check(const wire::LoginResponsePdu& response) const;
    Result<void> take_pairs();
    Result<void> take_success(const wire::LoginResponsePdu& response);
    Result<void> leave_stage(wire::LoginStage next);
    /// True: this side is ready to leave security negotiation.
    Result<bool> security_step();
    Result<void> answer_challenge();
    Result<void> check_target();

    LoginOptions options_;
    State state_ = State::running;
    std::array<std::byte, wire::basic_header_size> request_header_{};
    ConstBuffer request_data_;
    wire::LoginStage stage_{};
    Security security_ = Security::over;
    Negotiation negotiation_;
    TextAssembly incoming_;
    TextQueue outgoing_;
    std::size_t steps_ = 0;
    bool want_transit_ = false;
    SaidKeys said_;

    ChapAlgorithm algorithm_{};
    ChapChallenge own_challenge_;

    wire::LoginStatus status_ = wire::LoginStatus::success;
    Error error_{.code = Code::malformed};
    std::string target_address_;
    std::string target_alias_;
    std::optional<std::uint32_t> portal_group_tag_;
    std::uint16_t target_session_handle_ = 0;
    std::uint32_t expected_status_number_ = 0;
    wire::TargetNumbers numbers_{};
};

}  // namespace weft::iscsi
