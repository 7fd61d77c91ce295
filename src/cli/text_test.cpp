// SPDX-License-Identifier: Apache-2.0
#include "cli/text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace weft::cli {
namespace {

TEST(Size, IsReadAsPeopleWriteIt) {
    EXPECT_EQ(parse_size("512"), 512u);
    EXPECT_EQ(parse_size("64k"), 65536u);
    EXPECT_EQ(parse_size("1G"), 1u << 30);
    EXPECT_EQ(parse_size("1GiB"), 1u << 30);
    EXPECT_EQ(parse_size("1gb"), 1u << 30);
    EXPECT_EQ(parse_size("1.5M"), 3u << 19);
    EXPECT_EQ(parse_size("9223372036854775807"), 9223372036854775807u);
}

TEST(Size, IsRefusedWhenItIsNone) {
    for (auto text : {"", "G", "1X", "-1", "1.3", "1 G", "1GG", "99999999E", "0x10", "1GiBs"})
        EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Size, ThatIsNoneIsToldWhy) {
    for (auto text : {"99999999E", "99999999999999999999", "8E", "8388608.5T"})
        EXPECT_EQ(why_no_size(text),
                  "'" + std::string(text) + "' is too large: a size is less than 8 EiB");
    EXPECT_TRUE(why_no_size(std::string(400, '9')).ends_with("a size is less than 8 EiB"));
    for (auto text : {"1.3", "1.0001k"})
        EXPECT_EQ(why_no_size(text), "'" + std::string(text) + "' is not a whole number of octets");
    for (auto text : {"", ".", "G", "1X", "-1", "1 G", "1GG", "0x10", "1.2.3M", "lots"})
        EXPECT_EQ(why_no_size(text), "'" + std::string(text) + "' is not a size like 512M or 1G");
}

TEST(ADuration, IsReadAsPeopleWriteIt) {
    using namespace std::chrono_literals;
    EXPECT_EQ(parse_duration("500ms"), Duration(500ms));
    EXPECT_EQ(parse_duration("10s"), Duration(10s));
    EXPECT_EQ(parse_duration("1.5"), Duration(1500ms));
    EXPECT_EQ(parse_duration("2m"), Duration(2min));
    EXPECT_EQ(parse_duration("1h"), Duration(1h));
    for (auto text : {"", "s", "10 s", "-1s", "1x", "1e9", "1.2.3s", "99999999999999999999h"})
        EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Size, IsShownShort) {
    EXPECT_EQ(show_size(0), "0 B");
    EXPECT_EQ(show_size(1023), "1023 B");
    EXPECT_EQ(show_size(1u << 30), "1 GiB");
    EXPECT_EQ(show_size(3u << 19), "1.5 MiB");
    EXPECT_EQ(show_size(~0ull), "16 EiB");
}

TEST(TcpAddress, IsReadAndShown) {
    EXPECT_EQ(parse_tcp("127.0.0.1:10809"), Address::tcp("127.0.0.1", 10809));
    EXPECT_EQ(parse_tcp("[::1]:1"), Address::tcp("::1", 1));
    EXPECT_EQ(show_address(Address::tcp("::1", 1)), "[::1]:1");
    EXPECT_EQ(show_address(Address::tcp("box", 2)), "box:2");
    for (auto text : {"", "host", "host:", ":1", "host:65536", "host:-1", "::1:10809", "host:1x"})
        EXPECT_FALSE(parse_tcp(text)) << text;
}

TEST(NbdUri, GoesThereAndBack) {
    for (auto text : {"nbd://127.0.0.1:10809/disk0", "nbd://[::1]:7/",
                      "nbd+unix:///a?socket=/tmp/s", "nbd+unix:///?socket=/tmp/a%20b"}) {
        auto uri = parse_nbd_uri(text);
        ASSERT_TRUE(uri) << text;
        EXPECT_EQ(show_nbd_uri(*uri), text);
    }
    EXPECT_EQ(parse_nbd_uri("nbd://host")->address, Address::tcp("host", nbd_port));
    EXPECT_EQ(parse_nbd_uri("nbd+unix://?socket=/s")->address, Address::unix_socket("/s"));
    EXPECT_EQ(parse_nbd_uri("nbd://host/a%2fb")->export_name, "a/b");
    for (auto text : {"", "http://x/", "nbd+unix:///x", "nbd+unix:///x?socket=", "nbd://h/%zz"})
        EXPECT_FALSE(parse_nbd_uri(text)) << text;
}

TEST(ForeignText, CannotPlayWithTheTerminal) {
    EXPECT_EQ(show_foreign("no\n\033[2Jthanks\177"), "no??[2Jthanks?");
    EXPECT_EQ(show_foreign(std::string(1000, 'x')).size(), 200u);
}

TEST(Json, ReplacesWhatIsNotText) {
    EXPECT_EQ(show_json({{"name", "a\xff"}}), "{\"name\":\"a\uFFFD\"}");
}

TEST(Duration, IsShownForPeople) {
    EXPECT_EQ(show_duration(0.44), "0.4 s");
    EXPECT_EQ(show_duration(200), "3 min 20 s");
    EXPECT_EQ(show_duration(7260), "2 h 1 min");
}

}  // namespace
}  // namespace weft::cli
