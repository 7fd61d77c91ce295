// SPDX-License-Identifier: Apache-2.0
#include "iscsi/negotiation.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/bytes.hpp"

namespace weft::iscsi {

namespace {

constexpr std::string_view not_understood = "NotUnderstood";
constexpr std::string_view rejected = "Reject";
constexpr std::string_view irrelevant_answer = "Irrelevant";

constexpr Error broken_rule{.code = Code::malformed};

std::string_view yes_or_no(bool value) {
    return value ? "Yes" : "No";
}

std::optional<bool> flag_of(std::string_view text) {
    if (text == "Yes") return true;
    if (text == "No") return false;
    return std::nullopt;
}

bool in_range(const TextKeyRule& rule, std::uint32_t number) {
    return (number >= rule.least && number <= rule.most) || (number == 0 && rule.zero_too);
}

std::optional<std::uint32_t> number_in_range(const TextKeyRule& rule, std::string_view text) {
    auto number = text_number(text);
    if (number && !in_range(rule, *number)) return std::nullopt;
    return number;
}

/// The words of a list, in order; calls until `use` says that it has enough.
template <class Use>
void for_each_word(std::string_view list, Use use) {
    while (true) {
        const auto comma = list.find(',');
        if (use(list.substr(0, comma)) || comma == list.npos) return;
        list = list.substr(comma + 1);
    }
}

constexpr std::array<std::string_view, 3> task_reporting_words{"RFC3720", "ResponseFence",
                                                               "FastAbort"};

bool acceptable(DigestWish wish, bool crc32c) {
    if (wish == DigestWish::never) return !crc32c;
    return wish != DigestWish::required || crc32c;
}

/// What a list of digests comes to under a wish: none if there is nothing both can do.
std::optional<bool> choose_digest(std::string_view list, DigestWish wish) {
    std::optional<bool> chosen;
    for_each_word(list, [&](std::string_view word) {
        if (word != "CRC32C" && word != "None") return false;
        const bool crc32c = word == "CRC32C";
        if (!acceptable(wish, crc32c)) return false;
        if (!chosen || (wish == DigestWish::preferred && crc32c)) chosen = crc32c;
        return wish != DigestWish::preferred;
    });
    return chosen;
}

std::string_view digest_offer(DigestWish wish) {
    switch (wish) {
        case DigestWish::never:
            return "None";
        case DigestWish::if_wanted:
            return "None,CRC32C";
        case DigestWish::preferred:
            return "CRC32C,None";
        case DigestWish::required:
            return "CRC32C";
    }
    return "None";
}

bool settled_by_offer(const TextKeyRule& rule, bool offered) {
    return rule.function == (offered ? KeyFunction::either_wants : KeyFunction::both_agree);
}

}  // namespace

std::optional<std::uint32_t> text_number(std::string_view text) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text = text.substr(2);
    }
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

Result<void> TextAssembly::add(ConstBuffer segment) {
    if (segment.size() > text_bytes_max - text_.size()) return Error{.code = Code::exhausted};
    text_ += text_of(segment);
    return {};
}

void TextQueue::add(std::string_view key, std::string_view value) {
    if (empty()) clear();
    text_.append(key).append(1, '=').append(value).append(1, '\0');
}

ConstBuffer TextQueue::take(std::size_t limit) {
    const ConstBuffer rest = bytes_of(text_).subspan(sent_);
    const ConstBuffer segment = rest.first(std::min(limit, rest.size()));
    sent_ += segment.size();
    return segment;
}

bool SaidKeys::say(TextKey key, std::string_view value) {
    const auto index = static_cast<std::size_t>(key);
    const bool binary = key == TextKey::chap_challenge || key == TextKey::chap_response;
    const std::size_t most = binary ? 2 + 2 * chap_binary_max : wire::max_text_value;
    if (ever_.test(index) || value.size() > most) return false;
    ever_.set(index);
    values_[index] = value;
    return true;
}

const std::string* SaidKeys::find(TextKey key) const {
    const auto& value = values_[static_cast<std::size_t>(key)];
    return value ? &*value : nullptr;
}

