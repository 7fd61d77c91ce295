// SPDX-License-Identifier: Apache-2.0
// The client after the handshake, with a server played by hand: honest at first, then not.
#include "nbd/client.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/nbd_client_talk.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;
using test::Bytes;
using test::from_hex;
using test::join;
using test::number;

class ClientTest : public test::NbdClientTalk {
protected:
    static Bytes simple(std::uint64_t cookie, ErrorNumber error) {
        return encoded_bytes(SimpleReply{error, cookie});
    }
    static Bytes data(bool done, std::uint64_t cookie, std::uint64_t offset, ConstBuffer octets) {
        return chunk(done, ChunkType::offset_data, cookie, join({number<8>(offset), octets}));
    }
    static Bytes hole(bool done, std::uint64_t cookie, std::uint64_t offset, std::uint32_t length) {
        return chunk(done, ChunkType::offset_hole, cookie, encoded(HoleRange{offset, length}));
    }
    static Bytes status(bool done, std::uint64_t cookie, std::uint32_t context,
                        std::vector<StatusDescriptor> extents) {
        Bytes body = number<4>(context);
        for (const auto& extent : extents) body = join({body, encoded(extent)});
        return chunk(done, ChunkType::block_status, cookie, body);
    }
    /// Asks for the status of a range, with room for `room` extents.
    test::TestRequest& ask_status(std::uint64_t length, std::size_t room) {
        extents.assign(room, Extent{.length = 99});
        auto& request = requests.emplace_back(BlockOperation::status, 0, length);
        request.extents = extents;
        request.extent_count = 55;  // a leftover that must not be taken for an answer
        client->submit(request);
        driver->run_if_woken();
        return request;
    }

    std::vector<Extent> extents;

private:
    template <class Header>
    static Bytes encoded_bytes(const Header& header) {
        auto octets = encoded(header);
        return Bytes(octets.begin(), octets.end());
    }
};

TEST_F(ClientTest, SendsEachRequestAsTheProtocolWantsIt) {
    begin(Speech::structured, everything);
    submit(BlockOperation::read, 1, 2);
    submit(BlockOperation::write, 3, 4);
    submit(BlockOperation::flush, 0, 0);
    submit(BlockOperation::trim, 5, 6);
    submit(BlockOperation::write_zeroes, 7, 8);
    submit(BlockOperation::prefetch, 9, 10);
    ask_status(11, 1);
    auto headers = heard();
    ASSERT_EQ(headers.size(), 7u);
    Command expected[] = {Command::read,        Command::write,        Command::flush,
                          Command::trim,        Command::write_zeroes, Command::cache,
                          Command::block_status};
    for (std::size_t i = 0; i < 7; ++i) {
        EXPECT_EQ(headers[i].command, expected[i]);
        EXPECT_EQ(headers[i].flags, 0u);
        EXPECT_EQ(headers[i].length, requests[i].length);
        EXPECT_EQ(headers[i].offset, requests[i].offset);
    }
}

TEST_F(ClientTest, SendsFlagsWhereTheyMeanSomething) {
    begin(Speech::structured, everything);
    auto flags_of = [&](BlockOperation operation) {
        auto& request = requests.emplace_back(operation, 0, 0);
        request.durable = request.keep_space = request.fast_only = true;
        client->submit(request);
        driver->run_if_woken();
        return unsigned{heard().at(0).flags};
    };
    EXPECT_EQ(flags_of(BlockOperation::write), flag_durable + 0u);
    EXPECT_EQ(flags_of(BlockOperation::trim), flag_durable + 0u);
    EXPECT_EQ(flags_of(BlockOperation::write_zeroes),
              flag_durable + 0u + flag_no_hole + flag_fast_zero);
    EXPECT_EQ(flags_of(BlockOperation::read), 0u);
    EXPECT_EQ(flags_of(BlockOperation::flush), 0u);
}

