// SPDX-License-Identifier: Apache-2.0
// The life of a connection: many requests at once, answers in any order, waiting for memory, and
// every way to end. Other programs' recorded sessions are served at the end.
#include "nbd/server_connection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/nbd_server_talk.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;
using test::Bytes;

class ServerConnectionTest : public test::NbdServerTalk {
protected:
    static Bytes octets(std::size_t size, int value) {
        return Bytes(size, static_cast<std::byte>(value));
    }
    void begin_holding(Speech speech) {
        disk.holding = true;
        disk.lending = false;
        begin(speech, "disk");
    }
    std::vector<std::uint64_t> cookies() {
        std::vector<std::uint64_t> heard;
        for (const auto& one : replies()) heard.push_back(one.cookie);
        return heard;
    }
};

TEST_F(ServerConnectionTest, AnswersInTheOrderTheDeviceFinishes) {
    begin_holding(Speech::structured);
    for (int i = 0; i < 5; ++i) say_request(header(Command::read, 0, 1));
    auto first = last_cookie - 4;
    ASSERT_EQ(disk.held.size(), 5u);
    disk.let_go(3);
    EXPECT_EQ(cookies(), std::vector{first + 3});
    disk.let_go(0);
    disk.let_go(2);
    EXPECT_EQ(cookies(), (std::vector{first, first + 4}));
    disk.let_all_go();
    EXPECT_EQ(cookies(), (std::vector{first + 1, first + 2}));
}

TEST_F(ServerConnectionTest, AnswersManyPipelinedRequestsEachOnce) {
    for (auto speech : {Speech::simple, Speech::structured}) {
        if (connection) driver->close(std::nullopt), gone = 0;
        begin_holding(speech);
        constexpr std::size_t count = 500;
        std::mt19937 chance(7);
        Bytes everything;
        auto first = last_cookie + 1;
        for (std::size_t i = 0; i < count; ++i) {
            auto request = header(i % 3 == 0 ? Command::read : Command::write, i * 512, 512);
            if (request.command == Command::read) reader.expect_read(request);
            everything = test::join({everything, encoded(request),
                                     octets(request.command == Command::write ? 512 : 0, 0x33)});
        }
        say(everything);
        EXPECT_EQ(disk.held.size(), requests_in_flight_max);
        EXPECT_GT(driver->unread(), 0u);
        std::vector<std::uint64_t> heard;
        while (!disk.held.empty()) {
            disk.let_go(chance() % disk.held.size());
            for (auto cookie : cookies()) heard.push_back(cookie);
        }
        std::ranges::sort(heard);
        std::vector<std::uint64_t> expected(count);
        std::iota(expected.begin(), expected.end(), first);
        EXPECT_EQ(heard, expected);
        EXPECT_EQ(driver->unread(), 0u);
    }
}

TEST_F(ServerConnectionTest, WaitsForRoomWhileItsAnswersAreNotHeard) {
    disk.lending = false;
    begin(Speech::simple, "disk");
    driver->peer_listens = false;
    for (std::size_t i = 0; i < requests_in_flight_max + 10; ++i)
        say_request(header(Command::read, 0, 100));
    EXPECT_EQ(driver->unread(), 10 * wire_size<RequestHeader>());
    driver->peer_listens = true;
    driver->run();
    EXPECT_EQ(replies().size(), requests_in_flight_max + 10);
}

TEST_F(ServerConnectionTest, HoldsNoMorePayloadThanItsBudget) {
    disk.shown.size = 1ull << 30;  // the requests never reach the memory below
    begin_holding(Speech::simple);
    for (int i = 0; i < 3; ++i) say_request(header(Command::read, 0, 32u << 20));
    say_request(header(Command::flush, 0, 0));
    EXPECT_EQ(disk.held.size(), 2u) << "the third read waits for memory, and all behind it";

    driver->peer_listens = false;
    disk.fail(0, {.code = Code::io_failed});
    driver->run_if_woken();
    EXPECT_EQ(disk.held.size(), 1u) << "the memory is free when the answer has left";
    driver->peer_listens = true;
    driver->run();
    EXPECT_EQ(disk.held.size(), 3u) << "the third read, and the flush";
    while (!disk.held.empty()) disk.fail(0, {.code = Code::io_failed});
    EXPECT_EQ(replies().size(), 4u);
}

