// SPDX-License-Identifier: Apache-2.0
// The client's side of option haggling, with good servers, old servers and bad ones.
#include "nbd/client_handshake.hpp"

#include <gtest/gtest.h>

#include "support/nbd_client_talk.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;
using test::Bytes;
using test::from_hex;
using test::join;
using test::number;

class ClientHandshakeTest : public test::NbdClientTalk {
protected:
    void greet() {
        if (!client || driver->closed()) connect();
        server_says(encoded(Greeting{true, true}));
    }
    /// As far as the question for the export itself.
    void greet_up_to_go() {
        greet();
        answer(Option::structured_reply, Answer::ack, {});
        answer(Option::set_meta_context, Answer::ack, {});
        driver->take_sent();
    }
    Code failure() {
        EXPECT_EQ(opened.size(), 1u);
        EXPECT_FALSE(opened.at(0).has_value());
        return opened.at(0).error().code;
    }
    static Bytes abort_option() { return test::option(Option::abort, {}); }
};

TEST_F(ClientHandshakeTest, SaysWhatQemuIoSays) {
    auto server = test::golden("nbd/session_qemu_io.server.hex");
    auto expected = test::golden("nbd/session_qemu_io.client.hex");
    constexpr std::size_t handshake_from_server = 217, handshake_from_client = 95;
    server.resize(handshake_from_server);
    expected.resize(handshake_from_client);
    connect();
    server_says(server);
    EXPECT_EQ(test::to_hex(driver->take_sent()), test::to_hex(expected));
    ASSERT_EQ(opened.size(), 1u);
    ASSERT_TRUE(opened[0].has_value());
    EXPECT_EQ(client->agreement().size, 1u << 20);
    EXPECT_EQ(client->agreement().blocks, (InfoBlockSize{1, 4096, 32u << 20}));
    EXPECT_EQ(client->agreement().allocation_context, 0u);
    EXPECT_TRUE(client->agreement().structured_replies);
    EXPECT_TRUE(client->agreement().flags.can_zero_fast);
}

TEST_F(ClientHandshakeTest, MakesDoWithoutWhatTheServerLacks) {
    greet();
    answer(Option::structured_reply, Answer::error_unsupported, {});
    EXPECT_EQ(
        driver->take_sent(),
        join({from_hex("00000003"), test::option(Option::structured_reply, {}),
              test::option(Option::go, test::info_question("disk", {InfoType::block_size}))}));
    answer(Option::go, Answer::info, encoded(InfoExport{4096, {.read_only = true}}));
    answer(Option::go, Answer::info, from_hex("0077 0102"));  // information nobody knows
    answer(Option::go, Answer::ack, {});
    ASSERT_TRUE(opened.at(0).has_value());
    auto traits = client->traits();
    EXPECT_EQ(traits.size, 4096u);
    EXPECT_TRUE(traits.read_only);
    EXPECT_FALSE(traits.can_report_status);
    EXPECT_FALSE(traits.can_trim);
    EXPECT_EQ(traits.maximum_transfer, 32u << 20) << "what the protocol says for want of words";
}

TEST_F(ClientHandshakeTest, TellsItsDeviceUsersTheServersBlockSizes) {
    greet_up_to_go();
    answer(Option::go, Answer::info, encoded(InfoBlockSize{512, 65536, 1 << 20}));
    answer(Option::go, Answer::info, encoded(InfoExport{1 << 20, everything}));
    answer(Option::go, Answer::ack, {});
    ASSERT_TRUE(opened.at(0).has_value());
    EXPECT_EQ(client->traits().minimum_block, 512u);
    EXPECT_EQ(client->traits().preferred_block, 65536u);
    EXPECT_EQ(client->traits().maximum_transfer, 1u << 20);
}

TEST_F(ClientHandshakeTest, GoesTheOldWayWhereGoIsUnknown) {
    greet_up_to_go();
    answer(Option::go, Answer::error_unsupported, {});
    EXPECT_EQ(driver->take_sent(), test::option(Option::export_name, bytes_of("disk")));
    server_says(test::golden("nbd/export_name_reply.hex"));
    ASSERT_TRUE(opened.at(0).has_value());
    EXPECT_EQ(client->traits().size, 65536u);
}

