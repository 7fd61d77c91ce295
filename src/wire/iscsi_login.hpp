// SPDX-License-Identifier: Apache-2.0
// The iSCSI PDUs of a session's life: Login, Text and Logout, each asked and answered
// (RFC 7143 sections 11.10 to 11.15). Login and Text carry key=value pairs: wire/iscsi_text.hpp.
#pragma once

#include "wire/iscsi_header.hpp"

namespace weft::wire {

/// Where a login is and where it wants to go.
enum class LoginStage : std::uint8_t {
    security_negotiation = 0,
    operational_negotiation = 1,
    full_feature_phase = 3,
};

/// The class in the upper octet, the detail in the lower: section 11.13.5.
enum class LoginStatus : std::uint16_t {
    success = 0x0000,
    target_moved_temporarily = 0x0101,
    target_moved_permanently = 0x0102,
    initiator_error = 0x0200,
    authentication_failure = 0x0201,
    authorization_failure = 0x0202,
    not_found = 0x0203,
    target_removed = 0x0204,
    unsupported_version = 0x0205,
    too_many_connections = 0x0206,
    missing_parameter = 0x0207,
    cannot_include_in_session = 0x0208,
    session_type_not_supported = 0x0209,
    session_does_not_exist = 0x020a,
    invalid_during_login = 0x020b,
    target_error = 0x0300,
    service_unavailable = 0x0301,
    out_of_resources = 0x0302,
};

/// What an initiator needs to know if it does not know the detail.
enum class LoginStatusClass : std::uint8_t {
    success = 0,
    redirection = 1,
    initiator_error = 2,
    target_error = 3,
};

constexpr LoginStatusClass class_of(LoginStatus status) {
    return static_cast<LoginStatusClass>(static_cast<std::uint16_t>(status) >> 8);
}

/// The initiator's part of a session's name (ISID). The upper two bits of the first octet say who
/// guarantees that it is unique: an OUI, an enterprise number, or chance.
using InitiatorSessionId = Octets<6>;

/// Section 11.12. Always immediate.
struct LoginRequestPdu {
    bool transit = false;    ///< ready to leave the current stage for the next
    bool continues = false;  ///< the text goes on in the next PDU
    LoginStage current_stage{};
    LoginStage next_stage{};
    std::uint8_t version_max = 0;
    std::uint8_t version_min = 0;
    std::uint32_t data_length = 0;
    InitiatorSessionId initiator_session_id{};
    std::uint16_t target_session_handle = 0;  ///< TSIH; zero asks for a new session
    InitiatorTaskTag task_tag{};
    std::uint16_t connection_id = 0;
    InitiatorNumbers numbers{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<1>, fixed<1>("immediate", 1),
               fixed<6>("opcode", static_cast<std::uint64_t>(IscsiOpcode::login_request)));
        v.pack(bits<1>("transit", h.transit), bits<1>("continues", h.continues), reserved<2>,
               bits<2>("current stage", h.current_stage), bits<2>("next stage", h.next_stage));
        v("version max", h.version_max);
        v("version min", h.version_min);
        describe_data_length(v, h.data_length);
        v("initiator session id", h.initiator_session_id);
        v("target session handle", h.target_session_handle);
        v("task tag", h.task_tag);
        v("connection id", h.connection_id);
        v.pack(reserved<16>);
        v.nested("numbers", h.numbers);
        v.pack(reserved<64>);
        v.pack(reserved<64>);
    }
    bool operator==(const LoginRequestPdu&) const = default;
};
static_assert(wire_size<LoginRequestPdu>() == basic_header_size);

/// Section 11.13. The numbers count only if the status is success.
struct LoginResponsePdu {
    bool transit = false;
    bool continues = false;
    LoginStage current_stage{};
    LoginStage next_stage{};
    std::uint8_t version_max = 0;
    std::uint8_t version_active = 0;
    std::uint32_t data_length = 0;
    InitiatorSessionId initiator_session_id{};
    std::uint16_t target_session_handle = 0;
    InitiatorTaskTag task_tag{};
    TargetNumbers numbers{};
    LoginStatus status{};

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::login_response>(v);
        v.pack(bits<1>("transit", h.transit), bits<1>("continues", h.continues), reserved<2>,
               bits<2>("current stage", h.current_stage), bits<2>("next stage", h.next_stage));
        v("version max", h.version_max);
        v("version active", h.version_active);
        describe_data_length(v, h.data_length);
        v("initiator session id", h.initiator_session_id);
        v("target session handle", h.target_session_handle);
        v("task tag", h.task_tag);
        v.pack(reserved<32>);
        v.nested("numbers", h.numbers);
        v("status", h.status);
        v.pack(reserved<16>);
        v.pack(reserved<64>);
    }
    bool operator==(const LoginResponsePdu&) const = default;
};
static_assert(wire_size<LoginResponsePdu>() == basic_header_size);