TEST_F(ClientTest, RefusesWhatTheServerCannotDoWithoutAsking) {
    begin(Speech::simple, TransmissionFlags{});
    for (auto operation : {BlockOperation::trim, BlockOperation::write_zeroes,
                           BlockOperation::prefetch, BlockOperation::status})
        EXPECT_EQ(submit(operation, 0, 1).failure(), Code::unsupported);
    EXPECT_TRUE(heard().empty());

    auto& read = requests.emplace_back(BlockOperation::read, 0, 0);
    read.durable = true;
    client->submit(read);
    EXPECT_FALSE(read.done()) << "a read cannot be durable, so that is nothing to refuse";
}

TEST_F(ClientTest, RefusesWhatCannotFit) {
    begin(Speech::structured, {.read_only = true, .can_zero_fast = false});
    EXPECT_EQ(submit(BlockOperation::read, disk_size, 1).failure(), Code::out_of_range);
    EXPECT_EQ(submit(BlockOperation::read, ~0ull, 2).failure(), Code::out_of_range);
    EXPECT_EQ(submit(BlockOperation::write, 0, 1).failure(), Code::access_denied);
    EXPECT_TRUE(heard().empty());
}

TEST_F(ClientTest, PlacesASimpleReplysPayload) {
    begin(Speech::simple, everything);
    auto& read = submit(BlockOperation::read, 5, 4);
    auto cookie = heard_cookie();
    server_says(join({simple(cookie, ErrorNumber::none), from_hex("0102")}));
    EXPECT_FALSE(read.done());
    server_says(from_hex("0304"));
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(requests[0].octets, from_hex("01020304"));
}

TEST_F(ClientTest, AssemblesAReadFromChunksInAnyOrder) {
    begin(Speech::structured, everything);
    auto& read = submit(BlockOperation::read, 1000, 10);
    auto cookie = heard_cookie();
    server_says(data(false, cookie, 1006, from_hex("06070809")));
    server_says(hole(false, cookie, 1002, 4));
    server_says(data(false, cookie, 1000, from_hex("0001")));
    EXPECT_FALSE(read.done());
    server_says(chunk(true, ChunkType::none, cookie, {}));
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(requests[0].octets, from_hex("0001 00000000 06070809"));
}

TEST_F(ClientTest, KeepsInterleavedChunksApart) {
    begin(Speech::structured, everything);
    auto& one = submit(BlockOperation::read, 0, 2);
    auto& two = submit(BlockOperation::read, 0, 2);
    auto headers = heard();
    server_says(data(false, headers[0].cookie, 0, from_hex("01")));
    server_says(data(false, headers[1].cookie, 1, from_hex("04")));
    server_says(data(true, headers[0].cookie, 1, from_hex("02")));
    EXPECT_TRUE(one.succeeded());
    EXPECT_FALSE(two.done());
    server_says(data(true, headers[1].cookie, 0, from_hex("03")));
    EXPECT_TRUE(two.succeeded());
    EXPECT_EQ(requests[0].octets, from_hex("0102"));
    EXPECT_EQ(requests[1].octets, from_hex("0304"));
}

TEST_F(ClientTest, TellsTheServersErrors) {
    for (auto speech : {Speech::simple, Speech::structured}) {
        if (client) driver->close(std::nullopt), opened.clear();
        begin(speech, everything);
        auto told = [&](ErrorNumber error) {
            auto& request = submit(BlockOperation::read, 0, 4);
            auto cookie = heard_cookie();
            server_says(speech == Speech::simple
                            ? simple(cookie, error)
                            : chunk(true, ChunkType::error, cookie, error_body(error, "no")));
            return request.failure();
        };
        EXPECT_EQ(told(ErrorNumber::io), Code::io_failed);
        EXPECT_EQ(told(ErrorNumber::not_permitted), Code::access_denied);
        EXPECT_EQ(told(ErrorNumber::no_space), Code::exhausted);
        EXPECT_EQ(told(ErrorNumber::invalid), Code::malformed);
        EXPECT_EQ(told(ErrorNumber::not_supported), Code::unsupported);
        EXPECT_EQ(told(ErrorNumber{4711}), Code::io_failed);
        EXPECT_FALSE(driver->closed());
    }
}