TEST_F(ClientHandshakeTest, GoesTheOldWayWithAnOldServer) {
    for (bool no_zeroes : {false, true}) {
        if (client) driver->close(std::nullopt), opened.clear();
        connect();
        server_says(encoded(Greeting{no_zeroes, false}));
        EXPECT_EQ(driver->take_sent(), join({from_hex(no_zeroes ? "00000002" : "00000000"),
                                             test::option(Option::export_name, bytes_of("disk"))}));
        server_says(test::golden(no_zeroes ? "nbd/export_name_reply.hex"
                                           : "nbd/export_name_reply_zeroes.hex"));
        ASSERT_TRUE(opened.at(0).has_value());
        EXPECT_EQ(client->traits().size, 65536u);
        EXPECT_TRUE(client->traits().can_trim);
    }
}

TEST_F(ClientHandshakeTest, SaysWhyTheServerRefusedAndLeavesPolitely) {
    greet_up_to_go();
    auto refusal = bytes_of("export 'disk' is not here");
    answer(Option::go, Answer::error_unknown, refusal);
    EXPECT_EQ(failure(), Code::not_found);
    EXPECT_EQ(client->refusal(), "export 'disk' is not here");
    EXPECT_EQ(driver->take_sent(), abort_option());
    EXPECT_TRUE(hung_up());
}

TEST_F(ClientHandshakeTest, TakesEveryOtherErrorForARefusal) {
    for (auto error : {Answer::error_policy, Answer::error_invalid, Answer::error_tls_required,
                       Answer::error_shutdown, Answer::error_block_size_required, Answer{~0u}}) {
        if (client) opened.clear();
        greet_up_to_go();
        answer(Option::go, error, {});
        EXPECT_EQ(failure(), Code::access_denied);
        EXPECT_EQ(driver->take_sent(), abort_option());
    }
}

TEST_F(ClientHandshakeTest, LeavesPolitelyWhenToldToInTheMiddle) {
    greet();
    driver->take_sent();
    client->disconnect();
    driver->run_if_woken();
    EXPECT_EQ(driver->take_sent(), abort_option());
    EXPECT_EQ(failure(), Code::disconnected);
    EXPECT_TRUE(hung_up());
}

TEST_F(ClientHandshakeTest, FinishesItsSentenceBeforeItLeaves) {
    connect();
    driver->peer_listens = false;
    server_says(encoded(Greeting{true, true}));
    client->disconnect();
    driver->peer_listens = true;
    driver->run();
    EXPECT_EQ(
        driver->take_sent(),
        join({from_hex("00000003"), test::option(Option::structured_reply, {}), abort_option()}));
}

TEST_F(ClientHandshakeTest, JustHangsUpWhereNothingCanBeSaid) {
    connect();
    client->disconnect();
    driver->run_if_woken();
    EXPECT_TRUE(driver->take_sent().empty());
    EXPECT_TRUE(hung_up());

    opened.clear();
    connect();
    server_says(encoded(Greeting{true, false}));
    driver->take_sent();
    client->disconnect();
    driver->run_if_woken();
    EXPECT_TRUE(driver->take_sent().empty()) << "after EXPORT_NAME no option may follow";
    EXPECT_TRUE(hung_up());
}

TEST_F(ClientHandshakeTest, ForgetsAContextOnceTheServerTakesItBack) {
    greet();
    answer(Option::structured_reply, Answer::ack, {});
    answer(Option::set_meta_context, Answer::meta_context,
           join({number<4>(7), bytes_of("base:allocation")}));
    answer(Option::set_meta_context, Answer::error_too_big, {});
    answer(Option::go, Answer::info, encoded(InfoExport{1, everything}));
    answer(Option::go, Answer::ack, {});
    ASSERT_TRUE(opened.at(0).has_value());
    EXPECT_FALSE(client->traits().can_report_status);
}

TEST_F(ClientHandshakeTest, TakesOnlyTheContextItAskedFor) {
    greet();
    answer(Option::structured_reply, Answer::ack, {});
    answer(Option::set_meta_context, Answer::meta_context,
           join({number<4>(7), bytes_of("qemu:allocation-depth")}));
    EXPECT_EQ(failure(), Code::malformed);
}

