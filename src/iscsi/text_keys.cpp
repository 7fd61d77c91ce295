// SPDX-License-Identifier: Apache-2.0
#include "iscsi/text_keys.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "iscsi/negotiation.hpp"

namespace weft::iscsi {

namespace {

using enum KeySender;
using enum KeyUse;
using enum KeyFunction;

constexpr std::uint32_t segment_least = 512;
constexpr std::uint32_t any_number = 0xffffffff;

constexpr TextKeyRule said_by(TextKey key, std::string_view name, KeySender sender, KeyUse use) {
    return {.key = key,
            .name = name,
            .sender = sender,
            .use = use,
            .function = said,
            .any_stage = true};
}

/// A key of the session that means nothing to discovery: settled once, by the first connection.
constexpr TextKeyRule session_flag(TextKey key, std::string_view name, KeyFunction function,
                                   bool Terms::*flag) {
    return {.key = key,
            .name = name,
            .sender = both,
            .use = leading_login,
            .function = function,
            .session_wide = true,
            .irrelevant_to_discovery = true,
            .flag = flag};
}

constexpr TextKeyRule session_number(TextKey key, std::string_view name, KeyFunction function,
                                     std::uint32_t least, std::uint32_t most,
                                     std::uint32_t Terms::*number) {
    return {.key = key,
            .name = name,
            .sender = both,
            .use = leading_login,
            .function = function,
            .session_wide = true,
            .irrelevant_to_discovery = true,
            .least = least,
            .most = most,
            .number = number};
}

/// The same, where a discovery session has a use for it.
constexpr TextKeyRule also_in_discovery(TextKeyRule rule) {
    rule.irrelevant_to_discovery = false;
    return rule;
}

constexpr TextKeyRule connection_number(TextKey key, std::string_view name,
                                        std::uint32_t Terms::*number) {
    return {.key = key,
            .name = name,
            .sender = both,
            .use = any_login,
            .function = smaller,
            .least = segment_least,
            .most = wire::max_data_segment_length,
            .number = number};
}

constexpr TextKeyRule choice(TextKey key, std::string_view name, KeyUse use) {
    return {.key = key, .name = name, .sender = both, .use = use, .function = first_common};
}

/// What each side says of itself, without an answer.
constexpr TextKeyRule declared_number(TextKey key, std::string_view name, KeyUse use,
                                      std::uint32_t least, std::uint32_t most,
                                      std::uint32_t Terms::*of_initiator,
                                      std::uint32_t Terms::*of_target) {
    return {.key = key,
            .name = name,
            .sender = both,
            .use = use,
            .function = declared,
            .session_wide = use == leading_login,
            .least = least,
            .most = most,
            .number = of_initiator,
            .number_of_target = of_target};
}

constexpr TextKeyRule zero_is_fine(TextKeyRule rule) {
    rule.zero_too = true;
    return rule;
}

constexpr TextKeyRule declared_flag(TextKey key, std::string_view name, bool Terms::*flag) {
    return {.key = key,
            .name = name,
            .sender = initiator,
            .use = leading_login,
            .function = declared,
            .session_wide = true,
            .flag = flag};
}

constexpr TextKeyRule obsolete(TextKey key, std::string_view name, KeyFunction function) {
    return {.key = key, .name = name, .sender = both, .use = any_login, .function = function};
}

constexpr TextKeyRule security(TextKey key, std::string_view name) {
    return said_by(key, name, both, any_login);
}

using K = TextKey;
using T = Terms;

// In the order of TextKey.
constexpr std::array<TextKeyRule, text_key_count> rules{{
    choice(K::header_digest, "HeaderDigest", any_login),
    choice(K::data_digest, "DataDigest", any_login),
    session_number(K::max_connections, "MaxConnections", smaller, 1, 65535, &T::max_connections),
    said_by(K::send_targets, "SendTargets", initiator, text_only),
    said_by(K::target_name, "TargetName", both, any_login),
    said_by(K::initiator_name, "InitiatorName", initiator, any_login),
    said_by(K::target_alias, "TargetAlias", target, login_and_text),
    said_by(K::initiator_alias, "InitiatorAlias", initiator, login_and_text),
    said_by(K::target_address, "TargetAddress", target, login_and_text),
    said_by(K::target_portal_group_tag, "TargetPortalGroupTag", target, any_login),
    session_flag(K::initial_r2t, "InitialR2T", either_wants, &T::initial_r2t),
    session_flag(K::immediate_data, "ImmediateData", both_agree, &T::immediate_data),
    declared_number(K::max_receive_data_segment_length, "MaxRecvDataSegmentLength", login_and_text,
                    segment_least, wire::max_data_segment_length, &T::initiator_segment_max,
                    &T::target_segment_max),
    session_number(K::max_burst_length, "MaxBurstLength", smaller, segment_least,
                   wire::max_data_segment_length, &T::max_burst),
    session_number(K::first_burst_length, "FirstBurstLength", smaller, segment_least,
                   wire::max_data_segment_length, &T::first_burst),
    also_in_discovery(session_number(K::default_time_to_wait, "DefaultTime2Wait", larger, 0, 3600,
                                     &T::time_to_wait)),
    also_in_discovery(session_number(K::default_time_to_retain, "DefaultTime2Retain", smaller, 0,
                                     3600, &T::time_to_retain)),
    session_number(K::max_outstanding_r2t, "MaxOutstandingR2T", smaller, 1, 65535,
                   &T::max_outstanding_r2t),
    session_flag(K::data_pdu_in_order, "DataPDUInOrder", either_wants, &T::data_pdu_in_order),
    session_flag(K::data_sequence_in_order, "DataSequenceInOrder", either_wants,
                 &T::data_sequence_in_order),
    also_in_discovery(session_number(K::error_recovery_level, "ErrorRecoveryLevel", smaller, 0, 2,
                                     &T::error_recovery_level)),
    said_by(K::session_type, "SessionType", initiator, leading_login),
    choice(K::task_reporting, "TaskReporting", leading_login),
    session_number(K::protocol_level, "iSCSIProtocolLevel", smaller, 0, 31, &T::protocol_level),
    said_by(K::node_architecture, "X#NodeArchitecture", both, any_login),
    obsolete(K::if_marker, "IFMarker", always_no),
    obsolete(K::of_marker, "OFMarker", always_no),
    obsolete(K::if_mark_interval, "IFMarkInt", always_reject),
    obsolete(K::of_mark_interval, "OFMarkInt", always_reject),
    session_flag(K::rdma_extensions, "RDMAExtensions", both_agree, &T::rdma_extensions),
    connection_number(K::target_receive_data_segment_length, "TargetRecvDataSegmentLength",
                      &T::rdma_target_segment_max),
    connection_number(K::initiator_receive_data_segment_length, "InitiatorRecvDataSegmentLength",
                      &T::rdma_initiator_segment_max),
    zero_is_fine(declared_number(K::max_outstanding_unexpected_pdus, "MaxOutstandingUnexpectedPDUs",
                                 leading_login, 2, any_number, &T::initiator_unexpected_pdus_max,
                                 &T::target_unexpected_pdus_max)),
    zero_is_fine(declared_number(K::max_additional_headers_length, "MaxAHSLength", leading_login, 2,
                                 any_number, &T::initiator_additional_headers_max,
                                 &T::target_additional_headers_max)),
    declared_flag(K::tagged_buffer_for_solicited_data_only, "TaggedBufferForSolicitedDataOnly",
                  &T::tagged_buffer_for_solicited_only),
    declared_flag(K::hello_required, "iSERHelloRequired", &T::hello_required),
    security(K::auth_method, "AuthMethod"),
    security(K::chap_algorithm, "CHAP_A"),
    security(K::chap_identifier, "CHAP_I"),
    security(K::chap_challenge, "CHAP_C"),
    security(K::chap_name, "CHAP_N"),
    security(K::chap_response, "CHAP_R"),
}};

constexpr bool in_order() {
    for (std::size_t i = 0; i < rules.size(); ++i)
        if (static_cast<std::size_t>(rules[i].key) != i) return false;
    return true;
}
static_assert(in_order());

}  // namespace

std::span<const TextKeyRule> text_key_rules() {
    return rules;
}

const TextKeyRule& rule_of(TextKey key) {
    return rules[static_cast<std::size_t>(key)];
}

const TextKeyRule* find_text_key(std::string_view name) {
    const auto* found = std::ranges::find(rules, name, &TextKeyRule::name);
    return found == rules.end() ? nullptr : found;
}

std::string_view name_of(TextKey key) {
    return rule_of(key).name;
}

bool belongs_to_login(const TextKeyRule& rule) {
    return rule.function == said;
}

}  // namespace weft::iscsi