TEST_F(ServerConnectionTest, TakesAStalledWriteWhenMemoryIsFree) {
    disk.shown.size = 1ull << 30;
    begin_holding(Speech::simple);
    say_request(header(Command::read, 0, 32u << 20));
    say_request(header(Command::read, 0, 32u << 20));
    auto write = header(Command::write, 4096, 100);
    say_write(write, octets(100, 0x5a));
    EXPECT_EQ(disk.held.size(), 2u);
    EXPECT_EQ(driver->unread(), 100u) << "the payload has no place yet";
    while (disk.held.size() > 0 && disk.held[0]->operation == BlockOperation::read) {
        disk.fail(0, {.code = Code::io_failed});
        driver->run_if_woken();
    }
    ASSERT_EQ(disk.held.size(), 1u);
    disk.let_all_go();
    auto heard = replies();
    ASSERT_EQ(heard.size(), 3u);
    EXPECT_EQ(heard.back().cookie, write.cookie);
    EXPECT_EQ(test::contents(memory, 4096, 100), octets(100, 0x5a));
}

TEST_F(ServerConnectionTest, HoldsManyStatusRequestsAtOnce) {
    begin_holding(Speech::structured);
    for (int i = 0; i < 100; ++i) say_request(header(Command::block_status, 0, 4096));
    EXPECT_EQ(disk.held.size(), 100u);
    disk.let_all_go();
    EXPECT_EQ(replies().size(), 100u);
}

TEST_F(ServerConnectionTest, HangsUpOnAWrongMagic) {
    begin_holding(Speech::simple);
    say_request(header(Command::read, 0, 1));
    say(test::Bytes(28));
    EXPECT_TRUE(dropped());
    EXPECT_EQ(connection->fault()->code, Code::malformed);
    EXPECT_EQ(gone, 0) << "the device still has a request of ours";
    disk.let_all_go();
    EXPECT_EQ(gone, 1);
    EXPECT_TRUE(driver->take_sent().empty());
}

TEST_F(ServerConnectionTest, FinishesItsWorkBeforeADisconnect) {
    begin_holding(Speech::structured);
    say_request(header(Command::read, 0, 1));
    say_write(header(Command::write, 0, 4), octets(4, 0x77));
    say_request({.command = Command::disconnect});
    say_request(header(Command::flush, 0, 0));
    EXPECT_FALSE(driver->closed());
    EXPECT_EQ(disk.held.size(), 2u) << "what comes after a disconnect is not read";
    disk.let_go(1);
    EXPECT_EQ(cookies().size(), 1u);
    EXPECT_FALSE(driver->closed());
    disk.let_go(0);
    EXPECT_EQ(cookies().size(), 1u);
    EXPECT_TRUE(driver->closed());
    EXPECT_EQ(connection->fault(), std::nullopt);
    EXPECT_EQ(test::contents(memory, 0, 4), octets(4, 0x77));
}

TEST_F(ServerConnectionTest, HangsUpAtOnceWhenIdle) {
    begin(Speech::simple, "disk");
    say_request({.command = Command::disconnect});
    EXPECT_TRUE(driver->closed());
    EXPECT_EQ(gone, 1);
}

TEST_F(ServerConnectionTest, WaitsForTheDeviceAfterTheStreamIsGone) {
    begin_holding(Speech::structured);
    for (int i = 0; i < 3; ++i) say_request(header(Command::read, 0, 4096));
    disk.let_go(0);  // its reply is never heard
    driver->close(Error{.code = Code::io_failed});
    EXPECT_EQ(connection->fault()->code, Code::io_failed);
    EXPECT_EQ(gone, 0);
    disk.let_go(0);
    EXPECT_EQ(gone, 0);
    disk.fail(0, {.code = Code::io_failed});
    EXPECT_EQ(gone, 1);
}

