// SPDX-License-Identifier: Apache-2.0
// Flush and durable writes on servers that offer both, one, or neither. And what a client may live
// to see: it may be destroyed by whoever hears the last of it.
#include <gtest/gtest.h>

#include <array>

#include "support/nbd_client_talk.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;
using test::Bytes;

class ClientDurabilityTest : public test::NbdClientTalk {
protected:
    test::TestRequest& submit_durable(BlockOperation operation, std::uint64_t length) {
        auto& request = requests.emplace_back(operation, 0, length);
        request.durable = true;
        client->submit(request);
        driver->run_if_woken();
        return request;
    }
    void answer_with(std::uint64_t cookie, ErrorNumber error) {
        server_says(encoded(SimpleReply{error, cookie}));
    }
};

TEST_F(ClientDurabilityTest, HasNothingToFlushWhereTheServerOffersNoFlush) {
    begin(Speech::simple, TransmissionFlags{});
    EXPECT_TRUE(submit(BlockOperation::flush, 0, 0).succeeded());
    EXPECT_TRUE(heard().empty());
    EXPECT_FALSE(client->traits().can_flush);
    EXPECT_FALSE(client->traits().can_write_durably);
}

TEST_F(ClientDurabilityTest, WritesPlainlyWhereTheServerOffersNothing) {
    begin(Speech::simple, TransmissionFlags{});
    auto& write = submit_durable(BlockOperation::write, 16);
    auto headers = heard();
    ASSERT_EQ(headers.size(), 1u);
    EXPECT_EQ(headers[0].flags, 0u);
    answer_with(headers[0].cookie, ErrorNumber::none);
    EXPECT_TRUE(write.succeeded());
}

TEST_F(ClientDurabilityTest, FlushesAfterEachDurableChangeIfThatIsAllTheServerOffers) {
    begin(Speech::simple, {.can_flush = true, .can_trim = true, .can_write_zeroes = true});
    EXPECT_TRUE(client->traits().can_flush);
    EXPECT_TRUE(client->traits().can_write_durably);
    for (auto operation :
         {BlockOperation::write, BlockOperation::trim, BlockOperation::write_zeroes}) {
        auto& change = submit_durable(operation, 16);
        auto first = heard();
        ASSERT_EQ(first.size(), 1u);
        EXPECT_EQ(first[0].flags, 0u);
        EXPECT_NE(first[0].command, Command::flush);
        answer_with(first[0].cookie, ErrorNumber::none);
        EXPECT_FALSE(change.done()) << "it is not durable yet";
        auto second = heard();
        ASSERT_EQ(second.size(), 1u);
        EXPECT_EQ(second[0],
                  (RequestHeader{.command = Command::flush, .cookie = second[0].cookie}));
        EXPECT_NE(second[0].cookie, first[0].cookie);
        answer_with(second[0].cookie, ErrorNumber::none);
        EXPECT_TRUE(change.succeeded());
    }
}

TEST_F(ClientDurabilityTest, TellsOfAFailedWriteAtOnceAndOfAFailedFlush) {
    begin(Speech::simple, {.can_flush = true});
    auto& unwritten = submit_durable(BlockOperation::write, 16);
    answer_with(heard_cookie(), ErrorNumber::no_space);
    EXPECT_EQ(unwritten.failure(), Code::exhausted);
    EXPECT_TRUE(heard().empty());
    auto& unflushed = submit_durable(BlockOperation::write, 16);
    answer_with(heard_cookie(), ErrorNumber::none);
    answer_with(heard_cookie(), ErrorNumber::io);
    EXPECT_EQ(unflushed.failure(), Code::io_failed);
}

TEST_F(ClientDurabilityTest, SaysGoodbyeOnlyAfterTheFlushThatFollows) {
    begin(Speech::simple, {.can_flush = true});
    auto& write = submit_durable(BlockOperation::write, 16);
    auto cookie = heard_cookie();
    client->disconnect();
    answer_with(cookie, ErrorNumber::none);
    auto flush = heard();
    ASSERT_EQ(flush.size(), 1u);
    EXPECT_EQ(flush[0].command, Command::flush);
    answer_with(flush[0].cookie, ErrorNumber::none);
    EXPECT_TRUE(write.succeeded());
    EXPECT_EQ(heard(), std::vector{RequestHeader{.command = Command::disconnect}});
}

TEST_F(ClientDurabilityTest, TakesInvalidForAMistakeInTheRequest) {
    begin(Speech::simple, everything);
    auto& read = submit(BlockOperation::read, 0, 16);
    answer_with(heard_cookie(), ErrorNumber::invalid);
    EXPECT_EQ(read.failure(), Code::malformed);
    auto& beyond = submit(BlockOperation::read, 0, 16);
    answer_with(heard_cookie(), ErrorNumber::overflow);
    EXPECT_EQ(beyond.failure(), Code::out_of_range);
}

