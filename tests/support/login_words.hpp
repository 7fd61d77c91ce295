// SPDX-License-Identifier: Apache-2.0
// What tests of logins share: names, secrets, and a policy that does as it is told.
#pragma once

#include <string>

#include "iscsi/login_initiator.hpp"
#include "iscsi/login_target.hpp"
#include "support/golden.hpp"

namespace weft::test::login {

using namespace weft::iscsi;

inline constexpr const char* initiator_name = "iqn.2026-11.io.weft:host";
inline constexpr const char* target_name = "iqn.2026-11.io.weft:disk0";
inline const ChapCredentials user{"host", "a long enough secret"};
inline const ChapCredentials target_user{"disk", "another fine secret"};

class Policy final : public LoginPolicy {
public:
    LoginAdmission admission;
    LoginSeat where{.target_session_handle = 77};
    bool later = false;
    std::optional<std::string> secret = user.secret;
    std::optional<ChapCredentials> own = target_user;
    LoginName asked;
    int admitted = 0, seated = 0;
    unsigned chance = 1;

    LoginAdmission admit(const LoginName& name) override {
        asked = name;
        ++admitted;
        return admission;
    }
    std::optional<std::string> secret_of(const LoginName&, std::string_view name) override {
        return name == user.name ? secret : std::nullopt;
    }
    std::optional<ChapCredentials> own_credentials(const LoginName&) override { return own; }
    void fill_with_chance(Buffer octets) override {
        for (auto& octet : octets) octet = static_cast<std::byte>(chance++ * 37);
    }
    std::optional<LoginSeat> seat(const LoginName&, const Terms&) override {
        ++seated;
        return later ? std::nullopt : std::optional(where);
    }
};

inline LoginOptions options() {
    LoginOptions options;
    options.initiator_name = initiator_name;
    options.target_name = target_name;
    options.initiator_session_id = {0x80, 1, 2, 3, 0, 4};
    options.connection_id = 3;
    options.command_number = 1000;
    for (std::size_t i = 0; i < options.chance.size(); ++i)
        options.chance[i] = static_cast<std::byte>(200 + i);
    return options;
}

}  // namespace weft::test::login