TEST_F(ServerConnectionTest, IsGoneAtOnceWhenTheDeviceHasNothing) {
    connect();
    driver->close(std::nullopt);
    EXPECT_EQ(gone, 1);
    connection->closed(std::nullopt);
    EXPECT_EQ(gone, 1) << "closing twice is closing once";
}

TEST_F(ServerConnectionTest, MayBeClosedWhileAWriteWaitsForMemory) {
    disk.shown.size = 1ull << 30;
    begin_holding(Speech::simple);
    say_request(header(Command::read, 0, 32u << 20));
    say_request(header(Command::read, 0, 32u << 20));
    say_write(header(Command::write, 0, 4096), octets(4096, 1));
    driver->close(std::nullopt);
    EXPECT_EQ(disk.held.size(), 2u);
    while (!disk.held.empty()) disk.fail(0, {.code = Code::io_failed});
    EXPECT_EQ(gone, 1);
}

TEST_F(ServerConnectionTest, ForgetsAPooledPayloadThatStopsHalfway) {
    begin_holding(Speech::simple);
    say(test::join({encoded(header(Command::write, 0, 4096)), octets(100, 0x5a)}));
    driver->close(std::nullopt);
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(memory.allocated_bytes(), 0u);
}

// Bytes in lent memory are on the disk, wanted or not. If the write were never submitted, a device
// that let go of the block meanwhile would not know that it holds data.
TEST_F(ServerConnectionTest, SubmitsALentWriteThatStopsHalfway) {
    disk.lending = true;
    begin(Speech::simple, "disk");
    say(test::join({encoded(header(Command::write, 0, 4096)), octets(10, 0x5a)}));
    test::TestRequest trim(BlockOperation::trim, 0, 4096);
    memory.submit(trim);
    say(octets(100, 0x5a));
    driver->close(std::nullopt);
    EXPECT_EQ(gone, 1);
    EXPECT_EQ(memory.allocated_bytes(), 4096u) << "a block that holds bytes is no hole";

    test::TestRequest zero(BlockOperation::write_zeroes, 0, 4096);
    memory.submit(zero);
    EXPECT_EQ(test::contents(memory, 0, 4096), Bytes(4096));
}

TEST_F(ServerConnectionTest, WaitsForALentWriteThatStoppedHalfway) {
    disk.holding = disk.lending = true;
    begin(Speech::simple, "disk");
    say(test::join({encoded(header(Command::write, 0, 4096)), octets(10, 0x5a)}));
    driver->close(std::nullopt);
    EXPECT_EQ(gone, 0);
    disk.let_all_go();
    EXPECT_EQ(gone, 1);
}

/// A conversation with everything in it, good and bad. The client waits for the answers to one part
/// before it says the next: a read and a write of the same bytes under way at a time may be done in
/// either order.
std::vector<Bytes> long_conversation() {
    std::vector<Bytes> parts(1, test::from_hex("00000003"));
    auto say = [&](ConstBuffer octets) { parts.back() = test::join({parts.back(), octets}); };
    say(test::option(Option::list, {}));
    say(test::option(Option::starttls, test::from_hex("010203")));
    say(test::option(Option::structured_reply, {}));
    say(test::option(Option::info, test::info_question("archive", {InfoType::description})));
    say(test::option(Option::list_meta_context, Bytes(option_bytes_max + 5000)));
    say(test::option(Option::set_meta_context,
                     test::context_question("disk", {"base:allocation"})));
    say(test::option(Option::go, test::info_question("disk", {InfoType::name})));
    std::uint64_t cookie = 0;
    auto request = [&](Command command, unsigned flags, std::uint64_t offset,
                       std::uint32_t length) {
        say(encoded(
            RequestHeader{static_cast<std::uint16_t>(flags), command, ++cookie, offset, length}));
        if (command == Command::write) say(Bytes(length, static_cast<std::byte>(cookie)));
    };
    request(Command::write, flag_durable, 1000, 5000);
    parts.emplace_back();
    request(Command::read, 0, 900, 300);
    request(Command::write, 0, 1 << 20, 11);  // beyond the end
    request(Command::write, 0x80, 0, 9000);   // an unknown flag
    request(Command::block_status, 0, 0, 1 << 20);
    request(Command{77}, 0, 0, 4096);
    parts.emplace_back();
    request(Command::write_zeroes, flag_no_hole, 5000, 100);
    request(Command::trim, 0, 0, 4096);
    parts.emplace_back();
    request(Command::read, flag_do_not_fragment, 0, 7000);
    request(Command::cache, 0, 0, 7000);
    request(Command::flush, 0, 0, 0);
    request(Command::disconnect, 0, 0, 0);
    return parts;
}