/// Called by hand, since a driver would speak to the client again. A client that is touched too
/// late shows under the address sanitizer.
class ClientLastWordTest : public ClientDurabilityTest {
protected:
    /// The next request to complete takes the client with it.
    test::TestRequest& last(BlockOperation operation, std::uint64_t length) {
        auto& request = requests.emplace_back(operation, 0, length);
        request.then = [this] { gone(); };
        return request;
    }
    void gone() {
        client.reset();
        ++gone_count;
    }
    void fill(ConstBuffer octets) {
        auto place = client->want();
        ASSERT_GE(place.size(), octets.size());
        std::copy(octets.begin(), octets.end(), place.begin());
        client->filled(octets.size());
    }

    int gone_count = 0;
};

TEST_F(ClientLastWordTest, MayBeTheAnswer) {
    begin(Speech::simple, everything);
    client->submit(last(BlockOperation::flush, 0));
    driver->run_if_woken();
    fill(encoded(SimpleReply{ErrorNumber::none, heard_cookie()}));
    EXPECT_EQ(gone_count, 1);
}

TEST_F(ClientLastWordTest, MayBeThatThePayloadHasLeft) {
    begin(Speech::simple, everything);
    driver->peer_listens = false;
    client->submit(last(BlockOperation::write, 16));
    std::array<ConstBuffer, 3> pieces;
    ASSERT_EQ(client->pending(pieces), 2u);
    fill(encoded(SimpleReply{ErrorNumber::no_space, decode<RequestHeader>(pieces[0])->cookie}));
    EXPECT_EQ(gone_count, 0);
    client->sent(pieces[0].size() + pieces[1].size());
    EXPECT_EQ(gone_count, 1);
}

TEST_F(ClientLastWordTest, MayBeARefusal) {
    begin(Speech::simple, TransmissionFlags{});
    client->submit(last(BlockOperation::trim, 16));
    EXPECT_EQ(gone_count, 1);
}

TEST_F(ClientLastWordTest, MayBeThatTheStreamIsLost) {
    begin(Speech::simple, everything);
    auto left = requests_in_flight_max + 2;  // some wait
    for (auto i = left; i > 0; --i) {
        auto& request = requests.emplace_back(BlockOperation::flush, 0, 0);
        request.then = [&] {
            if (--left == 0) gone();
        };
        client->submit(request);
    }
    client->closed(std::nullopt);
    EXPECT_EQ(gone_count, 1);
}

TEST_F(ClientLastWordTest, MayBeThatTheServerFellSilent) {
    begin(Speech::simple, everything);
    client->submit(last(BlockOperation::flush, 0));
    client->tick(Instant{1'000'000});
    client->tick(Instant{1'000'000} + server_patience);
    EXPECT_EQ(gone_count, 1);
}

TEST_F(ClientLastWordTest, MayBeTheEndOfARequestThatWaitedForTheHandshake) {
    connect();
    client->submit(last(BlockOperation::flush, 0));
    client->closed(std::nullopt);
    EXPECT_EQ(opened.size(), 1u);
    EXPECT_EQ(gone_count, 1);
}

/// A client whose holder drops it when it hears how the handshake went.
class DroppedClient {
public:
    DroppedClient() {
        auto opened = [this, large = std::array<char, 64>{}](Result<void> how) {
            outcome = how;
            client.reset();
            capture_alive = large[63] == 0;  // what the callable holds must not be gone
        };
        client = std::make_unique<Client>("disk", Client::Holder{.wake = [] {}, .opened = opened});
    }
    void hears(ConstBuffer octets) {
        while (client && !octets.empty()) {
            auto place = client->want();
            auto part = octets.first(std::min(place.size(), octets.size()));
            std::copy(part.begin(), part.end(), place.begin());
            octets = octets.subspan(part.size());
            client->filled(part.size());
        }
    }

    std::unique_ptr<Client> client;
    std::optional<Result<void>> outcome;
    bool capture_alive = false;
};

TEST(DroppedWhenOpened, AClientSaysNothingMore) {
    DroppedClient refused, done, silent, left, lost;
    auto greeting = encoded(Greeting{true, true});
    auto unsupported =
        test::option_reply(Option::structured_reply, OptionReplyType::error_unsupported, {});
    for (auto* client : {&refused, &done, &silent, &left}) client->hears(greeting);
    for (auto* client : {&refused, &done}) client->hears(unsupported);
    refused.hears(test::option_reply(Option::go, OptionReplyType::error_unknown, {}));
    done.hears(test::option_reply(Option::go, OptionReplyType::info,
                                  encoded(InfoExport{4096, TransmissionFlags{}})));
    done.hears(test::option_reply(Option::go, OptionReplyType::ack, {}));
    silent.client->tick(Instant{1'000'000});
    silent.client->tick(Instant{1'000'000} + server_patience);
    left.client->disconnect();
    lost.client->closed(std::nullopt);
    for (auto* client : {&refused, &done, &silent, &left, &lost}) {
        EXPECT_FALSE(client->client);
        ASSERT_TRUE(client->outcome);
        EXPECT_EQ(client->outcome->has_value(), client == &done);
        EXPECT_TRUE(client->capture_alive);
    }
}

}  // namespace
}  // namespace weft::nbd
