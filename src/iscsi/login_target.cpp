// SPDX-License-Identifier: Apache-2.0
#include "iscsi/login_target.hpp"

#include <algorithm>

namespace weft::iscsi {

using wire::LoginStage;
using wire::LoginStatus;

namespace {

bool known(LoginStage stage) {
    return stage == LoginStage::security_negotiation ||
           stage == LoginStage::operational_negotiation;
}

bool can_follow(LoginStage current, LoginStage next) {
    return next > current &&
           (next == LoginStage::operational_negotiation || next == LoginStage::full_feature_phase);
}

}  // namespace

LoginTarget::LoginTarget(LoginPolicy& policy, std::uint32_t window)
    : policy_(policy), window_size_(window) {}

const Terms& LoginTarget::terms() const {
    static const Terms defaults;
    return negotiation_ ? negotiation_->terms() : defaults;
}

LoginTarget::State LoginTarget::take(ConstBuffer header, ConstBuffer data) {
    has_response_ = false;
    if (state_ != State::running) return state_ = State::broken;
    const auto request = decode<wire::LoginRequestPdu>(header);
    if (!request) {
        const auto basic = decode<wire::BasicHeader>(header);
        if (!first_seen_ || !basic) return state_ = State::broken;
        request_.task_tag = basic->task_tag;
        return refuse(basic->opcode == wire::IscsiOpcode::login_request
                          ? LoginStatus::initiator_error
                          : LoginStatus::invalid_during_login);
    }
    request_ = *request;
    if (auto refusal = check_header(*request)) return refuse(*refusal);
    if (!incoming_.add(data)) return refuse(LoginStatus::initiator_error);
    if (!request->continues)
        if (auto refusal = take_text()) return refuse(*refusal);
    return respond();
}

LoginTarget::Refusal LoginTarget::check_header(const wire::LoginRequestPdu& request) {
    if (!first_seen_) {
        first_seen_ = true;
        first_ = request;
        stage_ = request.current_stage;
        name_.initiator_session_id = request.initiator_session_id;
        name_.target_session_handle = request.target_session_handle;
        name_.connection_id = request.connection_id;
        status_number_ = request.numbers.expected_status_number;
        window_ = {.expected = request.numbers.command_number,
                   .last = request.numbers.command_number + window_size_ - 1};
    }
    if (request.version_min > 0) return LoginStatus::unsupported_version;
    if (++steps_ > login_steps_max) return LoginStatus::initiator_error;
    const bool same_login = request.initiator_session_id == first_.initiator_session_id &&
                            request.target_session_handle == first_.target_session_handle &&
                            request.task_tag == first_.task_tag &&
                            request.connection_id == first_.connection_id;
    if (!same_login || !known(request.current_stage) || request.current_stage != stage_)
        return LoginStatus::initiator_error;
    if (request.transit &&
        (request.continues || !can_follow(request.current_stage, request.next_stage)))
        return LoginStatus::initiator_error;
    return std::nullopt;
}

LoginTarget::Refusal LoginTarget::take_text() {
    if (!outgoing_.empty()) {
        // Our last text goes on; until it is over the initiator has nothing to say.
        return incoming_.empty() ? std::nullopt : Refusal(LoginStatus::initiator_error);
    }
    // What says who comes is read first, wherever it stands: it decides how the rest is answered.
    wire::TextPairs pairs(incoming_.text());
    while (true) {
        const auto pair = pairs.next();
        if (!pair) return LoginStatus::initiator_error;
        if (!*pair) break;
        const TextKeyRule* rule = find_text_key((*pair)->key);
        if (rule != nullptr && belongs_to_login(*rule))
            if (auto refusal = take_said(*rule, (*pair)->value)) return refusal;
    }
    if (!introduced_)
        if (auto refusal = introduce()) return refusal;
    if (auto refusal = take_pairs()) return refusal;
    incoming_.clear();
    if (stage_ == LoginStage::security_negotiation) return authenticate();
    if (admission_.authentication_required && authentication_ != Authentication::done)
        return LoginStatus::authentication_failure;
    return std::nullopt;
}

LoginTarget::Refusal LoginTarget::take_pairs() {
    wire::TextPairs pairs(incoming_.text());
    for (auto pair = pairs.next(); *pair; pair = pairs.next()) {
        const TextKeyRule* rule = find_text_key((*pair)->key);
        if (rule != nullptr && belongs_to_login(*rule)) continue;
        if (rule != nullptr && stage_ == LoginStage::security_negotiation)
            return LoginStatus::initiator_error;
        if (!negotiation_->take(**pair, outgoing_)) return LoginStatus::initiator_error;
    }
    if (stage_ == LoginStage::operational_negotiation && !declared_) {
        declared_ = true;
        negotiation_->offer(outgoing_);
    }
    return std::nullopt;
}

LoginTarget::Refusal LoginTarget::take_said(const TextKeyRule& rule, std::string_view value) {
    if (rule.sender == KeySender::target || rule.use == KeyUse::text_only)
        return LoginStatus::initiator_error;
    const bool of_security = rule.key >= TextKey::auth_method;
    if (of_security && stage_ != LoginStage::security_negotiation)
        return LoginStatus::initiator_error;
    // Names come before the introduction, all in the first text.
    if (!of_security && introduced_ && rule.key != TextKey::node_architecture &&
        rule.key != TextKey::initiator_alias)
        return LoginStatus::initiator_error;
    if (!said_.say(rule.key, value)) return LoginStatus::initiator_error;
    return std::nullopt;
}

LoginTarget::Refusal LoginTarget::introduce() {
    introduced_ = true;
    auto said = [this](TextKey key) {
        const std::string* value = said_.find(key);
        return value == nullptr ? std::string() : *value;
    };
    name_.initiator_name = said(TextKey::initiator_name);
    name_.initiator_alias = said(TextKey::initiator_alias);
    name_.target_name = said(TextKey::target_name);
    if (const std::string* type = said_.find(TextKey::session_type)) {
        if (*type == "Discovery") {
            name_.session_type = SessionType::discovery;
        } else if (*type != "Normal") {
            return LoginStatus::session_type_not_supported;
        }
    }
    if (name_.initiator_name.empty()) return LoginStatus::missing_parameter;
    if (name_.target_name.empty() && name_.session_type == SessionType::normal)
        return LoginStatus::missing_parameter;
    if (std::max(name_.initiator_name.size(), name_.target_name.size()) > name_max)
        return LoginStatus::initiator_error;

    admission_ = policy_.admit(name_);
    if (admission_.status != LoginStatus::success) return admission_.status;
    Terms before = admission_.session_terms.value_or(Terms{});
    before.session_type = name_.session_type;
    negotiation_.emplace(Role::target,
                         admission_.session_terms ? Occasion::later_login : Occasion::leading_login,
                         admission_.wishes, before);
    if (admission_.session_window) window_ = *admission_.session_window;
    if (!admission_.target_alias.empty())
        outgoing_.add(name_of(TextKey::target_alias), admission_.target_alias);
    if (name_.session_type == SessionType::normal)
        outgoing_.add(name_of(TextKey::target_portal_group_tag),
                      std::to_string(admission_.portal_group_tag));
    return std::nullopt;
}

bool LoginTarget::ready_to_leave() const {
    return request_.transit && outgoing_.empty() &&
           (!admission_.authentication_required || authentication_ == Authentication::done) &&
           authentication_ != Authentication::chosen &&
           authentication_ != Authentication::challenged;
}

LoginTarget::State LoginTarget::respond() {
    response_data_ = request_.continues ? ConstBuffer{} : outgoing_.take(login_segment_max);
    if (!ready_to_leave()) {
        write_response(false, stage_);
        return state_;
    }
    if (request_.next_stage == LoginStage::full_feature_phase) {
        if (!negotiation_->settle()) return refuse(LoginStatus::initiator_error);
        const auto seat = policy_.seat(name_, terms());
        if (!seat) return state_ = State::waiting;
        seat_ = *seat;
        return accept();
    }
    write_response(true, request_.next_stage);
    stage_ = request_.next_stage;
    return state_;
}

LoginTarget::State LoginTarget::seated(const LoginSeat& seat) {
    WEFT_CHECK(state_ == State::waiting);
    seat_ = seat;
    return accept();
}

LoginTarget::State LoginTarget::accept() {
    if (seat_.status != LoginStatus::success) return refuse(seat_.status);
    if (seat_.session_window) window_ = *seat_.session_window;
    write_response(true, LoginStage::full_feature_phase);
    return state_ = State::accepted;
}

void LoginTarget::write_response(bool transit, LoginStage next_stage) {
    const wire::LoginResponsePdu response{
        .transit = transit,
        .continues = !outgoing_.empty(),
        .current_stage = request_.current_stage,
        .next_stage = transit ? next_stage : LoginStage{},
        .data_length = static_cast<std::uint32_t>(response_data_.size()),
        .initiator_session_id = first_.initiator_session_id,
        .target_session_handle = transit && next_stage == LoginStage::full_feature_phase
                                     ? seat_.target_session_handle
                                     : first_.target_session_handle,
        .task_tag = request_.task_tag,
        .numbers = {.status_number = status_number_++,
                    .expected_command_number = window_.expected,
                    .max_command_number = window_.last},
        .status = status_};
    encode(response, response_header_);
    has_response_ = true;
}

LoginTarget::State LoginTarget::refuse(LoginStatus status) {
    status_ = status;
    outgoing_.clear();
    if (class_of(status) == wire::LoginStatusClass::redirection)
        outgoing_.add(name_of(TextKey::target_address), admission_.target_address);
    response_data_ = outgoing_.take(login_segment_max);
    request_.current_stage = stage_;
    write_response(false, stage_);
    return state_ = State::refused;
}

}  // namespace weft::iscsi
