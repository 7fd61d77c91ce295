// SPDX-License-Identifier: Apache-2.0
// Any octets as what an initiator sends before it is let in. Whatever it says, it is answered or
// left, and gets in only past a policy that asks for a secret nobody can know.
#include <cstring>

#include "base/check.hpp"
#include "iscsi/login_target.hpp"
#include "iscsi/pdu_receiver.hpp"

namespace weft::iscsi {
namespace {

class Policy final : public LoginPolicy {
public:
    explicit Policy(bool secure) { admission_.authentication_required = secure; }

    LoginAdmission admit(const LoginName& name) override {
        WEFT_CHECK(!name.initiator_name.empty() && name.initiator_name.size() <= name_max);
        return admission_;
    }
    std::optional<std::string> secret_of(const LoginName&, std::string_view) override {
        return "nobody knows this one";
    }
    std::optional<ChapCredentials> own_credentials(const LoginName&) override {
        return ChapCredentials{"target", "nor that one either"};
    }
    void fill_with_chance(Buffer octets) override {
        for (auto& octet : octets) octet = static_cast<std::byte>(++chance_ * 41);
    }
    std::optional<LoginSeat> seat(const LoginName&, const Terms&) override {
        WEFT_CHECK(!admission_.authentication_required);
        return LoginSeat{.target_session_handle = 1};
    }

private:
    LoginAdmission admission_;
    unsigned chance_ = 0;
};

}  // namespace
}  // namespace weft::iscsi

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace weft;
    using namespace weft::iscsi;
    if (size == 0) return 0;
    Policy policy((data[0] & 1) != 0);
    LoginTarget login(policy, 16);
    PduReceiver receiver(login_segment_max);
    ConstBuffer stream = std::as_bytes(std::span(data, size)).subspan(1);
    std::array<std::byte, wire::basic_header_size> header{};
    while (login.state() == LoginTarget::State::running) {
        if (receiver.waits_for_place()) receiver.collect();
        const Buffer place = receiver.want();
        const std::size_t count = std::min(place.size(), stream.size());
        if (count == 0) break;
        std::memcpy(place.data(), stream.data(), count);
        stream = stream.subspan(count);
        const auto event = receiver.filled(count);
        if (!event) break;
        if (!*event) continue;
        ConstBuffer text;
        if (const auto* came = std::get_if<PduHeader>(&**event)) {
            std::ranges::copy(came->octets, header.begin());
            if (came->basic.data_length > 0) continue;
        } else if (const auto* segment = std::get_if<PduData>(&**event)) {
            text = segment->collected;
        }
        login.take(header, text);
        if (!login.has_response()) break;
        const auto answer = decode<wire::LoginResponsePdu>(login.response_header());
        WEFT_CHECK(answer && answer->data_length == login.response_data().size());
        WEFT_CHECK(login.response_data().size() <= login_segment_max);
    }
    return 0;
}
