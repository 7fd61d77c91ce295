// SPDX-License-Identifier: Apache-2.0
#include "wire/iscsi_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "support/golden.hpp"
#include "wire/iscsi_header.hpp"

namespace weft::wire {
namespace {

using testing::ElementsAre;

/// All pairs of a text that is good to its end.
std::vector<TextPair> pairs_of(ConstBuffer text) {
    std::vector<TextPair> found;
    TextPairs pairs(text);
    for (;;) {
        auto pair = pairs.next();
        if (!pair) {
            ADD_FAILURE() << "refused at " << pair.error().where;
            return found;
        }
        if (!*pair) return found;
        found.push_back(**pair);
    }
}

std::string_view with_nulls(const char* text, std::size_t size) {
    return {text, size};
}
#define TEXT(literal) bytes_of(with_nulls(literal, sizeof(literal) - 1))

/// The data segment of a golden PDU, without padding.
test::Bytes text_of_pdu(const char* name) {
    auto pdu = test::golden(name);
    auto length = decode<BasicHeader>(pdu)->data_length;
    return test::Bytes(pdu.begin() + basic_header_size, pdu.begin() + basic_header_size + length);
}

TEST(TextPairs, AreTakenFromWhatATargetAnswers) {
    auto text = text_of_pdu("iscsi/text_response.hex");
    EXPECT_THAT(pairs_of(text), ElementsAre(TextPair{"TargetName", "iqn.2001-04.com.example:disk"},
                                            TextPair{"TargetAddress", "127.0.0.1:13260,1"}));
}

TEST(TextPairs, AreWrittenAsTheyWereRead) {
    for (auto name : {"iscsi/login_request.hex", "iscsi/login_response.hex"}) {
        auto text = text_of_pdu(name);
        auto pairs = pairs_of(text);
        EXPECT_GT(pairs.size(), 10u);
        test::Bytes again(text.size());
        TextWriter writer(again);
        for (auto& pair : pairs) EXPECT_TRUE(writer.add(pair.key, pair.value));
        EXPECT_EQ(writer.size(), text.size());
        EXPECT_EQ(again, text);
    }
}

TEST(TextPairs, SplitAtTheFirstEqualsSign) {
    EXPECT_THAT(pairs_of(TEXT("CHAP_C=0bAQI=\0X-com.example.key=\0")),
                ElementsAre(TextPair{"CHAP_C", "0bAQI="}, TextPair{"X-com.example.key", ""}));
}

TEST(TextPairs, KnowKeysThatBeginWithASmallLetter) {
    EXPECT_THAT(
        pairs_of(TEXT("iSCSIProtocolLevel=2\0X#NodeArchitecture=a\0")),
        ElementsAre(TextPair{"iSCSIProtocolLevel", "2"}, TextPair{"X#NodeArchitecture", "a"}));
}

TEST(TextPairs, MayBeNone) {
    EXPECT_THAT(pairs_of({}), ElementsAre());
    EXPECT_THAT(pairs_of(TEXT("\0\0")), ElementsAre()) << "padding counted into the length";
}

TEST(TextPairs, SkipNullsBetweenThem) {
    EXPECT_THAT(pairs_of(TEXT("A=1\0\0\0B=2\0\0")),
                ElementsAre(TextPair{"A", "1"}, TextPair{"B", "2"}));
}

TEST(TextPairs, AreRefusedAtEveryTruncation) {
    auto text = text_of_pdu("iscsi/text_response.hex");
    const auto first = std::string_view("TargetName=iqn.2001-04.com.example:disk").size() + 1;
    for (std::size_t size = 1; size < text.size(); ++size) {
        if (size == first) continue;
        TextPairs pairs(ConstBuffer(text).first(size));
        auto pair = pairs.next();
        if (size > first) pair = pairs.next();
        ASSERT_FALSE(pair) << size;
        EXPECT_EQ(pair.error().code, Code::truncated);
        EXPECT_EQ(pair.error().where, size > first ? first : 0u);
    }
}

Error refusal(ConstBuffer text) {
    auto pair = TextPairs(text).next();
    return pair ? Error{.code = Code::io_failed, .where = 0xbad} : pair.error();
}

TEST(TextPairs, AreRefusedWithoutAnEqualsSignOrAKey) {
    const Error malformed{.code = Code::malformed};
    EXPECT_EQ(refusal(TEXT("InitiatorName\0")), malformed);
    EXPECT_EQ(refusal(TEXT("=value\0")), malformed);
    EXPECT_EQ(refusal(TEXT("Two words=1\0")), malformed);
    EXPECT_EQ(refusal(TEXT("Tab\t=1\0")), malformed);
}

TEST(TextPairs, AreRefusedIfTheKeyIsTooLong) {
    auto longest = std::string(max_text_key, 'K') + "=v" + '\0';
    EXPECT_EQ(pairs_of(bytes_of(longest)).size(), 1u);
    EXPECT_EQ(refusal(bytes_of("K" + longest)), (Error{.code = Code::malformed}));
}

TEST(TextPairs, RepeatTheErrorAndSayWhere) {
    TextPairs pairs(TEXT("A=1\0bad\0C=3\0"));
    EXPECT_TRUE(pairs.next());
    for (int round = 0; round < 2; ++round)
        EXPECT_EQ(pairs.next().error(), (Error{.code = Code::malformed, .where = 4}));
}

TEST(TextWriter, WritesAPairWholeOrNotAtAll) {
    std::array<std::byte, 11> buffer{};
    TextWriter writer(buffer);
    EXPECT_TRUE(writer.add("A", "1"));
    EXPECT_EQ(writer.add("Key", "1234").error(), (Error{.code = Code::exhausted, .where = 4}));
    EXPECT_EQ(writer.size(), 4u);
    EXPECT_TRUE(writer.add("Key", "12")) << "it fits to the last octet";
    EXPECT_THAT(pairs_of(writer.written()), ElementsAre(TextPair{"A", "1"}, TextPair{"Key", "12"}));
    EXPECT_EQ(writer.add("", "").error().code, Code::malformed);
    EXPECT_EQ(writer.add("B", "").error().code, Code::exhausted);
}

TEST(TextWriter, RefusesWhatWouldNotBeReadBack) {
    std::array<std::byte, 128> buffer{};
    TextWriter writer(buffer);
    EXPECT_EQ(writer.add("A=B", "1").error().code, Code::malformed);
    EXPECT_EQ(writer.add("A", with_nulls("1\0B=2", 5)).error().code, Code::malformed);
    EXPECT_EQ(writer.add(std::string(64, 'K'), "1").error().code, Code::malformed);
    EXPECT_EQ(writer.size(), 0u);
}

}  // namespace
}  // namespace weft::wire