/// Section 11.10.
struct TextRequestPdu {
    bool immediate = false;
    bool final = false;
    bool continues = false;
    std::uint32_t data_length = 0;
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    TargetTransferTag transfer_tag{};  ///< none starts afresh, otherwise the target's from before
    InitiatorNumbers numbers{};

    static constexpr void describe(auto& v, auto& h) {
        describe_request_opcode<IscsiOpcode::text_request>(v, h.immediate);
        v.pack(bits<1>("final", h.final), bits<1>("continues", h.continues), reserved<22>);
        describe_data_length(v, h.data_length);
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("transfer tag", h.transfer_tag);
        v.nested("numbers", h.numbers);
        v.pack(reserved<64>);
        v.pack(reserved<64>);
    }
    bool operator==(const TextRequestPdu&) const = default;
};
static_assert(wire_size<TextRequestPdu>() == basic_header_size);

/// Section 11.11.
struct TextResponsePdu {
    bool final = false;
    bool continues = false;
    std::uint32_t data_length = 0;
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    TargetTransferTag transfer_tag{};  ///< not none: ask again with this tag, there is more
    TargetNumbers numbers{};

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::text_response>(v);
        v.pack(bits<1>("final", h.final), bits<1>("continues", h.continues), reserved<22>);
        describe_data_length(v, h.data_length);
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("transfer tag", h.transfer_tag);
        v.nested("numbers", h.numbers);
        v.pack(reserved<64>);
        v.pack(reserved<32>);
    }
    bool operator==(const TextResponsePdu&) const = default;
};
static_assert(wire_size<TextResponsePdu>() == basic_header_size);

enum class LogoutReason : std::uint8_t {
    close_session = 0,
    close_connection = 1,
    remove_connection_for_recovery = 2,
};

enum class LogoutResult : std::uint8_t {
    closed = 0,
    connection_not_found = 1,
    recovery_not_supported = 2,
    cleanup_failed = 3,
};

/// Section 11.14.
struct LogoutRequestPdu {
    bool immediate = false;
    LogoutReason reason{};
    InitiatorTaskTag task_tag{};
    std::uint16_t connection_id = 0;
    InitiatorNumbers numbers{};

    static constexpr void describe(auto& v, auto& h) {
        describe_request_opcode<IscsiOpcode::logout_request>(v, h.immediate);
        v.pack(fixed<1>("final", 1), bits<7>("reason", h.reason), reserved<16>);
        describe_no_data(v);
        v.pack(reserved<64>);
        v("task tag", h.task_tag);
        v("connection id", h.connection_id);
        v.pack(reserved<16>);
        v.nested("numbers", h.numbers);
        v.pack(reserved<64>);
        v.pack(reserved<64>);
    }
    bool operator==(const LogoutRequestPdu&) const = default;
};
static_assert(wire_size<LogoutRequestPdu>() == basic_header_size);

/// Section 11.15.
struct LogoutResponsePdu {
    LogoutResult result{};
    InitiatorTaskTag task_tag{};
    TargetNumbers numbers{};
    std::uint16_t wait_seconds = 0;    ///< Time2Wait: reassign no task before
    std::uint16_t retain_seconds = 0;  ///< Time2Retain: and none after so much more

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::logout_response>(v);
        v.pack(fixed<1>("final", 1), reserved<7>);
        v("result", h.result);
        v.pack(reserved<8>);
        describe_no_data(v);
        v.pack(reserved<64>);
        v("task tag", h.task_tag);
        v.pack(reserved<32>);
        v.nested("numbers", h.numbers);
        v.pack(reserved<32>);
        v("wait seconds", h.wait_seconds);
        v("retain seconds", h.retain_seconds);
        v.pack(reserved<32>);
    }
    bool operator==(const LogoutResponsePdu&) const = default;
};
static_assert(wire_size<LogoutResponsePdu>() == basic_header_size);

}  // namespace weft::wire
