// SPDX-License-Identifier: Apache-2.0
#include "iscsi/login_initiator.hpp"

#include <algorithm>

namespace weft::iscsi {

using wire::LoginStage;
using wire::LoginStatus;

namespace {

constexpr Error broken_rule{.code = Code::malformed};
constexpr Error not_proved{.code = Code::access_denied};

Terms terms_before(const LoginOptions& options) {
    Terms terms = options.session_terms.value_or(Terms{});
    terms.session_type = options.session_type;
    return terms;
}

}  // namespace

LoginInitiator::LoginInitiator(LoginOptions options)
    : options_(std::move(options)),
      negotiation_(Role::initiator,
                   options_.session_terms ? Occasion::later_login : Occasion::leading_login,
                   options_.wishes, terms_before(options_)) {
    introduce();
    const bool secure = options_.credentials || options_.expected_of_target;
    stage_ = secure ? LoginStage::security_negotiation : LoginStage::operational_negotiation;
    if (secure) {
        security_ = Security::method_offered;
        outgoing_.add(name_of(TextKey::auth_method),
                      options_.expected_of_target ? "CHAP" : "CHAP,None");
    } else {
        negotiation_.offer(outgoing_);
    }
    prepare(true);
}

void LoginInitiator::introduce() {
    auto say = [this](TextKey key, const std::string& value) {
        if (!value.empty()) outgoing_.add(name_of(key), value);
    };
    say(TextKey::initiator_name, options_.initiator_name);
    say(TextKey::initiator_alias, options_.initiator_alias);
    say(TextKey::target_name, options_.target_name);
    // It belongs to the leading connection alone.
    if (options_.session_terms) return;
    say(TextKey::session_type,
        options_.session_type == SessionType::discovery ? "Discovery" : "Normal");
}

void LoginInitiator::prepare(bool transit) {
    want_transit_ = transit;
    request_data_ = outgoing_.take(login_segment_max);
    const bool continues = !outgoing_.empty();
    const bool leaves = transit && !continues;
    const LoginStage next = stage_ == LoginStage::security_negotiation
                                ? LoginStage::operational_negotiation
                                : LoginStage::full_feature_phase;
    const wire::LoginRequestPdu request{
        .transit = leaves,
        .continues = continues,
        .current_stage = stage_,
        .next_stage = leaves ? next : LoginStage{},
        .data_length = static_cast<std::uint32_t>(request_data_.size()),
        .initiator_session_id = options_.initiator_session_id,
        .target_session_handle = options_.target_session_handle,
        .connection_id = options_.connection_id,
        .numbers = {.command_number = options_.command_number,
                    .expected_status_number = expected_status_number_}};
    encode(request, request_header_);
}

LoginInitiator::State LoginInitiator::fail(Error error) {
    error_ = error;
    return state_ = State::failed;
}

LoginInitiator::State LoginInitiator::take(ConstBuffer header, ConstBuffer data) {
    WEFT_CHECK(state_ == State::running);
    const auto response = decode<wire::LoginResponsePdu>(header);
    if (!response) return fail(response.error());
    if (auto good = check(*response); !good) return fail(good.error());
    if (auto kept = incoming_.add(data); !kept) return fail(kept.error());
    ++steps_;
    numbers_ = response->numbers;
    expected_status_number_ = numbers_.status_number + 1;
    status_ = response->status;
    if (response->continues) {
        prepare(false);
        return state_;
    }
    const bool more_to_say = !outgoing_.empty();
    if (more_to_say && status_ == LoginStatus::success) {
        // The target has to hear our text to its end before it answers.
        if (!incoming_.empty() || response->transit) return fail(broken_rule);
        prepare(want_transit_);
        return state_;
    }
    if (auto taken = take_pairs(); !taken) return fail(taken.error());
    switch (class_of(status_)) {
        case wire::LoginStatusClass::success:
            break;
        case wire::LoginStatusClass::redirection:
            return state_ = target_address_.empty() ? State::refused : State::redirected;
        default:
            return state_ = State::refused;
    }
    if (auto done = take_success(*response); !done) return fail(done.error());
    return state_;
}

Result<void> LoginInitiator::check(const wire::LoginResponsePdu& response) const {
    if (steps_ >= login_steps_max) return Error{.code = Code::exhausted};
    if (response.task_tag != wire::InitiatorTaskTag{} || response.version_active != 0)
        return broken_rule;
    if (response.status != LoginStatus::success) return {};  // tgtd leaves the rest empty then
    if (response.initiator_session_id != options_.initiator_session_id) return broken_rule;
    if (response.current_stage != stage_ || (response.transit && response.continues))
        return broken_rule;
    return {};
}

Result<void> LoginInitiator::take_pairs() {
    wire::TextPairs pairs(incoming_.text());
    while (true) {
        WEFT_TRY(const auto pair, pairs.next());
        if (!pair) break;
        const TextKeyRule* rule = find_text_key(pair->key);
        if (rule == nullptr || !belongs_to_login(*rule)) {
            if (status_ != LoginStatus::success) continue;
            if (auto taken = negotiation_.take(*pair, outgoing_); !taken) return taken;
            continue;
        }
        if (rule->sender == KeySender::initiator) {
            // The only thing to say to what we declared is that it was not understood.
            if (pair->value != "NotUnderstood" && pair->value != "Reject") return broken_rule;
            continue;
        }
        if (!said_.say(rule->key, pair->value)) return broken_rule;
        if (rule->key == TextKey::target_address) target_address_ = pair->value;
        if (rule->key == TextKey::target_alias) target_alias_ = pair->value;
        if (rule->key == TextKey::target_portal_group_tag)
            portal_group_tag_ = text_number(pair->value);
    }
    incoming_.clear();
    return {};
}

Result<void> LoginInitiator::take_success(const wire::LoginResponsePdu& response) {
    bool ready = true;
    if (stage_ == LoginStage::security_negotiation) {
        WEFT_TRY(ready, security_step());
    }
    if (response.transit) {
        if (!ready || !want_transit_) return broken_rule;
        if (response.next_stage == LoginStage::full_feature_phase)
            target_session_handle_ = response.target_session_handle;
        return leave_stage(response.next_stage);
    }
    prepare(ready);
    return {};
}

Result<void> LoginInitiator::leave_stage(LoginStage next) {
    if (stage_ == LoginStage::security_negotiation && next == LoginStage::operational_negotiation) {
        stage_ = next;
        negotiation_.offer(outgoing_);
        prepare(true);
        return {};
    }
    if (stage_ != LoginStage::operational_negotiation || next != LoginStage::full_feature_phase)
        return broken_rule;
    if (auto settled = negotiation_.settle(); !settled) return settled;
    state_ = State::accepted;
    return {};
}

Result<bool> LoginInitiator::security_step() {
    switch (security_) {
        case Security::method_offered: {
            const std::string* method = said_.find(TextKey::auth_method);
            // A target without any demand may leave the stage without a word about methods.
            const bool none = method == nullptr || *method == "None";
            if (none) {
                if (options_.expected_of_target) return not_proved;
                security_ = Security::over;
                return true;
            }
            if (*method != "CHAP" || !options_.credentials) return not_proved;
            outgoing_.add(name_of(TextKey::chap_algorithm), chap_list(options_.algorithms));
            security_ = Security::algorithm_offered;
            return false;
        }
        case Security::algorithm_offered: {
            auto answered = answer_challenge();
            if (!answered) return answered.error();
            security_ = Security::answered;
            return true;
        }
        case Security::answered: {
            auto proved = check_target();
            if (!proved) return proved.error();
            security_ = Security::over;
            return true;
        }
        case Security::over:
            return true;
    }
    return broken_rule;
}

Result<void> LoginInitiator::answer_challenge() {
    const std::string* algorithm = said_.find(TextKey::chap_algorithm);
    const std::string* identifier = said_.find(TextKey::chap_identifier);
    const std::string* challenge = said_.find(TextKey::chap_challenge);
    if (algorithm == nullptr || identifier == nullptr || challenge == nullptr) return not_proved;
    const auto chosen = chap_algorithms_in(*algorithm);
    const auto number = text_number(*identifier);
    WEFT_TRY(auto octets, binary_of(*challenge, chap_binary_max));
    if (chosen.size() != 1 ||
        std::ranges::find(options_.algorithms, chosen.front()) == options_.algorithms.end() ||
        !number || *number > 255 || octets.empty())
        return broken_rule;
    algorithm_ = chosen.front();
    const ChapChallenge theirs{.identifier = static_cast<std::uint8_t>(*number),
                               .octets = std::move(octets)};
    if (!long_enough(options_.credentials->secret)) return not_proved;
    WEFT_TRY(const auto response, chap_response(algorithm_, theirs, options_.credentials->secret));
    outgoing_.add(name_of(TextKey::chap_name), options_.credentials->name);
    outgoing_.add(name_of(TextKey::chap_response), binary_text({response.data(), response.size()}));
    if (!options_.expected_of_target) return {};
    // Another identifier than theirs, so that an answer to one is none to the other.
    own_challenge_ = {.identifier = static_cast<std::uint8_t>(*number + 1),
                      .octets = {options_.chance.begin(), options_.chance.end()}};
    if (own_challenge_.octets == theirs.octets ||
        !long_enough(options_.expected_of_target->secret) ||
        options_.expected_of_target->secret == options_.credentials->secret)
        return not_proved;
    outgoing_.add(name_of(TextKey::chap_identifier), std::to_string(own_challenge_.identifier));
    outgoing_.add(name_of(TextKey::chap_challenge), binary_text(own_challenge_.octets));
    for (TextKey key : {TextKey::chap_name, TextKey::chap_response}) said_.forget(key);
    return {};
}

Result<void> LoginInitiator::check_target() {
    if (!options_.expected_of_target) return {};
    const std::string* name = said_.find(TextKey::chap_name);
    const std::string* response = said_.find(TextKey::chap_response);
    if (name == nullptr || response == nullptr) return not_proved;
    const auto& expected = *options_.expected_of_target;
    if (!expected.name.empty() && *name != expected.name) return not_proved;
    const auto claimed = binary_of(*response, chap_binary_max);
    const auto right = chap_response(algorithm_, own_challenge_, expected.secret);
    if (!claimed || !right || !same_octets(*claimed, {right->data(), right->size()}))
        return not_proved;
    return {};
}

}  // namespace weft::iscsi
