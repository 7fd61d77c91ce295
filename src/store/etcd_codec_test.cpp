// SPDX-License-Identifier: Apache-2.0
// The answers are those of etcd 3.4.23, as it gave them.
#include "store/etcd_codec.hpp"

#include <gtest/gtest.h>

#include "store/base64.hpp"

namespace weft::store {
namespace {

const std::string header =
    R"("header":{"cluster_id":"15118495548433857066","member_id":"13668033151171901709",)"
    R"("revision":"7","raft_term":"2"})";

std::string office_value() {
    return to_base64(std::string(
        R"({"candidate":17,"epoch":3,"holder":"at home","lease_ms":5000,"renewals":12})"));
}

TEST(EtcdCodec, ReadsAnOfficeThatNobodyHasEverHeld) {
    auto office = parse_etcd_office("{" + header + "}");
    ASSERT_TRUE(office);
    EXPECT_EQ(office->revision, 0);
    EXPECT_TRUE(office->office.is_free());
}

TEST(EtcdCodec, ReadsTheOfficeAndWhenItWasChanged) {
    auto office = parse_etcd_office(
        "{" + header + R"(,"kvs":[{"key":"d2VmdC9vZmZpY2U=","create_revision":"2",)" +
        R"("mod_revision":"6","version":"5","value":")" + office_value() + R"("}],"count":"1"})");
    ASSERT_TRUE(office);
    EXPECT_EQ(office->revision, 6);
    EXPECT_EQ(office->candidate, 17u);
    EXPECT_EQ(office->office.epoch, wire::Epoch{3});
    EXPECT_EQ(office->office.renewals, 12u);
    EXPECT_EQ(office->office.lease, std::chrono::seconds(5));
    EXPECT_EQ(office->office.holder, "at home");
}

TEST(EtcdCodec, ReadsThatAChangeWasMadeOrWhatStoodInItsWay) {
    auto made = parse_etcd_change(
        "{" + header +
        R"(,"succeeded":true,"responses":[{"response_put":{"header":{"revision":"7"}}}]})");
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->made);
    EXPECT_EQ(made->revision, 7);
    auto refused = parse_etcd_change(
        "{" + header + R"(,"responses":[{"response_range":{"header":{"revision":"2"},"kvs":[)" +
        R"({"key":"d2VmdC9vZmZpY2U=","create_revision":"2","mod_revision":"6","version":"1",)" +
        R"("value":")" + office_value() + R"("}],"count":"1"}}]})");
    ASSERT_TRUE(refused);
    EXPECT_FALSE(refused->made);
    EXPECT_EQ(refused->office.office.epoch, wire::Epoch{3});
}

TEST(EtcdCodec, ReadsRecordsAlsoEmptyOnes) {
    auto records = parse_etcd_records(
        "weft/", "{" + header + R"(,"kvs":[{"key":")" + to_base64(std::string("weft/records/a")) +
                     R"(","mod_revision":"3","version":"2"},{"key":")" +
                     to_base64(std::string("weft/records/boxes/b")) +
                     R"(","mod_revision":"3","version":"2","value":"aGk="}],"count":"2"})");
    ASSERT_TRUE(records);
    ASSERT_EQ(records->size(), 2u);
    EXPECT_EQ((*records)[0].first, "a");
    EXPECT_TRUE((*records)[0].second.empty());
    EXPECT_EQ((*records)[1].first, "boxes/b");
    EXPECT_EQ((*records)[1].second.size(), 2u);
}

TEST(EtcdCodec, RefusesWhatEtcdWouldNotSay) {
    for (const std::string body :
         {"", "[]", "{", "{}", R"({"header":{},"kvs":7})", R"({"header":{},"kvs":[{},{}]})",
          R"({"header":{},"kvs":[{"value":"!"}]})", R"({"header":{},"kvs":[{"value":"aGk="}]})"}) {
        EXPECT_FALSE(parse_etcd_office(body)) << body;
        EXPECT_FALSE(parse_etcd_change(body)) << body;
    }
    EXPECT_FALSE(parse_etcd_records("weft/", R"({"header":{},"kvs":[{"key":"aGk="}]})"));
}

TEST(EtcdCodec, TellsARefusalFromNotKnowing) {
    auto never = parse_etcd_refusal(
        400, R"({"error":"etcdserver: request is too large","message":"x","code":3})");
    ASSERT_TRUE(never);
    EXPECT_EQ(never->code, Code::out_of_range);
    EXPECT_TRUE(parse_etcd_refusal(429, R"({"error":"mvcc: database space exceeded","code":8})"));
    EXPECT_FALSE(parse_etcd_refusal(503, R"({"error":"etcdserver: no leader","code":14})"));
    EXPECT_FALSE(parse_etcd_refusal(504, "gateway timeout"));
}

TEST(EtcdCodec, AsksOnceForEveryKey) {
    const auto asked = etcd_ask_for_change(
        "weft/", 7, {.office = {}, .candidate = 1},
        {{"a", std::vector<std::byte>{}}, {"a", std::nullopt}, {"a", std::vector<std::byte>(1)}});
    const auto key = to_base64(std::string("weft/records/a"));
    EXPECT_EQ(asked.find(key), asked.rfind(key));
    EXPECT_NE(asked.find(key), std::string::npos);
    EXPECT_NE(asked.find(R"("mod_revision":"7")"), std::string::npos);
}

}  // namespace
}  // namespace weft::store
