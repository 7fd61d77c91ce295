// SPDX-License-Identifier: Apache-2.0
#include "store/http_client.hpp"

#include <gtest/gtest.h>

namespace weft::store {
namespace {

/// As Go's server says it, of whose kind etcd is.
const std::string with_length =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello";
const std::string in_chunks =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3\r\nhel\r\n2;name=value\r\nlo\r\n0\r\nTrailer: x\r\n\r\n";
const std::string until_the_end = "HTTP/1.0 503 Service Unavailable\r\n\r\nhello";

TEST(HttpClient, AsksWithABodyOfKnownLength) {
    EXPECT_EQ(http_post("::1", "/v3/kv/range", "{}"),
              "POST /v3/kv/range HTTP/1.1\r\nHost: ::1\r\nContent-Type: application/json\r\n"
              "Content-Length: 2\r\n\r\n{}");
}

TEST(HttpClient, ReadsAnswersHoweverTheyAreCut) {
    for (const auto& answer : {with_length, in_chunks})
        for (std::size_t cut = 0; cut <= answer.size(); ++cut) {
            HttpAnswerReader reader;
            auto first = reader.take(answer.substr(0, cut));
            ASSERT_TRUE(first) << cut;
            EXPECT_EQ(*first, cut == answer.size());
            if (cut == answer.size()) continue;
            auto second = reader.take(answer.substr(cut));
            ASSERT_TRUE(second) << cut;
            EXPECT_TRUE(*second) << cut;
            EXPECT_EQ(reader.body(), "hello");
            EXPECT_EQ(reader.status(), 200u);
            EXPECT_TRUE(reader.stays_open());
        }
}

TEST(HttpClient, ReadsUntilTheConnectionEndsWhereNothingSaysHowLong) {
    HttpAnswerReader reader;
    auto taken = reader.take(until_the_end);
    ASSERT_TRUE(taken);
    EXPECT_FALSE(*taken);
    EXPECT_TRUE(reader.ends_with_connection());
    EXPECT_EQ(reader.body(), "hello");
    EXPECT_EQ(reader.status(), 503u);
    EXPECT_FALSE(reader.stays_open());
}

TEST(HttpClient, KnowsWhenAnAnswerIsIncomplete) {
    for (const auto& answer : {with_length, in_chunks}) {
        HttpAnswerReader reader;
        ASSERT_TRUE(reader.take(answer.substr(0, answer.size() - 1)));
        EXPECT_FALSE(reader.ends_with_connection());
    }
}

TEST(HttpClient, HearsThatTheConnectionWillBeClosed) {
    HttpAnswerReader reader;
    auto taken = reader.take("HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    ASSERT_TRUE(taken);
    EXPECT_TRUE(*taken);
    EXPECT_FALSE(reader.stays_open());
}

TEST(HttpClient, RefusesWhatIsNoAnswer) {
    for (const std::string text :
         {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
          "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
          "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"}) {
        HttpAnswerReader reader;
        EXPECT_FALSE(reader.take(text)) << text;
    }
    HttpAnswerReader endless;
    EXPECT_FALSE(endless.take("HTTP/1.1 200 OK\r\nA: " + std::string(20'000, 'x')));
}

}  // namespace
}  // namespace weft::store