Negotiation::Negotiation(Role own, Occasion occasion, const Wishes& wishes, const Terms& terms)
    : own_(own), occasion_(occasion), wishes_(wishes), terms_(terms) {
    wishes_.terms.first_burst = std::min(wishes_.terms.first_burst, wishes_.terms.max_burst);
    if (occasion == Occasion::full_feature) return;
    // What belongs to the connection starts afresh with it.
    const Terms defaults;
    terms_.header_digest = defaults.header_digest;
    terms_.data_digest = defaults.data_digest;
    terms_.initiator_segment_max = defaults.initiator_segment_max;
    terms_.target_segment_max = defaults.target_segment_max;
    terms_.rdma_initiator_segment_max = defaults.rdma_initiator_segment_max;
    terms_.rdma_target_segment_max = defaults.rdma_target_segment_max;
}

void Negotiation::offer(TextKey key, std::string_view value, TextQueue& out) {
    out.add(name_of(key), value);
    offered_.set(static_cast<std::size_t>(key));
}

void Negotiation::offer_number(TextKey key, TextQueue& out) {
    offer(key, std::to_string(wishes_.terms.*rule_of(key).number), out);
}

void Negotiation::offer_flag(TextKey key, TextQueue& out) {
    const TextKeyRule& rule = rule_of(key);
    const bool wish = wishes_.terms.*rule.flag;
    offer(key, yes_or_no(wish), out);
    if (!settled_by_offer(rule, wish)) return;
    // Whatever the other side would like: it may answer, and need not.
    terms_.*rule.flag = wish;
    answered_.set(static_cast<std::size_t>(key));
}

void Negotiation::declare_segment_length(TextQueue& out) {
    const std::uint32_t length = own_ == Role::initiator ? wishes_.terms.initiator_segment_max
                                                         : wishes_.terms.target_segment_max;
    (own_ == Role::initiator ? terms_.initiator_segment_max : terms_.target_segment_max) = length;
    out.add(name_of(TextKey::max_receive_data_segment_length), std::to_string(length));
}

void Negotiation::offer(TextQueue& out) {
    if (own_ == Role::target) {
        declare_segment_length(out);
        return;
    }
    const bool rdma = wishes_.offer_rdma && terms_.session_type == SessionType::normal;
    if (!rdma || wishes_.header_digest != DigestWish::never)
        offer(TextKey::header_digest, digest_offer(wishes_.header_digest), out);
    if (!rdma || wishes_.data_digest != DigestWish::never)
        offer(TextKey::data_digest, digest_offer(wishes_.data_digest), out);
    declare_segment_length(out);
    if (occasion_ == Occasion::leading_login) offer_session_keys(out);
    if (rdma) offer_rdma_keys(out);
}

void Negotiation::offer_session_keys(TextQueue& out) {
    offer_number(TextKey::default_time_to_wait, out);
    offer_number(TextKey::default_time_to_retain, out);
    offer_number(TextKey::error_recovery_level, out);
    if (terms_.session_type == SessionType::discovery) return;
    offer_flag(TextKey::initial_r2t, out);
    offer_flag(TextKey::immediate_data, out);
    offer_number(TextKey::max_burst_length, out);
    offer_number(TextKey::first_burst_length, out);
    offer_number(TextKey::max_outstanding_r2t, out);
    offer_number(TextKey::max_connections, out);
    offer_flag(TextKey::data_pdu_in_order, out);
    offer_flag(TextKey::data_sequence_in_order, out);
    if (wishes_.terms.protocol_level > 1) offer_number(TextKey::protocol_level, out);
    // Best last in TaskReporting, best first in the list; the default needs no words.
    const auto best = static_cast<std::size_t>(wishes_.terms.task_reporting);
    if (best == 0) return;
    std::string list;
    for (std::size_t word = best + 1; word-- > 0;)
        list.append(list.empty() ? "" : ",").append(task_reporting_words[word]);
    offer(TextKey::task_reporting, list, out);
}

