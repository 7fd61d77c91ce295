// SPDX-License-Identifier: Apache-2.0
// The negotiation of iSCSI's text keys (RFC 7143 sections 6 and 13, RFC 7144, RFC 7145), for both
// roles: one table says of each key who may send it, when, how the outcome is found and within
// what range; one machine applies it.
//
// Names, addresses, CHAP and SendTargets are not negotiated but said: login and text exchanges read
// them themselves (they are in the table, so that their rules are checked like all others).
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "iscsi/limits.hpp"
#include "iscsi/pdu_receiver.hpp"
#include "iscsi/text_keys.hpp"
#include "wire/iscsi_login.hpp"
#include "wire/iscsi_text.hpp"

namespace weft::iscsi {

enum class Role : std::uint8_t { initiator, target };

enum class SessionType : std::uint8_t { normal, discovery };
enum class TaskReporting : std::uint8_t { rfc3720, response_fence, fast_abort };

/// What both sides agreed on; what the defaults say where nothing was said.
struct Terms {
    // of the connection
    bool header_digest = false;
    bool data_digest = false;
    std::uint32_t initiator_segment_max = 8192;  ///< the longest data segment to the initiator
    std::uint32_t target_segment_max = 8192;     ///< and to the target

    // of the session
    SessionType session_type = SessionType::normal;
    std::uint32_t max_connections = 1;
    bool initial_r2t = true;     ///< data beyond the immediate must be asked for
    bool immediate_data = true;  ///< data may come with the command
    std::uint32_t max_burst = 262144;
    std::uint32_t first_burst = 65536;
    std::uint32_t time_to_wait = 2;  ///< seconds
    std::uint32_t time_to_retain = 20;
    std::uint32_t max_outstanding_r2t = 1;
    bool data_pdu_in_order = true;
    bool data_sequence_in_order = true;
    std::uint32_t error_recovery_level = 0;
    TaskReporting task_reporting = TaskReporting::rfc3720;
    std::uint32_t protocol_level = 1;

    // iSER (RFC 7145)
    bool rdma_extensions = false;
    /// Over iSER these take the place of the two segment lengths above.
    std::uint32_t rdma_initiator_segment_max = 8192;
    std::uint32_t rdma_target_segment_max = 8192;
    std::uint32_t initiator_unexpected_pdus_max = 0;  ///< said by the initiator; 0: no limit
    std::uint32_t target_unexpected_pdus_max = 0;
    std::uint32_t initiator_additional_headers_max = 256;  ///< the initiator takes; 0: no limit
    std::uint32_t target_additional_headers_max = 256;
    bool tagged_buffer_for_solicited_only = false;
    bool hello_required = false;

    bool operator==(const Terms&) const = default;

    Digests digests() const { return {header_digest, data_digest}; }
};

/// What one would like of a digest.
enum class DigestWish : std::uint8_t { never, if_wanted, preferred, required };

/// What a side offers and settles for. A number is the most of a key whose smaller value wins and
/// the least of one whose larger wins; a truth value is what one would like.
struct Wishes {
    Terms terms;  ///< the segment length of the own role is what one declares
    DigestWish header_digest = DigestWish::if_wanted;
    DigestWish data_digest = DigestWish::if_wanted;
    /// The initiator offers the keys of iSER; the target answers RDMAExtensions with
    /// `terms.rdma_extensions`.
    bool offer_rdma = false;
};

/// When pairs are exchanged: it decides which keys are allowed.
enum class Occasion : std::uint8_t {
    leading_login,  ///< the first connection of a session
    later_login,    ///< one more connection: nothing of the session can change
    full_feature,   ///< Text PDUs
};

/// A number as text has it: decimal, or hexadecimal after 0x.
std::optional<std::uint32_t> text_number(std::string_view text);

/// The text a side sent, joined over the PDUs it came in (the C bit).
class TextAssembly {
public:
    /// The text of one more PDU. Refused as exhausted: more than text_bytes_max in all.
    Result<void> add(ConstBuffer segment);
    ConstBuffer text() const { return std::as_bytes(std::span(text_)); }
    bool empty() const { return text_.empty(); }
    void clear() { text_.clear(); }

private:
    std::string text_;
};

/// Text on its way out, cut into PDUs.
class TextQueue {
public:
    void add(std::string_view key, std::string_view value);
    bool empty() const { return sent_ == text_.size(); }
    std::size_t size() const { return text_.size() - sent_; }
    /// The next segment of at most `limit` octets; valid until the next call of anything.
    ConstBuffer take(std::size_t limit);
    void clear() { text_.clear(), sent_ = 0; }

private:
    std::string text_;
    std::size_t sent_ = 0;
};

/// What the peer said of the keys that are not negotiated: each once at most.
class SaidKeys {
public:
    /// False if it was said before, or is longer than such a value may be.
    bool say(TextKey key, std::string_view value);
    /// What was said since the last forget(); null: nothing.
    const std::string* find(TextKey key) const;
    /// What was said counts as heard; to say it again is still an error.
    void forget(TextKey key) { values_[static_cast<std::size_t>(key)].reset(); }

private:
    std::array<std::optional<std::string>, text_key_count> values_;
    std::bitset<text_key_count> ever_;
};

class Negotiation {
public:
    /// `terms`: what holds before: the defaults, or for one more connection the session's.
    Negotiation(Role own, Occasion occasion, const Wishes& wishes, const Terms& terms);

    /// Adds our offers: for an initiator all it wants, for a target what it must declare (its
    /// segment length). To be called once, when the operational stage is entered.
    void offer(TextQueue& out);

    /// A pair of the peer's, to be called for every pair that is not the login's own business
    /// (belongs_to_login). Adds the answer, if one is due. An error ends the login (initiator
    /// error): a key sent twice, by the wrong side or at the wrong time, or an answer that is none
    /// to what we offered.
    Result<void> take(const wire::TextPair& pair, TextQueue& out);

    /// The peer has said all it has to say in this stage: what needs the whole picture is checked
    /// (bursts that contradict each other, a digest that was required).
    Result<void> settle();

    /// True while an offer of ours has no answer.
    bool awaits_answers() const { return (offered_ & ~answered_).any(); }

    const Terms& terms() const { return terms_; }

private:
    using KeySet = std::bitset<text_key_count>;

    void offer(TextKey key, std::string_view value, TextQueue& out);
    void offer_number(TextKey key, TextQueue& out);
    void offer_flag(TextKey key, TextQueue& out);
    void offer_session_keys(TextQueue& out);
    void offer_rdma_keys(TextQueue& out);
    void declare_segment_length(TextQueue& out);
    bool allowed_now(const TextKeyRule& rule) const;
    Result<void> take_answer(const TextKeyRule& rule, std::string_view value);
    Result<void> take_choice(const TextKeyRule& rule, std::string_view value);
    Result<void> take_offer(const TextKeyRule& rule, std::string_view value, TextQueue& out);
    Result<void> take_declaration(const TextKeyRule& rule, std::string_view value);
    std::string choose(const TextKeyRule& rule, std::string_view list);

    Role own_;
    Occasion occasion_;
    Wishes wishes_;
    Terms terms_;
    KeySet offered_;
    KeySet answered_;
    KeySet seen_;  ///< sent by the peer
    std::size_t pairs_ = 0;
};

}  // namespace weft::iscsi