TEST_F(ServerConnectionTest, SaysAndDoesTheSameHoweverTheStreamIsCut) {
    auto conversation = long_conversation();
    Bytes expected_disk(disk_size);
    std::fill(expected_disk.begin() + 4096, expected_disk.begin() + 6000, std::byte{1});
    std::fill(expected_disk.begin() + 5000, expected_disk.begin() + 5100, std::byte{0});
    Bytes expected_answer;
    auto talk = [&](std::function<std::size_t(std::size_t)> cut, bool lends) {
        block::MemoryDisk fresh(std::make_unique<block::HeapMemory>(disk_size), disk_size);
        test::HeldDisk shown(fresh);
        shown.holding = false;
        shown.lending = lends;
        Exports offered;
        ASSERT_TRUE(offered.add({"disk", "", &shown, false}).has_value());
        ASSERT_TRUE(offered.add({"archive", "old", &shown, true}).has_value());
        ServerConnection server(offered, pool, statistics, {}, {[] {}, [] {}});
        test::EngineDriver world(server);
        world.cut = cut;
        for (const auto& part : conversation) world.receive(part);
        EXPECT_TRUE(world.closed());
        EXPECT_EQ(server.fault(), std::nullopt);
        auto answer = world.take_sent();
        if (expected_answer.empty()) expected_answer = answer;
        EXPECT_TRUE(answer == expected_answer);
        EXPECT_TRUE(test::contents(fresh) == expected_disk);
    };
    talk([](std::size_t count) { return count; }, true);
    EXPECT_GT(expected_answer.size(), 7300u);
    for (std::size_t step = 1; step <= 70 && !HasFailure(); ++step) {
        SCOPED_TRACE("step " + std::to_string(step));
        talk([&](std::size_t count) { return std::min(count, step); }, step % 2 == 0);
    }
    for (std::uint32_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 chance(seed);
        talk([&](std::size_t count) { return 1 + chance() % std::min<std::size_t>(count, 200); },
             true);
    }
}

TEST_F(ServerConnectionTest, ServesARecordedSessionOfQemuIo) {
    connect();
    say(test::golden("nbd/session_qemu_io.client.hex"));
    EXPECT_TRUE(driver->closed());
    EXPECT_EQ(connection->fault(), std::nullopt);
    EXPECT_EQ(statistics.refused, 0u);
    EXPECT_EQ(test::contents(memory, 65536, 512), octets(512, 0x5a));
    EXPECT_EQ(test::contents(memory, 0, 512), octets(512, 0x33));
}

TEST_F(ServerConnectionTest, ServesARecordedSessionOfNbdinfo) {
    connect();
    say(test::golden("nbd/session_nbdinfo_list.client.hex"));
    EXPECT_TRUE(driver->closed());
    EXPECT_EQ(connection->fault(), std::nullopt);
    for (const auto& answer : test::option_answers(driver->take_sent()))
        EXPECT_FALSE(is_error(answer.type));
}

TEST_F(ServerConnectionTest, ServesARecordedSessionOfTheOldWay) {
    connect();
    say(test::golden("nbd/session_oldstyle.client.hex"));
    EXPECT_TRUE(driver->closed());
    EXPECT_EQ(connection->fault(), std::nullopt);
    EXPECT_EQ(driver->take_sent().size(), 134u + 16 + 512 + 16);
}

}  // namespace
}  // namespace weft::nbd