TEST_F(ClientHandshakeTest, HangsUpOnAServerThatBreaksTheRules) {
    const std::function<void()> wrongs[] = {
        [&] { server_says(Bytes(18)); },
        [&] {
            server_says(join({encoded(Greeting{true, true}), Bytes(20)}));
        },
        [&] { greet(), answer(Option::go, Answer::ack, {}); },
        [&] { greet(), answer(Option::structured_reply, Answer::info, {}); },
        [&] {
            greet(), answer(Option::structured_reply, Answer::ack, {});
            answer(Option::set_meta_context, Answer::server, {});
        },
        [&] {
            greet(), answer(Option::structured_reply, Answer::ack, {});
            answer(Option::set_meta_context, Answer::meta_context, from_hex("010203"));
        },
        [&] { greet_up_to_go(), answer(Option::go, Answer::ack, {}); },
        [&] { greet_up_to_go(), answer(Option::go, Answer::info, from_hex("00")); },
        [&] { greet_up_to_go(), answer(Option::go, Answer::info, from_hex("0000 01")); },
        [&] { greet_up_to_go(), answer(Option::go, Answer::info, Bytes(12)); },  // no flags
        [&] { greet_up_to_go(), answer(Option::go, Answer::server, {}); },
        [&] {
            greet_up_to_go();
            answer(Option::go, Answer::info, encoded(InfoBlockSize{0, 4096, 4096}));
        },
        [&] {
            greet_up_to_go();
            answer(Option::go, Answer::info, encoded(InfoBlockSize{4096, 4096, 512}));
        },
        [&] {
            greet_up_to_go();
            answer(Option::go, Answer::info, encoded(InfoBlockSize{3, 4096, 4096}));
        },
        [&] {
            greet_up_to_go();
            server_says(encoded(OptionReplyHeader{Option::go, Answer::info, 1 << 30}));
        },
    };
    for (std::size_t i = 0; i < std::size(wrongs); ++i) {
        SCOPED_TRACE(i);
        if (client && !driver->closed()) driver->close(std::nullopt);
        opened.clear();
        connect();
        auto& waiting = submit(BlockOperation::flush, 0, 0);
        wrongs[i]();
        EXPECT_TRUE(hung_up());
        EXPECT_FALSE(opened.at(0).has_value());
        EXPECT_TRUE(waiting.failure().has_value());
    }
}

TEST_F(ClientHandshakeTest, LosesPatienceAfterManyReplies) {
    greet_up_to_go();
    std::size_t replies_before = 2;
    auto info = encoded(InfoExport{disk_size, everything});
    for (std::size_t i = replies_before; i < server_option_replies_max; ++i)
        answer(Option::go, Answer::info, info);
    EXPECT_FALSE(hung_up());
    answer(Option::go, Answer::info, info);
    EXPECT_TRUE(hung_up());
    EXPECT_EQ(failure(), Code::exhausted);
}

TEST_F(ClientHandshakeTest, GivesAServerThatDripsAMinuteInAll) {
    connect();
    Instant begin{1'000'000}, end = begin + server_handshake_time;
    client->tick(begin);
    ASSERT_EQ(client->deadline(), end);
    auto greeting = encoded(Greeting{true, true});
    for (std::size_t i = 0; i < 10; ++i) {
        server_says(ConstBuffer(greeting).subspan(i, 1));
        client->tick(end + Duration(-1));
        EXPECT_FALSE(client->finished());
    }
    EXPECT_EQ(client->deadline(), end) << "signs of life do not move it";
    client->tick(end);
    driver->run_if_woken();
    EXPECT_TRUE(hung_up());
    EXPECT_EQ(failure(), Code::timed_out);
}

TEST_F(ClientHandshakeTest, LeavesNoDeadlineBehind) {
    connect();
    client->tick(Instant{1'000'000});
    server_says(encoded(Greeting{true, true}));
    answer(Option::structured_reply, Answer::error_unsupported, {});
    answer(Option::go, Answer::info, encoded(InfoExport{disk_size, everything}));
    answer(Option::go, Answer::ack, {});
    EXPECT_EQ(client->deadline(), std::nullopt);
    client->tick(Instant{1'000'000} + 2 * server_handshake_time);
    EXPECT_FALSE(client->finished());
}

TEST_F(ClientHandshakeTest, SaysNothingMoreToAServerThatBrokeTheRules) {
    greet_up_to_go();
    driver->peer_listens = false;
    answer(Option::go, Answer::error_unsupported, {});  // an answer to this waits to be sent
    server_says(join({Bytes(8), from_hex("0000")}));    // and the flags are none
    EXPECT_TRUE(hung_up());
    EXPECT_EQ(failure(), Code::malformed);
}

}  // namespace
}  // namespace weft::nbd