void Negotiation::offer_rdma_keys(TextQueue& out) {
    if (occasion_ == Occasion::leading_login) {
        offer_flag(TextKey::rdma_extensions, out);
        // Unknown to all but one other implementation, so they are said only where they matter.
        const Terms& wish = wishes_.terms;
        auto say_if = [&](bool matters, TextKey key, std::string_view value) {
            if (matters) out.add(name_of(key), value);
        };
        say_if(wish.initiator_unexpected_pdus_max != 0, TextKey::max_outstanding_unexpected_pdus,
               std::to_string(wish.initiator_unexpected_pdus_max));
        say_if(wish.tagged_buffer_for_solicited_only,
               TextKey::tagged_buffer_for_solicited_data_only, "Yes");
        say_if(wish.hello_required, TextKey::hello_required, "Yes");
        terms_.initiator_unexpected_pdus_max = wish.initiator_unexpected_pdus_max;
        terms_.tagged_buffer_for_solicited_only = wish.tagged_buffer_for_solicited_only;
        terms_.hello_required = wish.hello_required;
    }
    offer_number(TextKey::initiator_receive_data_segment_length, out);
    offer_number(TextKey::target_receive_data_segment_length, out);
}

bool Negotiation::allowed_now(const TextKeyRule& rule) const {
    switch (rule.use) {
        case KeyUse::leading_login:
            return occasion_ == Occasion::leading_login;
        case KeyUse::any_login:
            return occasion_ != Occasion::full_feature;
        case KeyUse::login_and_text:
            return true;
        case KeyUse::text_only:
            return occasion_ == Occasion::full_feature;
    }
    return false;
}

Result<void> Negotiation::take(const wire::TextPair& pair, TextQueue& out) {
    if (++pairs_ > text_pairs_max) return Error{.code = Code::exhausted};
    const TextKeyRule* rule = find_text_key(pair.key);
    if (rule == nullptr) {
        // An answer to nothing we said: to answer that again would never end.
        if (pair.value != not_understood) out.add(pair.key, not_understood);
        return {};
    }
    const auto index = static_cast<std::size_t>(rule->key);
    if (pair.value.size() > wire::max_text_value || seen_.test(index)) return broken_rule;
    seen_.set(index);
    const Role peer = own_ == Role::initiator ? Role::target : Role::initiator;
    const bool may_say = rule->sender == KeySender::both ||
                         (rule->sender == KeySender::initiator) == (peer == Role::initiator);
    if (rule->function == KeyFunction::declared) {
        // A peer that does not know what we declared says so; that changes nothing.
        if (pair.value == not_understood || pair.value == rejected) return {};
        if (!may_say) return broken_rule;
        return allowed_now(*rule) ? take_declaration(*rule, pair.value) : broken_rule;
    }
    if (!may_say) return broken_rule;
    if (offered_.test(index)) {
        answered_.set(index);
        return take_answer(*rule, pair.value);
    }
    if (!allowed_now(*rule)) {
        out.add(rule->name, rejected);
        return {};
    }
    return take_offer(*rule, pair.value, out);
}

Result<void> Negotiation::take_declaration(const TextKeyRule& rule, std::string_view value) {
    if (rule.flag != nullptr) {
        auto flag = flag_of(value);
        if (!flag) return broken_rule;
        terms_.*rule.flag = *flag;
        return {};
    }
    auto number = number_in_range(rule, value);
    if (!number) return broken_rule;
    terms_.*(own_ == Role::target ? rule.number : rule.number_of_target) = *number;
    return {};
}

Result<void> Negotiation::take_answer(const TextKeyRule& rule, std::string_view value) {
    // Three words for "no": then what holds without the key holds.
    if (value == not_understood || value == irrelevant_answer || value == rejected) return {};
    switch (rule.function) {
        case KeyFunction::both_agree:
        case KeyFunction::either_wants: {
            auto flag = flag_of(value);
            const bool wish = wishes_.terms.*rule.flag;
            if (!flag || (settled_by_offer(rule, wish) && *flag != wish)) return broken_rule;
            terms_.*rule.flag = *flag;
            return {};
        }
        case KeyFunction::smaller:
        case KeyFunction::larger: {
            auto number = number_in_range(rule, value);
            const std::uint32_t wish = wishes_.terms.*rule.number;
            if (!number) return broken_rule;
            if (rule.function == KeyFunction::smaller ? *number > wish : *number < wish)
                return broken_rule;
            terms_.*rule.number = *number;
            return {};
        }
        case KeyFunction::first_common:
            return take_choice(rule, value);
        default:
            return {};
    }
}

