// SPDX-License-Identifier: Apache-2.0
#include "iscsi/negotiation.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"

namespace weft::iscsi {
namespace {

std::string said(TextQueue& queue) {
    std::string text;
    for (char letter : text_of(queue.take(~std::size_t{0}))) text += letter == '\0' ? '|' : letter;
    return text;
}

/// A target with these wishes hears one pair in a leading login.
std::string answer(std::string_view key, std::string_view value, const Wishes& wishes,
                   Terms* terms) {
    Negotiation target(Role::target, Occasion::leading_login, wishes, {});
    TextQueue out;
    const auto taken = target.take({key, value}, out);
    if (terms != nullptr) *terms = target.terms();
    return taken ? said(out) : "refused";
}

struct Row {
    const char* key;
    const char* offered;
    const char* answer;
};

Wishes plain_wishes() {
    Wishes wishes;
    wishes.terms = {.target_segment_max = 262144,
                    .max_connections = 4,
                    .initial_r2t = false,
                    .immediate_data = true,
                    .max_burst = 1048576,
                    .first_burst = 131072,
                    .time_to_wait = 2,
                    .time_to_retain = 20,
                    .max_outstanding_r2t = 8,
                    .error_recovery_level = 1,
                    .task_reporting = TaskReporting::response_fence,
                    .protocol_level = 2,
                    .rdma_extensions = true};
    return wishes;
}

TEST(Negotiation, AnswersEachKeyByItsFunctionAndRange) {
    constexpr Row rows[] = {
        {"HeaderDigest", "None", "HeaderDigest=None|"},
        {"HeaderDigest", "CRC32C,None", "HeaderDigest=CRC32C|"},
        {"HeaderDigest", "None,CRC32C", "HeaderDigest=None|"},
        {"DataDigest", "SHA512,CRC32C", "DataDigest=CRC32C|"},
        {"DataDigest", "SHA512", "DataDigest=Reject|"},
        {"MaxConnections", "8", "MaxConnections=4|"},
        {"MaxConnections", "0x2", "MaxConnections=2|"},
        {"MaxConnections", "0", "MaxConnections=Reject|"},
        {"MaxConnections", "65536", "MaxConnections=Reject|"},
        {"MaxConnections", "four", "MaxConnections=Reject|"},
        {"InitialR2T", "Yes", "InitialR2T=Yes|"},
        {"InitialR2T", "No", "InitialR2T=No|"},
        {"InitialR2T", "no", "InitialR2T=Reject|"},
        {"ImmediateData", "Yes", "ImmediateData=Yes|"},
        {"ImmediateData", "No", "ImmediateData=No|"},
        {"MaxBurstLength", "16776192", "MaxBurstLength=1048576|"},
        {"MaxBurstLength", "512", "MaxBurstLength=512|"},
        {"MaxBurstLength", "511", "MaxBurstLength=Reject|"},
        {"MaxBurstLength", "16777216", "MaxBurstLength=Reject|"},
        {"FirstBurstLength", "262144", "FirstBurstLength=131072|"},
        {"DefaultTime2Wait", "0", "DefaultTime2Wait=2|"},
        {"DefaultTime2Wait", "3600", "DefaultTime2Wait=3600|"},
        {"DefaultTime2Wait", "3601", "DefaultTime2Wait=Reject|"},
        {"DefaultTime2Retain", "0", "DefaultTime2Retain=0|"},
        {"MaxOutstandingR2T", "16", "MaxOutstandingR2T=8|"},
        {"DataPDUInOrder", "No", "DataPDUInOrder=Yes|"},
        {"DataSequenceInOrder", "Yes", "DataSequenceInOrder=Yes|"},
        {"ErrorRecoveryLevel", "2", "ErrorRecoveryLevel=1|"},
        {"TaskReporting", "FastAbort,ResponseFence,RFC3720", "TaskReporting=ResponseFence|"},
        {"TaskReporting", "FastAbort", "TaskReporting=Reject|"},
        {"iSCSIProtocolLevel", "2", "iSCSIProtocolLevel=2|"},
        {"iSCSIProtocolLevel", "31", "iSCSIProtocolLevel=2|"},
        {"IFMarker", "Yes", "IFMarker=No|"},
        {"OFMarker", "No", "OFMarker=No|"},
        {"IFMarkInt", "2048~8192", "IFMarkInt=Reject|"},
        {"OFMarkInt", "1", "OFMarkInt=Reject|"},
        {"RDMAExtensions", "Yes", "RDMAExtensions=Yes|"},
        {"InitiatorRecvDataSegmentLength", "262144", "InitiatorRecvDataSegmentLength=8192|"},
        {"TargetRecvDataSegmentLength", "512", "TargetRecvDataSegmentLength=512|"},
        {"MaxRecvDataSegmentLength", "512", ""},
        {"MaxRecvDataSegmentLength", "511", "refused"},
        {"MaxOutstandingUnexpectedPDUs", "2", ""},
        {"MaxOutstandingUnexpectedPDUs", "0", ""},
        {"MaxOutstandingUnexpectedPDUs", "1", "refused"},
        {"TaggedBufferForSolicitedDataOnly", "Yes", ""},
        {"iSERHelloRequired", "perhaps", "refused"},
        {"X-com.example.colour", "blue", "X-com.example.colour=NotUnderstood|"},
        {"X-com.example.colour", "NotUnderstood", ""},
        {"initialr2t", "Yes", "initialr2t=NotUnderstood|"},
    };
    for (const Row& row : rows)
        EXPECT_EQ(answer(row.key, row.offered, plain_wishes(), nullptr), row.answer)
            << row.key << "=" << row.offered;
}

TEST(Negotiation, FollowsTheWishForADigest) {
    struct Case {
        DigestWish wish;
        const char* offered;
        const char* answer;
    };
    constexpr Case cases[] = {
        {DigestWish::never, "CRC32C,None", "HeaderDigest=None|"},
        {DigestWish::never, "CRC32C", "HeaderDigest=Reject|"},
        {DigestWish::preferred, "None,CRC32C", "HeaderDigest=CRC32C|"},
        {DigestWish::preferred, "None", "HeaderDigest=None|"},
        {DigestWish::required, "None,CRC32C", "HeaderDigest=CRC32C|"},
        {DigestWish::required, "None", "HeaderDigest=Reject|"},
    };
    for (const Case& one : cases) {
        Wishes wishes;
        wishes.header_digest = one.wish;
        EXPECT_EQ(answer("HeaderDigest", one.offered, wishes, nullptr), one.answer);
    }
}

TEST(Negotiation, FailsWithoutADigestThatIsRequired) {
    Wishes wishes;
    wishes.data_digest = DigestWish::required;
    Negotiation target(Role::target, Occasion::leading_login, wishes, {});
    EXPECT_FALSE(target.settle());
}

TEST(Negotiation, CallsSessionKeysIrrelevantToDiscovery) {
    Terms discovery;
    discovery.session_type = SessionType::discovery;
    Negotiation target(Role::target, Occasion::leading_login, {}, discovery);
    TextQueue out;
    for (const char* key : {"MaxConnections", "InitialR2T", "MaxBurstLength", "RDMAExtensions"})
        ASSERT_TRUE(target.take({key, "Yes"}, out));
    ASSERT_TRUE(target.take({"DefaultTime2Wait", "5"}, out));
    EXPECT_EQ(said(out),
              "MaxConnections=Irrelevant|InitialR2T=Irrelevant|MaxBurstLength=Irrelevant|"
              "RDMAExtensions=Irrelevant|DefaultTime2Wait=5|");
}

TEST(Negotiation, RefusesAKeySaidTwiceOrByTheWrongSide) {
    Negotiation target(Role::target, Occasion::leading_login, {}, {});
    TextQueue out;
    ASSERT_TRUE(target.take({"InitialR2T", "Yes"}, out));
    EXPECT_FALSE(target.take({"InitialR2T", "Yes"}, out));
    Negotiation initiator(Role::initiator, Occasion::leading_login, {}, {});
    EXPECT_FALSE(initiator.take({"iSERHelloRequired", "Yes"}, out));
    EXPECT_FALSE(initiator.take({"MaxConnections", std::string(256, '1')}, out));
}

TEST(Negotiation, LeavesTheSessionAloneOnALaterConnection) {
    Terms session;
    session.max_burst = 4096;
    session.header_digest = true;
    session.initiator_segment_max = 100000;
    Negotiation target(Role::target, Occasion::later_login, plain_wishes(), session);
    TextQueue out;
    ASSERT_TRUE(target.take({"MaxBurstLength", "512"}, out));
    ASSERT_TRUE(target.take({"HeaderDigest", "None"}, out));
    ASSERT_TRUE(target.take({"MaxRecvDataSegmentLength", "1024"}, out));
    EXPECT_EQ(said(out), "MaxBurstLength=Reject|HeaderDigest=None|");
    EXPECT_EQ(target.terms().max_burst, 4096u);
    EXPECT_FALSE(target.terms().header_digest);
    EXPECT_EQ(target.terms().initiator_segment_max, 1024u);
}

TEST(Negotiation, TakesASegmentLengthInFullFeaturePhaseAndNothingElse) {
    Negotiation target(Role::target, Occasion::full_feature, plain_wishes(), {});
    TextQueue out;
    ASSERT_TRUE(target.take({"MaxRecvDataSegmentLength", "65536"}, out));
    ASSERT_TRUE(target.take({"HeaderDigest", "CRC32C"}, out));
    EXPECT_EQ(said(out), "HeaderDigest=Reject|");
    EXPECT_EQ(target.terms().initiator_segment_max, 65536u);
    EXPECT_FALSE(target.terms().header_digest);
}

/// An initiator with these wishes has offered all, and hears one answer.
bool accepts(const char* key, const char* value, Terms* terms) {
    Negotiation initiator(Role::initiator, Occasion::leading_login, plain_wishes(), {});
    TextQueue out;
    initiator.offer(out);
    const bool taken = initiator.take({key, value}, out).has_value();
    if (terms != nullptr) *terms = initiator.terms();
    return taken;
}

TEST(Negotiation, AcceptsOnlyAnswersToWhatWasOffered) {
    constexpr Row good[] = {
        {"MaxBurstLength", "1048576", ""},
        {"MaxBurstLength", "512", ""},
        {"InitialR2T", "Yes", ""},
        {"InitialR2T", "No", ""},
        {"ImmediateData", "No", ""},
        {"HeaderDigest", "CRC32C", ""},
        {"DefaultTime2Wait", "9", ""},
        {"TaskReporting", "RFC3720", ""},
        {"MaxBurstLength", "Reject", ""},
        {"iSCSIProtocolLevel", "NotUnderstood", ""},
        {"MaxConnections", "Irrelevant", ""},
        {"TargetRecvDataSegmentLength", "512", ""},
    };
    for (const Row& row : good) EXPECT_TRUE(accepts(row.key, row.offered, nullptr)) << row.key;
    constexpr Row bad[] = {
        {"MaxBurstLength", "1048577", ""},  {"MaxBurstLength", "-1", ""},
        {"DataPDUInOrder", "No", ""},       {"ImmediateData", "maybe", ""},
        {"HeaderDigest", "MD5", ""},        {"DefaultTime2Wait", "1", ""},
        {"TaskReporting", "FastAbort", ""}, {"ErrorRecoveryLevel", "2", ""},
    };
    for (const Row& row : bad) EXPECT_FALSE(accepts(row.key, row.offered, nullptr)) << row.key;
}

TEST(Negotiation, KeepsTheDefaultWhereAnOfferWasTurnedDown) {
    Terms terms;
    ASSERT_TRUE(accepts("MaxBurstLength", "Reject", &terms));
    EXPECT_EQ(terms.max_burst, 262144u);
    ASSERT_TRUE(accepts("InitialR2T", "NotUnderstood", &terms));
    EXPECT_TRUE(terms.initial_r2t);
}

TEST(Negotiation, NeedsNoAnswerToWhatTheOfferAloneDecides) {
    Wishes wishes = plain_wishes();
    wishes.terms.initial_r2t = true;
    wishes.terms.immediate_data = false;
    Negotiation initiator(Role::initiator, Occasion::leading_login, wishes, {});
    TextQueue out;
    initiator.offer(out);
    EXPECT_TRUE(initiator.awaits_answers());
    EXPECT_TRUE(initiator.terms().initial_r2t);
    EXPECT_FALSE(initiator.terms().immediate_data);
    EXPECT_TRUE(initiator.terms().data_pdu_in_order);
}

/// Both sides, until neither has anything to say.
struct Pair {
    Negotiation initiator, target;

