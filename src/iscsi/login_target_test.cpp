// SPDX-License-Identifier: Apache-2.0
// The target's machine against requests made by hand, and against what others sent.
#include "iscsi/login_target.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "support/login_words.hpp"

namespace weft::iscsi {
namespace {

using namespace test::login;
using test::Bytes;
using wire::LoginStage;
using wire::LoginStatus;

/// A request made by hand, to a target that knows no security.
struct ByHand {
    Policy policy;
    LoginTarget target{policy, 4};
    wire::LoginRequestPdu request{.transit = true,
                                  .current_stage = LoginStage::operational_negotiation,
                                  .next_stage = LoginStage::full_feature_phase,
                                  .initiator_session_id = {0x80, 1, 2, 3, 4, 5},
                                  .task_tag = wire::InitiatorTaskTag{17}};

    LoginTarget::State ask(std::string text) {
        for (char& letter : text)
            if (letter == '|') letter = '\0';
        request.data_length = static_cast<std::uint32_t>(text.size());
        std::array<std::byte, wire::basic_header_size> header{};
        encode(request, header);
        return target.take(header, bytes_of(text));
    }
    wire::LoginResponsePdu response() {
        EXPECT_TRUE(target.has_response());
        return *decode<wire::LoginResponsePdu>(target.response_header());
    }
    std::string text() {
        std::string text(text_of(target.response_data()));
        for (char& letter : text)
            if (letter == '\0') letter = '|';
        return text;
    }
};

const std::string names =
    "InitiatorName=iqn.2026-11.io.weft:host|TargetName=iqn.2026-11.io.weft:disk0|";

TEST(LoginTarget, RefusesWhatBreaksTheRules) {
    struct Case {
        const char* text;
        LoginStatus status;
    };
    const std::string named = names;
    const Case cases[] = {
        {"TargetName=iqn.x|", LoginStatus::missing_parameter},
        {"InitiatorName=iqn.x|", LoginStatus::missing_parameter},
        {"InitiatorName=iqn.x|TargetName=iqn.y|SessionType=Odd|",
         LoginStatus::session_type_not_supported},
        {"InitiatorName=iqn.x|TargetName=iqn.y|InitiatorName=iqn.x|", LoginStatus::initiator_error},
        {"InitiatorName=iqn.x|TargetName=iqn.y|InitialR2T=Yes|InitialR2T=Yes|",
         LoginStatus::initiator_error},
        {"InitiatorName=iqn.x|TargetName=iqn.y|TargetAlias=me|", LoginStatus::initiator_error},
        {"InitiatorName=iqn.x|TargetName=iqn.y|AuthMethod=None|", LoginStatus::initiator_error},
        {"InitiatorName=iqn.x|TargetName=iqn.y|SendTargets=All|", LoginStatus::initiator_error},
        {"InitiatorName=iqn.x|TargetName=iqn.y|no equals sign|", LoginStatus::initiator_error},
        {"InitiatorName=iqn.x|TargetName=iqn.y", LoginStatus::initiator_error},
    };
    for (const Case& one : cases) {
        ByHand hand;
        EXPECT_EQ(hand.ask(one.text), LoginTarget::State::refused) << one.text;
        EXPECT_EQ(hand.response().status, one.status) << one.text;
        EXPECT_EQ(hand.response().task_tag, wire::InitiatorTaskTag{17});
        EXPECT_EQ(hand.policy.seated, 0);
    }
    ByHand long_name;
    std::string text = "InitiatorName=";
    text.append(224, 'x').append("|TargetName=iqn.y|");
    EXPECT_EQ(long_name.ask(text), LoginTarget::State::refused);
}

TEST(LoginTarget, RefusesStagesThatDoNotFollow) {
    ByHand version;
    version.request.version_min = 1;
    version.ask(names);
    EXPECT_EQ(version.response().status, LoginStatus::unsupported_version);
    ByHand backwards;
    backwards.request.next_stage = LoginStage::security_negotiation;
    EXPECT_EQ(backwards.ask(names), LoginTarget::State::refused);
    ByHand reserved;
    reserved.request.current_stage = static_cast<LoginStage>(2);
    EXPECT_EQ(reserved.ask(names), LoginTarget::State::refused);
    ByHand both;
    both.request.continues = true;
    EXPECT_EQ(both.ask(names), LoginTarget::State::refused);
    ByHand another;
    another.request.transit = false;
    EXPECT_EQ(another.ask(names), LoginTarget::State::running);
    another.request.task_tag = wire::InitiatorTaskTag{18};
    EXPECT_EQ(another.ask(""), LoginTarget::State::refused);
}

TEST(LoginTarget, ClosesOnAStrangerAndRefusesOtherPdusAmidALogin) {
    ByHand stranger;
    std::array<std::byte, wire::basic_header_size> nop{};
    nop[0] = std::byte{0x40};
    EXPECT_EQ(stranger.target.take(nop, {}), LoginTarget::State::broken);
    ByHand hand;
    hand.request.transit = false;
    hand.ask(names);
    EXPECT_EQ(hand.target.take(nop, {}), LoginTarget::State::refused);
    EXPECT_EQ(hand.response().status, LoginStatus::invalid_during_login);
    EXPECT_EQ(hand.ask(""), LoginTarget::State::broken);
}

TEST(LoginTarget, JoinsTextThatContinues) {
    ByHand hand;
    hand.request.transit = false;
    hand.request.continues = true;
    EXPECT_EQ(hand.ask("InitiatorName=iqn.2026-11.io.we"), LoginTarget::State::running);
    EXPECT_EQ(hand.text(), "");
    EXPECT_FALSE(hand.response().transit);
    hand.request.transit = true;
    hand.request.continues = false;
    EXPECT_EQ(hand.ask("ft:host|TargetName=iqn.2026-11.io.weft:disk0|InitialR2T=Yes|"),
              LoginTarget::State::accepted);
    EXPECT_EQ(hand.policy.asked.initiator_name, initiator_name);
    EXPECT_NE(hand.text().find("InitialR2T=Yes|"), std::string::npos);
}

TEST(LoginTarget, IsNotHeldByAnInitiatorThatNeverEnds) {
    ByHand pieces;
    pieces.request.transit = false;
    pieces.request.continues = true;
    std::size_t taken = 0;
    while (pieces.ask("x") == LoginTarget::State::running) ++taken;
    EXPECT_EQ(taken, login_steps_max);
    ByHand lots;
    lots.request.transit = false;
    lots.request.continues = true;
    std::size_t octets = 0;
    while (lots.ask(std::string(8192, 'x')) == LoginTarget::State::running) octets += 8192;
    EXPECT_EQ(octets, text_bytes_max);
}

TEST(LoginTarget, GoesOnWithTextThatIsTooLongForOnePdu) {
    ByHand hand;
    hand.request.transit = false;
    std::string text = names;
    // Unknown keys are answered one by one: 200 of them with long names fill more than 8192 octets.
    std::string unknown = "X-";
    unknown.append(50, 'k');
    for (int i = 0; i < 200; ++i) text.append(unknown).append(std::to_string(i)).append("=1|");
    hand.request.continues = true;
    hand.ask(text.substr(0, 8000));
    hand.request.continues = false;
    EXPECT_EQ(hand.ask(text.substr(8000)), LoginTarget::State::running);
    EXPECT_TRUE(hand.response().continues);
    std::string all = hand.text();
    hand.request.transit = true;
    while (hand.response().continues) {
        EXPECT_FALSE(hand.response().transit);
        hand.ask("");
        all += hand.text();
    }
    EXPECT_TRUE(hand.response().transit);
    EXPECT_NE(all.find(unknown.append("199=NotUnderstood|")), std::string::npos);
}

TEST(LoginTarget, RefusesItsOwnChallengeSentBack) {
    ByHand hand;
    hand.policy.admission.authentication_required = true;
    hand.request.current_stage = LoginStage::security_negotiation;
    hand.request.next_stage = LoginStage::operational_negotiation;
    hand.request.transit = false;
    hand.ask(names + "AuthMethod=CHAP|");
    EXPECT_EQ(hand.text(), "TargetPortalGroupTag=1|AuthMethod=CHAP|");
    hand.ask("CHAP_A=5|");
    const std::string said = hand.text();
    const auto identifier = said.substr(
        said.find("CHAP_I=") + 7, said.find('|', said.find("CHAP_I=")) - said.find("CHAP_I=") - 7);
    const auto start = said.find("CHAP_C=") + 7;
    const auto challenge = said.substr(start, said.find('|', start) - start);
    const auto response = chap_response(
        ChapAlgorithm::md5,
        {static_cast<std::uint8_t>(std::stoi(identifier)), *binary_of(challenge, 1024)},
        user.secret);
    const std::string proof =
        "CHAP_N=host|CHAP_R=" + binary_text({response->data(), response->size()}) + "|";
    hand.request.transit = true;
    EXPECT_EQ(hand.ask(proof + "CHAP_I=1|CHAP_C=" + challenge + "|"), LoginTarget::State::refused);
    EXPECT_EQ(hand.response().status, LoginStatus::authentication_failure);
    EXPECT_EQ(hand.text(), "");
}

TEST(LoginTarget, LetsNobodyPastSecurityByStartingBehindIt) {
    ByHand hand;
    hand.policy.admission.authentication_required = true;
    EXPECT_EQ(hand.ask(names), LoginTarget::State::refused);
    EXPECT_EQ(hand.response().status, LoginStatus::authentication_failure);
    ByHand straight;
    straight.policy.admission.authentication_required = true;
    straight.request.current_stage = LoginStage::security_negotiation;
    EXPECT_EQ(straight.ask(names + "AuthMethod=None|"), LoginTarget::State::refused);
    EXPECT_EQ(straight.policy.seated, 0);
}

LoginTarget::State replay(LoginTarget& target, const Bytes& pdu) {
    const auto basic = *decode<wire::BasicHeader>(pdu);
    return target.take(ConstBuffer(pdu).first(48), ConstBuffer(pdu).subspan(48, basic.data_length));
}

TEST(LoginTarget, AcceptsWhatLinuxAndLibiscsiSendInOneResponse) {
    for (const char* file : {"iscsi/login_request.hex", "iscsi/login_request_iser_linux.hex",
                             "iscsi/login_request_iser_libiscsi.hex"}) {
        Policy policy;
        policy.admission.wishes.terms.rdma_extensions = true;
        LoginTarget target(policy, 128);
        EXPECT_EQ(replay(target, test::golden(file)), LoginTarget::State::accepted) << file;
        EXPECT_LE(target.response_data().size(), login_segment_max);
        const auto response = *decode<wire::LoginResponsePdu>(target.response_header());
        EXPECT_TRUE(response.transit);
    }
}

/// What tgtd said to Linux over iSER, said by our machine with tgtd's wishes.
TEST(LoginTarget, SaysToLinuxWhatTgtdSays) {
    Policy policy;
    policy.admission.wishes.terms = {.max_burst = 262144,
                                     .first_burst = 65536,
                                     .time_to_retain = 20,
                                     .rdma_extensions = true,
                                     .rdma_initiator_segment_max = 262144,
                                     .rdma_target_segment_max = 8192};
    policy.admission.wishes.terms.immediate_data = false;
    policy.where.target_session_handle = 0x0100;
    LoginTarget target(policy, 2);
    ASSERT_EQ(replay(target, test::golden("iscsi/login_request_iser_linux.hex")),
              LoginTarget::State::accepted);
    const Bytes theirs = test::golden("iscsi/login_response_iser_tgtd.hex");
    const auto basic = *decode<wire::BasicHeader>(theirs);
    std::string expected(text_of(ConstBuffer(theirs).subspan(48, basic.data_length)));
    // The one thing more: our own segment length, which tgtd does not declare over iSER.
    expected += std::string("MaxRecvDataSegmentLength=8192") + '\0';
    EXPECT_EQ(text_of(target.response_data()), expected);
    auto our_header = *decode<wire::LoginResponsePdu>(target.response_header());
    auto their_header = *decode<wire::LoginResponsePdu>(theirs);
    our_header.data_length = their_header.data_length;
    our_header.numbers = their_header.numbers;  // tgtd counts the login as a command
    EXPECT_EQ(our_header, their_header);
}

}  // namespace
}  // namespace weft::iscsi