Result<void> Negotiation::take_choice(const TextKeyRule& rule, std::string_view value) {
    if (rule.key == TextKey::task_reporting) {
        const auto* found = std::ranges::find(task_reporting_words, value);
        const auto index = static_cast<std::size_t>(found - task_reporting_words.begin());
        if (index > static_cast<std::size_t>(wishes_.terms.task_reporting)) return broken_rule;
        terms_.task_reporting = static_cast<TaskReporting>(index);
        return {};
    }
    const bool header = rule.key == TextKey::header_digest;
    const DigestWish wish = header ? wishes_.header_digest : wishes_.data_digest;
    const bool crc32c = value == "CRC32C";
    if ((!crc32c && value != "None") || !acceptable(wish, crc32c)) return broken_rule;
    (header ? terms_.header_digest : terms_.data_digest) = crc32c;
    return {};
}

Result<void> Negotiation::take_offer(const TextKeyRule& rule, std::string_view value,
                                     TextQueue& out) {
    if (rule.irrelevant_to_discovery && terms_.session_type == SessionType::discovery) {
        out.add(rule.name, irrelevant_answer);
        return {};
    }
    std::string answer(rejected);
    switch (rule.function) {
        case KeyFunction::both_agree:
        case KeyFunction::either_wants:
            if (auto flag = flag_of(value)) {
                const bool wish = wishes_.terms.*rule.flag;
                const bool outcome =
                    rule.function == KeyFunction::both_agree ? *flag && wish : *flag || wish;
                terms_.*rule.flag = outcome;
                answer = yes_or_no(outcome);
            }
            break;
        case KeyFunction::smaller:
        case KeyFunction::larger:
            if (auto number = number_in_range(rule, value)) {
                const std::uint32_t wish = wishes_.terms.*rule.number;
                const std::uint32_t outcome = rule.function == KeyFunction::smaller
                                                  ? std::min(*number, wish)
                                                  : std::max(*number, wish);
                terms_.*rule.number = outcome;
                answer = std::to_string(outcome);
            }
            break;
        case KeyFunction::first_common:
            answer = choose(rule, value);
            break;
        case KeyFunction::always_no:
            answer = "No";
            break;
        default:
            break;
    }
    out.add(rule.name, answer);
    return {};
}

std::string Negotiation::choose(const TextKeyRule& rule, std::string_view list) {
    std::string answer(rejected);
    if (rule.key == TextKey::task_reporting) {
        for_each_word(list, [&](std::string_view word) {
            const auto* found = std::ranges::find(task_reporting_words, word);
            const auto index = static_cast<std::size_t>(found - task_reporting_words.begin());
            if (index > static_cast<std::size_t>(wishes_.terms.task_reporting)) return false;
            terms_.task_reporting = static_cast<TaskReporting>(index);
            answer = word;
            return true;
        });
        return answer;
    }
    const bool header = rule.key == TextKey::header_digest;
    auto chosen = choose_digest(list, header ? wishes_.header_digest : wishes_.data_digest);
    if (!chosen) return answer;
    (header ? terms_.header_digest : terms_.data_digest) = *chosen;
    return *chosen ? "CRC32C" : "None";
}

Result<void> Negotiation::settle() {
    // RFC 7145 section 5.1: RDMA has its own checks and its own segment lengths.
    if (terms_.rdma_extensions) {
        terms_.header_digest = false;
        terms_.data_digest = false;
    } else if ((wishes_.header_digest == DigestWish::required && !terms_.header_digest) ||
               (wishes_.data_digest == DigestWish::required && !terms_.data_digest)) {
        return Error{.code = Code::access_denied};
    }
    terms_.first_burst = std::min(terms_.first_burst, terms_.max_burst);
    // Recovery within a command needs to know which R2T a lost Data-Out belonged to.
    if (terms_.error_recovery_level > 0 && terms_.data_sequence_in_order)
        terms_.max_outstanding_r2t = 1;
    return {};
}

}  // namespace weft::iscsi