TEST_F(ClientTest, FailsAReadThatErredAfterSomeOfItCame) {
    begin(Speech::structured, everything);
    auto& read = submit(BlockOperation::read, 0, 4);
    auto cookie = heard_cookie();
    server_says(data(false, cookie, 0, from_hex("01")));
    auto at_offset = join({error_body(ErrorNumber::io, "bad"), number<8>(1)});
    server_says(chunk(false, ChunkType::error_offset, cookie, at_offset));
    server_says(chunk(true, ChunkType::none, cookie, {}));
    EXPECT_EQ(read.failure(), Code::io_failed);
    EXPECT_FALSE(driver->closed());
}

TEST_F(ClientTest, TakesAnUnknownErrorChunkForAnError) {
    begin(Speech::structured, everything);
    auto& flush = submit(BlockOperation::flush, 0, 0);
    server_says(chunk(true, ChunkType{0xffff}, heard_cookie(),
                      join({error_body(ErrorNumber::io, ""), from_hex("010203")})));
    EXPECT_EQ(flush.failure(), Code::io_failed);
}

TEST_F(ClientTest, CutsTheStatusToWhatWasAskedAndToTheRoom) {
    begin(Speech::structured, everything);
    std::vector<StatusDescriptor> told{
        {4096, true, true}, {4096, false, false}, {9999, true, false}};
    auto& all = ask_status(10'000, 5);
    server_says(status(true, heard_cookie(), context_id, told));
    EXPECT_TRUE(all.succeeded());
    ASSERT_EQ(all.extent_count, 3u);
    EXPECT_EQ(extents[0], (Extent{4096, true, true}));
    EXPECT_EQ(extents[1], (Extent{4096, false, false}));
    EXPECT_EQ(extents[2], (Extent{1808, false, true}));

    auto& some = ask_status(10'000, 2);
    server_says(status(true, heard_cookie(), context_id, told));
    EXPECT_TRUE(some.succeeded());
    EXPECT_EQ(some.extent_count, 2u);

    auto& none = ask_status(10'000, 0);
    server_says(status(true, heard_cookie(), context_id, told));
    EXPECT_TRUE(none.succeeded());
    EXPECT_EQ(none.extent_count, 0u);
}

TEST_F(ClientTest, TakesTheLongestStatusTheProtocolAllows) {
    begin(Speech::structured, everything);
    constexpr std::size_t count = 1 << 20;
    auto& request = ask_status(disk_size, 20'000);
    Bytes body = number<4>(context_id);
    for (std::size_t i = 0; i < count; ++i) {
        auto one = encoded(StatusDescriptor{1, false, i % 2 == 0});
        body.insert(body.end(), one.begin(), one.end());
    }
    server_says(chunk(true, ChunkType::block_status, heard_cookie(), body));
    EXPECT_TRUE(request.succeeded());
    EXPECT_GE(request.extent_count, 8192u);
    EXPECT_EQ(extents[request.extent_count - 1].length, 1u);
    auto& flush = submit(BlockOperation::flush, 0, 0);
    server_says(simple(heard_cookie(), ErrorNumber::none));
    EXPECT_TRUE(flush.succeeded()) << "the rest of the answer is not taken for replies";
}

TEST_F(ClientTest, WaitsWithARequestUntilItsPayloadHasLeft) {
    begin(Speech::structured, everything);
    driver->cut = [](std::size_t count) { return std::min<std::size_t>(count, 10); };
    driver->peer_listens = false;
    auto& write = submit(BlockOperation::write, 0, 100);
    std::array<ConstBuffer, 3> pieces;
    ASSERT_EQ(client->pending(pieces), 2u);
    auto cookie = decode<RequestHeader>(pieces[0])->cookie;
    server_says(simple(cookie, ErrorNumber::no_space));
    EXPECT_FALSE(write.done()) << "its memory is still being sent";
    driver->peer_listens = true;
    driver->run();
    EXPECT_EQ(write.failure(), Code::exhausted);
}

TEST_F(ClientTest, SendsManyAndTheRestWhenThereIsRoom) {
    begin(Speech::simple, everything);
    for (std::size_t i = 0; i < requests_in_flight_max + 50; ++i)
        submit(BlockOperation::flush, 0, 0);
    auto headers = heard();
    EXPECT_EQ(headers.size(), requests_in_flight_max);
    for (std::size_t i = 0; i < 50; ++i) server_says(simple(headers[i].cookie, ErrorNumber::none));
    auto more = heard();
    EXPECT_EQ(more.size(), 50u);
    std::vector<std::uint64_t> cookies;
    for (const auto& header : headers) cookies.push_back(header.cookie);
    for (const auto& header : more) cookies.push_back(header.cookie);
    std::ranges::sort(cookies);
    EXPECT_EQ(std::ranges::adjacent_find(cookies), cookies.end()) << "no cookie is used twice";
}

TEST_F(ClientTest, SubmitsFromInsideACompletion) {
    begin(Speech::simple, everything);
    auto& again = requests.emplace_back(BlockOperation::flush, 0, 0);
    auto& first = requests.emplace_back(BlockOperation::flush, 0, 0);
    first.then = [&] { client->submit(again); };
    client->submit(first);
    driver->run_if_woken();
    server_says(simple(heard_cookie(), ErrorNumber::none));
    EXPECT_TRUE(first.succeeded());
    server_says(simple(heard_cookie(), ErrorNumber::none));
    EXPECT_TRUE(again.succeeded());
}

TEST_F(ClientTest, SaysGoodbyeWhenAllIsAnswered) {
    begin(Speech::simple, everything);
    auto& flush = submit(BlockOperation::flush, 0, 0);
    auto cookie = heard_cookie();
    client->disconnect();
    driver->run_if_woken();
    EXPECT_TRUE(heard().empty());
    EXPECT_EQ(submit(BlockOperation::flush, 0, 0).failure(), Code::disconnected);
    server_says(simple(cookie, ErrorNumber::none));
    EXPECT_TRUE(flush.succeeded());
    EXPECT_EQ(heard(), std::vector{RequestHeader{.command = Command::disconnect}});
    EXPECT_TRUE(hung_up());
}

TEST_F(ClientTest, LeavesAServerThatIsShuttingDown) {
    for (auto speech : {Speech::simple, Speech::structured}) {
        if (client) opened.clear();
        begin(speech, everything);
        auto& one = submit(BlockOperation::flush, 0, 0);
        auto& two = submit(BlockOperation::flush, 0, 0);
        auto headers = heard();
        server_says(speech == Speech::simple ? simple(headers[0].cookie, ErrorNumber::shutdown)
                                             : chunk(true, ChunkType::error, headers[0].cookie,
                                                     error_body(ErrorNumber::shutdown, "")));
        EXPECT_EQ(one.failure(), Code::disconnected);
        EXPECT_EQ(submit(BlockOperation::flush, 0, 0).failure(), Code::disconnected);
        server_says(simple(headers[1].cookie, ErrorNumber::none));
        EXPECT_TRUE(two.succeeded());
        EXPECT_EQ(heard(), std::vector{RequestHeader{.command = Command::disconnect}});
    }
}

TEST_F(ClientTest, FailsEveryRequestWhenTheStreamIsLost) {
    begin(Speech::structured, everything);
    for (std::size_t i = 0; i < requests_in_flight_max + 5; ++i) submit(BlockOperation::read, 0, 4);
    std::size_t resubmitted = 0;
    auto& again = requests.emplace_back(BlockOperation::flush, 0, 0);
    requests[3].then = [&] { client->submit(again), ++resubmitted; };
    server_says(encoded(ChunkHeader{true, ChunkType::offset_data, heard()[7].cookie, 12}));
    driver->close(std::nullopt);
    EXPECT_EQ(resubmitted, 1u);
    for (const auto& request : requests) EXPECT_EQ(request.failure(), Code::disconnected);
    EXPECT_EQ(submit(BlockOperation::flush, 0, 0).failure(), Code::disconnected);
    EXPECT_TRUE(client->want().empty());
}

TEST_F(ClientTest, GivesUpAServerThatFallsSilent) {
    begin(Speech::structured, everything);
    auto& read = submit(BlockOperation::read, 0, 512);
    Instant now{1'000'000};
    client->tick(now);  // whatever came before is a sign of life
    EXPECT_FALSE(read.outcome);
    ASSERT_EQ(client->deadline(), now + server_patience);
    client->tick(now + server_patience + Duration(-1));  // too early means nothing
    EXPECT_FALSE(client->finished());
    client->tick(now + server_patience);
    EXPECT_EQ(read.failure(), Code::timed_out);
    EXPECT_TRUE(client->finished());
    EXPECT_EQ(client->deadline(), std::nullopt);
}

TEST_F(ClientTest, IsPatientWithAServerThatMovesOrOwesNothing) {
    begin(Speech::structured, everything);
    EXPECT_EQ(client->deadline(), std::nullopt);
    auto& first = submit(BlockOperation::flush, 0, 0);
    client->tick(Instant{});
    server_says(simple(heard().at(0).cookie, ErrorNumber::none));
    EXPECT_TRUE(first.succeeded());
    EXPECT_EQ(client->deadline(), std::nullopt);
    auto& second = submit(BlockOperation::flush, 0, 0);
    client->tick(Instant{} + 100 * server_patience);  // the silence while nothing was asked
    EXPECT_FALSE(second.outcome);
    server_says(simple(heard().at(0).cookie, ErrorNumber::none));
    EXPECT_TRUE(second.succeeded());
}

TEST_F(ClientTest, HangsUpOnRepliesThatMakeNoSense) {
    using Wrong = std::function<Bytes(std::uint64_t read, std::uint64_t status)>;
    auto good_status = [](std::uint64_t cookie) {
        return status(false, cookie, context_id, {{4, true, true}});
    };
    const Wrong wrongs[] = {
        // Cookies of nobody: another slot, another generation, one already answered.
        [](auto read, auto) { return simple(read + 100, ErrorNumber::none); },
        [](auto read, auto) { return simple(read ^ 1ull << 40, ErrorNumber::io); },
        [](auto, auto) { return chunk(true, ChunkType::none, ~0ull, {}); },
        [](auto read, auto) {
            auto once = chunk(true, ChunkType::error, read, error_body(ErrorNumber::io, ""));
            return join({once, once});
        },
        // Data outside the request, of nothing, too much or too little.
        [](auto read, auto) { return data(false, read, 999, from_hex("01")); },
        [](auto read, auto) { return data(false, read, 1010, from_hex("01")); },
        [](auto read, auto) { return data(false, read, 1005, Bytes(6)); },
        [](auto read, auto) { return data(false, read, ~0ull, Bytes(6)); },
        [](auto read, auto) { return data(false, read, 1000, {}); },
        [](auto read, auto) { return data(true, read, 1000, Bytes(9)); },
        [](auto read, auto) {
            return join({data(false, read, 1000, Bytes(10)), data(true, read, 1000, Bytes(1))});
        },
        [](auto read, auto) { return hole(false, read, 1009, 2); },
        [](auto read, auto) { return hole(false, read, 0, 1); },
        [](auto read, auto) { return hole(false, read, 1000, 0); },
        [](auto read, auto) { return hole(true, read, 1000, 9); },
        [](auto read, auto) {
            return chunk(true, ChunkType::offset_hole, read,
                         join({encoded(HoleRange{1000, 10}), Bytes(1)}));
        },
        [](auto read, auto) { return chunk(true, ChunkType::none, read, {}); },
        [](auto read, auto) { return chunk(false, ChunkType::none, read, {}); },
        [](auto read, auto) { return chunk(true, ChunkType::none, read, Bytes(1)); },
        [](auto read, auto) { return simple(read, ErrorNumber::none); },
        // Chunks nobody knows, chunks cut short, lengths that lie.
        [](auto read, auto) { return chunk(true, ChunkType{3}, read, Bytes(1)); },
        [](auto read, auto) { return chunk(true, ChunkType{3}, read, {}); },
        [](auto read, auto) { return chunk(true, ChunkType::offset_hole, read, Bytes(11)); },
        [](auto read, auto) { return chunk(true, ChunkType::error, read, Bytes(5)); },
        [](auto read, auto) { return chunk(true, ChunkType::error, read, {}); },
        [](auto read, auto) {
            return chunk(true, ChunkType::error, read, error_body(ErrorNumber::none, "fine"));
        },
        [](auto read, auto) {
            return chunk(true, ChunkType::error, read, from_hex("00000005 0003 6162"));
        },
        [](auto read, auto) {
            return join({encoded(ChunkHeader{true, ChunkType::error, read, ~0u}), Bytes(9)});
        },
        [](auto, auto) { return Bytes(16); },
        // Answers of the wrong kind.
        [](auto read, auto) {
            return status(true, read, context_id, {{10, true, true}});
        },
        [](auto, auto status_cookie) { return data(true, status_cookie, 0, Bytes(1)); },
        [](auto, auto status_cookie) { return hole(true, status_cookie, 0, 1); },
        [](auto, auto status_cookie) { return simple(status_cookie, ErrorNumber::none); },
        // Status: none, of another context, empty, ragged, of no length, twice, and endless.
        [](auto, auto cookie) { return chunk(true, ChunkType::none, cookie, {}); },
        [](auto, auto cookie) {
            return status(true, cookie, context_id + 1, {{4, true, true}});
        },
        [](auto, auto cookie) { return status(true, cookie, context_id, {}); },
        [](auto, auto cookie) {
            return chunk(true, ChunkType::block_status, cookie,
                         join({number<4>(context_id), Bytes(7, std::byte{1})}));
        },
        [](auto, auto cookie) {
            return chunk(true, ChunkType::block_status, cookie,
                         join({number<4>(context_id), Bytes(12, std::byte{1})}));
        },
        [](auto, auto cookie) { return chunk(true, ChunkType::block_status, cookie, Bytes(3)); },
        [](auto, auto cookie) {
            return status(true, cookie, context_id, {{0, true, true}});
        },
        [&](auto, auto cookie) {
            return join({good_status(cookie), good_status(cookie)});
        },
        [](auto, auto cookie) {
            return join(
                {encoded(ChunkHeader{true, ChunkType::block_status, cookie, 1 << 30}), Bytes(9)});
        },
    };
    for (std::size_t i = 0; i < std::size(wrongs); ++i) {
        SCOPED_TRACE("wrong " + std::to_string(i));
        if (client) opened.clear();
        begin(Speech::structured, everything);
        auto& read = submit(BlockOperation::read, 1000, 10);
        auto& asked = ask_status(4096, 4);
        auto headers = heard();
        server_says(wrongs[i](headers.at(0).cookie, headers.at(1).cookie));
        EXPECT_TRUE(hung_up());
        EXPECT_TRUE(read.failure().has_value());
        EXPECT_TRUE(asked.failure().has_value());
        if (!driver->closed()) driver->close(std::nullopt);
    }
}

TEST_F(ClientTest, HangsUpOnChunksItDidNotAgreeTo) {
    begin(Speech::simple, everything);
    auto& read = submit(BlockOperation::read, 0, 1);
    server_says(data(true, heard_cookie(), 0, Bytes(1)));
    EXPECT_TRUE(hung_up());
    EXPECT_EQ(read.failure(), Code::malformed);
}

}  // namespace
}  // namespace weft::nbd
