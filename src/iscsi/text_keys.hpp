// SPDX-License-Identifier: Apache-2.0
// Every text key iSCSI knows, as a table: who may send it, when, how its outcome is found, within
// what range (RFC 7143 section 13, RFC 7144 section 7.1, RFC 7145 section 6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weft::iscsi {

struct Terms;

enum class TextKey : std::uint8_t {
    header_digest,
    data_digest,
    max_connections,
    send_targets,
    target_name,
    initiator_name,
    target_alias,
    initiator_alias,
    target_address,
    target_portal_group_tag,
    initial_r2t,
    immediate_data,
    max_receive_data_segment_length,
    max_burst_length,
    first_burst_length,
    default_time_to_wait,
    default_time_to_retain,
    max_outstanding_r2t,
    data_pdu_in_order,
    data_sequence_in_order,
    error_recovery_level,
    session_type,
    task_reporting,
    protocol_level,
    node_architecture,
    if_marker,
    of_marker,
    if_mark_interval,
    of_mark_interval,
    rdma_extensions,
    target_receive_data_segment_length,
    initiator_receive_data_segment_length,
    max_outstanding_unexpected_pdus,
    max_additional_headers_length,
    tagged_buffer_for_solicited_data_only,
    hello_required,
    auth_method,
    chap_algorithm,
    chap_identifier,
    chap_challenge,
    chap_name,
    chap_response,
};
inline constexpr std::size_t text_key_count = 42;

enum class KeySender : std::uint8_t { initiator, target, both };

/// The "use" column of RFC 7143: LO, IO, ALL, FFPO.
enum class KeyUse : std::uint8_t { leading_login, any_login, login_and_text, text_only };

/// How the outcome follows from what the two sides say.
enum class KeyFunction : std::uint8_t {
    said,           ///< a declaration or an exchange that somebody else reads
    declared,       ///< each side's own, no answer
    both_agree,     ///< Yes only if both say so (AND)
    either_wants,   ///< Yes if one says so (OR)
    smaller,        ///< of two numbers
    larger,         ///< of two numbers
    first_common,   ///< of a list of words, by the order of whoever offers
    always_no,      ///< obsolete: the answer is No
    always_reject,  ///< obsolete: the answer is Reject
};

struct TextKeyRule {
    TextKey key;
    std::string_view name;
    KeySender sender;
    KeyUse use;
    KeyFunction function;
    bool session_wide = false;             ///< must not be sent on a later connection
    bool irrelevant_to_discovery = false;  ///< a discovery session moves no SCSI data
    bool any_stage = false;                ///< also in security negotiation
    std::uint32_t least = 0;
    std::uint32_t most = 0;
    bool zero_too = false;  ///< 0 is legal though below `least`
    bool Terms::*flag = nullptr;
    std::uint32_t Terms::*number = nullptr;  ///< of a declaration: what the initiator declares
    std::uint32_t Terms::*number_of_target = nullptr;
};

std::span<const TextKeyRule> text_key_rules();
const TextKeyRule& rule_of(TextKey key);
/// Null: a key we have never heard of.
const TextKeyRule* find_text_key(std::string_view name);
std::string_view name_of(TextKey key);

/// Names and the like, and authentication: what a login reads itself.
bool belongs_to_login(const TextKeyRule& rule);

}  // namespace weft::iscsi
