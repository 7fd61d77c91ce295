// SPDX-License-Identifier: Apache-2.0
#include "iscsi/initiator_url.hpp"

#include <gtest/gtest.h>

namespace weft::iscsi {
namespace {

TEST(InitiatorUrl, NamesAUnitInTheFormOfLibiscsi) {
    const auto url = parse_initiator_url("iscsi://127.0.0.1/iqn.2026-11.io.weft:disk0/1");
    ASSERT_TRUE(url);
    EXPECT_EQ(url->address, Address::tcp("127.0.0.1", 3260));
    EXPECT_EQ(url->target_name, "iqn.2026-11.io.weft:disk0");
    EXPECT_EQ(url->unit, 1u);
    EXPECT_FALSE(url->over_rdma);
    EXPECT_FALSE(url->credentials);
}

TEST(InitiatorUrl, SaysWhoAsksAndWhoMustAnswer) {
    const auto url = parse_initiator_url(
        "iser://me%a%secret@[fd00::1]:3261/iqn.x/0?target_user=disk&target_password=other"
        "&header_digest=crc32c");
    ASSERT_TRUE(url);
    EXPECT_TRUE(url->over_rdma);
    EXPECT_EQ(url->address, Address::tcp("fd00::1", 3261));
    EXPECT_EQ(url->credentials, (ChapCredentials{"me", "a%secret"}));
    EXPECT_EQ(url->expected_of_target, (ChapCredentials{"disk", "other"}));
    EXPECT_TRUE(url->header_digest);
    EXPECT_FALSE(url->data_digest);
}

TEST(InitiatorUrl, MayNameAPortalOnly) {
    const auto url = parse_initiator_url("iscsi://host:99?iser");
    ASSERT_TRUE(url);
    EXPECT_TRUE(url->over_rdma);
    EXPECT_TRUE(url->target_name.empty());
    EXPECT_EQ(url->address, Address::tcp("host", 99));
    EXPECT_TRUE(parse_initiator_url("iscsi://host/"));
}

TEST(InitiatorUrl, IsRefusedIfItIsNone) {
    for (const char* text :
         {"", "iscsi:", "nbd://host/x", "iscsi://", "iscsi:///iqn.x/1", "iscsi://host/iqn.x",
          "iscsi://host/iqn.x/", "iscsi://host/iqn.x/one", "iscsi://host/iqn.x/1/2",
          "iscsi://host/iqn.x/99999999", "iscsi://host:0/iqn.x/1", "iscsi://host:70000/iqn.x/1",
          "iscsi://[fd00::1/iqn.x/1", "iscsi://host//1", "iscsi://host/iqn.x/1?colour=blue",
          "iscsi://host/iqn.x/1?header_digest=md5"})
        EXPECT_FALSE(parse_initiator_url(text)) << text;
}

TEST(Portal, IsReadWithAndWithoutPortAndGroup) {
    EXPECT_EQ(*parse_portal("10.0.0.1:3260,1"), Address::tcp("10.0.0.1", 3260));
    EXPECT_EQ(*parse_portal("[fe80::1]:1,2"), Address::tcp("fe80::1", 1));
    EXPECT_EQ(*parse_portal("disk.example"), Address::tcp("disk.example", 3260));
    EXPECT_FALSE(parse_portal(":3260"));
}

}  // namespace
}  // namespace weft::iscsi
