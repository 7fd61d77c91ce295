// SPDX-License-Identifier: Apache-2.0
// The initiator's machine against what others answer, and against nonsense.
#include "iscsi/login_initiator.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "support/login_words.hpp"

namespace weft::iscsi {
namespace {

using namespace test::login;
using test::Bytes;
using wire::LoginStage;
using wire::LoginStatus;

TEST(LoginInitiator, UnderstandsWhatTgtdAndLioAnswer) {
    for (const char* file : {"iscsi/login_response.hex", "iscsi/login_response_iser_tgtd.hex",
                             "iscsi/login_response_iser_lio.hex"}) {
        Bytes pdu = test::golden(file);
        const auto theirs = *decode<wire::LoginResponsePdu>(pdu);
        auto with = options();
        with.initiator_session_id = theirs.initiator_session_id;
        with.wishes.offer_rdma = true;
        with.wishes.terms.rdma_extensions = true;
        with.wishes.terms.rdma_initiator_segment_max = 262144;
        with.wishes.terms.time_to_retain = 0;
        with.wishes.terms.initial_r2t = false;
        LoginInitiator initiator(with);
        store_big_endian<4>(0, pdu.data() + 16);  // our task tag, not theirs
        const auto state = initiator.take(ConstBuffer(pdu).first(48),
                                          ConstBuffer(pdu).subspan(48, theirs.data_length));
        EXPECT_EQ(state, LoginInitiator::State::accepted) << file;
        EXPECT_TRUE(initiator.terms().initial_r2t);
        EXPECT_EQ(initiator.terms().max_burst, 262144u);
        EXPECT_EQ(initiator.target_session_handle(), theirs.target_session_handle);
    }
}

TEST(LoginInitiator, DeclaresItselfOnceAndOffersTheRestInTheSameRequest) {
    LoginInitiator initiator(options());
    const auto request = *decode<wire::LoginRequestPdu>(initiator.request_header());
    EXPECT_TRUE(request.transit);
    EXPECT_EQ(request.next_stage, LoginStage::full_feature_phase);
    std::string text(text_of(initiator.request_data()));
    for (char& letter : text)
        if (letter == '\0') letter = '|';
    EXPECT_TRUE(text.starts_with(std::string("InitiatorName=") + initiator_name +
                                 "|TargetName=" + target_name + "|SessionType=Normal|"))
        << text;
    for (const char* key : {"HeaderDigest=", "MaxRecvDataSegmentLength=", "MaxBurstLength="})
        EXPECT_NE(text.find(key), std::string::npos) << key;
    EXPECT_EQ(text.find("RDMAExtensions"), std::string::npos);
}

TEST(LoginInitiator, FailsWhenTheTargetBreaksTheRules) {
    auto answer = [](wire::LoginResponsePdu response, std::string text) {
        auto with = options();
        LoginInitiator initiator(with);
        response.initiator_session_id = with.initiator_session_id;
        response.data_length = static_cast<std::uint32_t>(text.size());
        for (char& letter : text)
            if (letter == '|') letter = '\0';
        std::array<std::byte, wire::basic_header_size> header{};
        encode(response, header);
        return initiator.take(header, bytes_of(text));
    };
    const wire::LoginResponsePdu good{.transit = true,
                                      .current_stage = LoginStage::operational_negotiation,
                                      .next_stage = LoginStage::full_feature_phase,
                                      .target_session_handle = 1};
    EXPECT_EQ(answer(good, ""), LoginInitiator::State::accepted);
    auto wrong = good;
    wrong.current_stage = LoginStage::security_negotiation;
    EXPECT_EQ(answer(wrong, ""), LoginInitiator::State::failed);
    wrong = good;
    wrong.task_tag = wire::InitiatorTaskTag{5};
    EXPECT_EQ(answer(wrong, ""), LoginInitiator::State::failed);
    wrong = good;
    wrong.next_stage = LoginStage::operational_negotiation;
    EXPECT_EQ(answer(wrong, ""), LoginInitiator::State::failed);
    EXPECT_EQ(answer(good, "MaxBurstLength=999999|"), LoginInitiator::State::failed);
    EXPECT_EQ(answer(good, "InitiatorName=iqn.x|"), LoginInitiator::State::failed);
    EXPECT_EQ(answer(good, "nonsense|"), LoginInitiator::State::failed);
}

}  // namespace
}  // namespace weft::iscsi