    Pair(const Wishes& one, const Wishes& other)
        : initiator(Role::initiator, Occasion::leading_login, one, {}),
          target(Role::target, Occasion::leading_login, other, {}) {}

    bool talk() {
        TextQueue to_target, to_initiator;
        initiator.offer(to_target);
        target.offer(to_initiator);
        while (!to_target.empty() || !to_initiator.empty())
            if (!pass(to_target, target, to_initiator) || !pass(to_initiator, initiator, to_target))
                return false;
        return !initiator.awaits_answers() && initiator.settle() && target.settle();
    }
    static bool pass(TextQueue& from, Negotiation& to, TextQueue& answers) {
        const auto segment = from.take(~std::size_t{0});
        const std::vector<std::byte> text(segment.begin(), segment.end());
        wire::TextPairs pairs(text);
        for (auto pair = pairs.next(); *pair; pair = pairs.next())
            if (!to.take(**pair, answers)) return false;
        return true;
    }
};

TEST(Negotiation, LeadsBothSidesToTheSameTerms) {
    for (unsigned bits = 0; bits < 256; ++bits) {
        auto bit = [&](unsigned number) { return (bits >> number & 1) != 0; };
        Wishes one = plain_wishes(), other = plain_wishes();
        one.header_digest = bit(0) ? DigestWish::preferred : DigestWish::if_wanted;
        other.data_digest = bit(1) ? DigestWish::preferred : DigestWish::if_wanted;
        one.terms.initial_r2t = bit(2);
        other.terms.initial_r2t = bit(3);
        other.terms.immediate_data = bit(4);
        one.terms.max_burst = bit(5) ? 4096 : 65536;
        other.terms.error_recovery_level = bit(6) ? 2 : 0;
        one.offer_rdma = bit(7);
        one.terms.initiator_segment_max = 1000;
        one.terms.rdma_initiator_segment_max = 128000;
        other.terms.rdma_initiator_segment_max = 64000;
        Pair pair(one, other);
        ASSERT_TRUE(pair.talk()) << bits;
        EXPECT_EQ(pair.initiator.terms(), pair.target.terms()) << bits;
        const Terms& terms = pair.target.terms();
        EXPECT_EQ(terms.initial_r2t, bit(2) || bit(3));
        EXPECT_EQ(terms.immediate_data, bit(4));
        EXPECT_EQ(terms.max_burst, bit(5) ? 4096u : 65536u);
        EXPECT_LE(terms.first_burst, terms.max_burst);
        EXPECT_EQ(terms.rdma_extensions, bit(7));
        EXPECT_EQ(terms.rdma_initiator_segment_max, bit(7) ? 64000u : 8192u);
        EXPECT_EQ(terms.header_digest, bit(0) && !bit(7));
        EXPECT_EQ(terms.initiator_segment_max, 1000u);
        EXPECT_EQ(terms.target_segment_max, 262144u);
    }
}

TEST(Negotiation, EndsWhenAPeerNeverStopsOffering) {
    Negotiation target(Role::target, Occasion::leading_login, {}, {});
    TextQueue out;
    std::size_t taken = 0;
    const auto key = [&] { return std::string("X-").append(std::to_string(taken)); };
    while (target.take({key(), "1"}, out)) ++taken;
    EXPECT_EQ(taken, text_pairs_max);
}

TEST(TextAssembly, JoinsSegmentsUpToItsBound) {
    TextAssembly text;
    ASSERT_TRUE(text.add(bytes_of("InitialR2")));
    ASSERT_TRUE(text.add(bytes_of("T=Yes")));
    EXPECT_EQ(text_of(text.text()), "InitialR2T=Yes");
    EXPECT_FALSE(text.add(std::vector<std::byte>(text_bytes_max)));
}

TEST(TextKeys, AreFoundByName) {
    for (const TextKeyRule& rule : text_key_rules()) EXPECT_EQ(find_text_key(rule.name), &rule);
    EXPECT_EQ(find_text_key("maxburstlength"), nullptr);
    EXPECT_EQ(find_text_key(""), nullptr);
}

}  // namespace
}  // namespace weft::iscsi
