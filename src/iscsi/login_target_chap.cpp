// SPDX-License-Identifier: Apache-2.0
// The security stage of LoginTarget: which method, then CHAP in its three steps.
#include <algorithm>

#include "iscsi/login_target.hpp"

namespace weft::iscsi {

using wire::LoginStatus;

namespace {

bool list_has(std::string_view list, std::string_view wanted) {
    while (true) {
        const auto comma = list.find(',');
        if (list.substr(0, comma) == wanted) return true;
        if (comma == list.npos) return false;
        list = list.substr(comma + 1);
    }
}

}  // namespace

LoginTarget::Refusal LoginTarget::authenticate() {
    if (authentication_ == Authentication::done) return std::nullopt;
    if (said_.find(TextKey::auth_method) != nullptr && authentication_ == Authentication::open)
        if (auto refusal = choose_method()) return refusal;
    if (said_.find(TextKey::chap_algorithm) != nullptr) return challenge();
    if (said_.find(TextKey::chap_response) != nullptr) return verify();
    const bool owes_us = authentication_ == Authentication::challenged ||
                         (admission_.authentication_required &&
                          authentication_ == Authentication::open && request_.transit);
    return owes_us ? Refusal(LoginStatus::authentication_failure) : std::nullopt;
}

LoginTarget::Refusal LoginTarget::choose_method() {
    const std::string methods = *said_.find(TextKey::auth_method);
    said_.forget(TextKey::auth_method);
    if (!admission_.authentication_required && list_has(methods, "None")) {
        outgoing_.add(name_of(TextKey::auth_method), "None");
        authentication_ = Authentication::done;
        return std::nullopt;
    }
    if (!list_has(methods, "CHAP")) return LoginStatus::authentication_failure;
    outgoing_.add(name_of(TextKey::auth_method), "CHAP");
    authentication_ = Authentication::chosen;
    return std::nullopt;
}

LoginTarget::Refusal LoginTarget::challenge() {
    if (authentication_ != Authentication::chosen) return LoginStatus::authentication_failure;
    const auto offered = chap_algorithms_in(*said_.find(TextKey::chap_algorithm));
    said_.forget(TextKey::chap_algorithm);
    if (offered.empty()) return LoginStatus::authentication_failure;
    // The initiator's order counts (RFC 7143 section 12.1.3): it lists what it prefers first.
    algorithm_ = offered.front();
    std::array<std::byte, chap_challenge_size + 1> chance{};
    policy_.fill_with_chance(chance);
    own_challenge_ = {.identifier = std::to_integer<std::uint8_t>(chance[0]),
                      .octets = {chance.begin() + 1, chance.end()}};
    outgoing_.add(name_of(TextKey::chap_algorithm), chap_list({&algorithm_, 1}));
    outgoing_.add(name_of(TextKey::chap_identifier), std::to_string(own_challenge_.identifier));
    outgoing_.add(name_of(TextKey::chap_challenge), binary_text(own_challenge_.octets));
    authentication_ = Authentication::challenged;
    return std::nullopt;
}

LoginTarget::Refusal LoginTarget::verify() {
    const std::string* user = said_.find(TextKey::chap_name);
    if (authentication_ != Authentication::challenged || user == nullptr)
        return LoginStatus::authentication_failure;
    const auto claimed = binary_of(*said_.find(TextKey::chap_response), chap_binary_max);
    if (!claimed) return LoginStatus::authentication_failure;
    // An unknown user costs the same time as a known one with another secret.
    const auto secret = policy_.secret_of(name_, *user);
    const auto right = chap_response(algorithm_, own_challenge_, secret.value_or("nobody"));
    if (!right || !same_octets(*claimed, {right->data(), right->size()}) || !secret ||
        !long_enough(*secret))
        return LoginStatus::authentication_failure;
    if (auto refusal = answer_challenge(*secret)) return refusal;
    user_ = *user;
    authentication_ = Authentication::done;
    return std::nullopt;
}

LoginTarget::Refusal LoginTarget::answer_challenge(const std::string& user_secret) {
    const std::string* identifier = said_.find(TextKey::chap_identifier);
    const std::string* challenge = said_.find(TextKey::chap_challenge);
    if (identifier == nullptr && challenge == nullptr) return std::nullopt;
    const Refusal failure = LoginStatus::authentication_failure;
    if (identifier == nullptr || challenge == nullptr) return failure;
    const auto number = text_number(*identifier);
    auto octets = binary_of(*challenge, chap_binary_max);
    if (!number || *number > 255 || !octets || octets->empty()) return failure;
    // Our own challenge sent back: an answer would be the one to give to us elsewhere.
    if (*octets == own_challenge_.octets) return failure;
    const auto own = policy_.own_credentials(name_);
    if (!own || own->secret == user_secret || !long_enough(own->secret)) return failure;
    const auto response = chap_response(
        algorithm_,
        {.identifier = static_cast<std::uint8_t>(*number), .octets = std::move(*octets)},
        own->secret);
    if (!response) return failure;
    outgoing_.add(name_of(TextKey::chap_name), own->name);
    outgoing_.add(name_of(TextKey::chap_response),
                  binary_text({response->data(), response->size()}));
    return std::nullopt;
}

}  // namespace weft::iscsi
