// SPDX-License-Identifier: Apache-2.0
// MPA's opening as a stream: whole, cut everywhere, broken, late, and as Linux's siw speaks it.
// What is negotiated is tested in negotiation_test.cpp.
#include "iwarp/startup.hpp"

#include <gtest/gtest.h>

#include "support/startup_words.hpp"
#include "support/tcp_streams.hpp"

namespace weft::iwarp {
namespace {

using namespace test;
using namespace test::startups;

TEST(Initiator, AsksAndIsAcceptedAsSiwIs) {
    auto answer = join({golden("iwarp/mpa_reply.hex"), golden("iwarp/send.hex")});
    auto frame_size = golden("iwarp/mpa_reply.hex").size();
    auto make = [] {
        auto startup = initiator(as_siw);
        EXPECT_EQ(pending(startup), golden("iwarp/mpa_request.hex"));
        EXPECT_EQ(send_all(startup), std::nullopt);
        return startup;
    };
    Heard expected{.event = StartupEvent::established, .error = {}, .taken = frame_size};
    hear_in_every_way(make, answer, expected, [](Startup& startup) {
        EXPECT_EQ(startup.terms(), (Terms{.inbound_reads = 1, .outbound_reads = 1}));
        EXPECT_TRUE(startup.peer_private_data().empty());
        EXPECT_EQ(startup.peer_inbound_reads(), 1u);
        EXPECT_EQ(startup.peer_outbound_reads(), 1u);
        EXPECT_EQ(startup.deadline(), std::nullopt);
    });
}

TEST(Initiator, WaitsForItsOwnFrameToBeSentEvenIfItIsAnswered) {
    for (auto answer : {reply("10 02 0004 0010 0010"), reply("30 02 0004 0010 0010")}) {
        auto startup = initiator(as_siw);
        EXPECT_EQ(sent(startup, 5), std::nullopt);
        EXPECT_EQ(hear(startup, answer, 100).event, std::nullopt);
        EXPECT_TRUE(startup.want().empty());
        EXPECT_EQ(startup.deadline(), start + as_siw.patience);
        EXPECT_EQ(sent(startup, 18), std::nullopt);
        bool accepts = answer[16] == std::byte{0x10};
        EXPECT_EQ(send_all(startup), accepts ? StartupEvent::established : StartupEvent::rejected);
        EXPECT_TRUE(pending(startup).empty());
    }
}

TEST(Initiator, HearsARejectionAndWhatTheApplicationSays) {
    const struct {
        const char* what;
        Wishes wishes;
        Bytes stream;
        std::string_view said;
        std::optional<std::uint16_t> wanted;
    } rows[] = {
        {"enhanced", {}, reply("7e 02 0006 8004 8008 6e6f"), "no", 8},
        {"of siw, which does not do markers",
         {.markers = true},
         reply("70 02 0004 0000 0000"),
         "",
         0},
        {"plain, to a plain request", old, reply("20 01 0002 6e6f"), "no", std::nullopt},
        {"plain, to an enhanced request", {}, reply("20 01 0002 6e6f"), "no", std::nullopt},
        {"plain, but of the new revision", {}, reply("20 02 0000"), "", std::nullopt},
        {"that leaves the reads alone", {}, reply("30 02 0004 3fff 3fff"), "", std::nullopt},
    };
    for (const auto& row : rows) {
        SCOPED_TRACE(row.what);
        auto make = [&] {
            auto startup = initiator(row.wishes);
            send_all(startup);
            return startup;
        };
        Heard expected{.event = StartupEvent::rejected, .error = {}, .taken = row.stream.size()};
        hear_in_every_way(make, row.stream, expected, [&](Startup& startup) {
            EXPECT_EQ(text_of(startup.peer_private_data()), row.said);
            EXPECT_EQ(startup.peer_outbound_reads(), row.wanted);
        });
    }
}

TEST(Initiator, RefusesABrokenReply) {
    const struct {
        const char* what;
        Wishes wishes;
        Bytes stream;
        Heard expected;
    } rows[] = {
        {"a request", {}, golden("iwarp/mpa_request.hex"), malformed(8, 20)},
        {"another protocol", {}, Bytes(24, std::byte{'A'}), malformed(0, 20)},
        {"revision 3",
         {},
         reply("50 03 0004 0010 0010"),
         refused(Code::unsupported, MpaError::invalid_startup_frame, 17, 20)},
        {"a rejection of revision 129",
         {},
         reply("70 81 0004 0010 0010"),
         refused(Code::unsupported, MpaError::invalid_startup_frame, 17, 20)},
        {"513 octets", {}, reply("50 02 0201 8010 8010"), malformed(18, 20)},
        {"enhanced terms cut short", {}, reply("50 02 0003 801080"), malformed(18, 23)},
        {"no enhanced terms at all", {}, reply("50 02 0000 801080"), malformed(18, 20)},
        {"the same in a rejection", {}, reply("70 02 0002 8010"), malformed(18, 22)},
        {"not enhanced", {}, reply("40 02 0004 0010 0010"), malformed(16, 24)},
        {"enhanced unasked", old, reply("10 02 0004 0010 0010"), malformed(16, 24)},
    };
    for (const auto& row : rows) {
        SCOPED_TRACE(row.what);
        auto make = [&] { return initiator(row.wishes); };
        hear_in_every_way(make, row.stream, row.expected, [](Startup& startup) {
            EXPECT_TRUE(pending(startup).empty());
            EXPECT_EQ(startup.deadline(), std::nullopt);
            EXPECT_EQ(sent(startup, 1), std::nullopt) << "what was lent may still go out";
        });
    }
}

TEST(Responder, AnswersAsSiwDoes) {
    auto asked = join({golden("iwarp/mpa_request.hex"), golden("iwarp/send.hex")});
    auto frame_size = golden("iwarp/mpa_request.hex").size();
    Heard expected{.event = StartupEvent::requested, .error = {}, .taken = frame_size};
    hear_in_every_way([] { return responder(); }, asked, expected,
                      [](Startup& startup) {
                          EXPECT_EQ(startup.peer_inbound_reads(), 1u);
                          EXPECT_EQ(startup.peer_outbound_reads(), 1u);
                          EXPECT_TRUE(pending(startup).empty());
                          ASSERT_TRUE(startup.accept(as_siw, {}, start));
                          EXPECT_EQ(pending(startup), golden("iwarp/mpa_reply.hex"));
                          for (int octet = 0; octet < 23; ++octet)
                              EXPECT_EQ(sent(startup, 1), std::nullopt);
                          EXPECT_EQ(sent(startup, 1), StartupEvent::established);
                          EXPECT_EQ(startup.terms(), (Terms{.role = Role::responder,
                                                            .inbound_reads = 1,
                                                            .outbound_reads = 1,
                                                            .peer = Peer::siw}));
                      });
}

TEST(Responder, TakesPlainRequestsToo) {
    for (const char* revision : {"00", "01", "02"}) {
        auto asked = request("40 " + std::string(revision) + " 0002 6869");
        Heard expected{.event = StartupEvent::requested, .error = {}, .taken = asked.size()};
        hear_in_every_way([] { return responder(); }, asked, expected,
                          [&](Startup& startup) {
                              EXPECT_EQ(text_of(startup.peer_private_data()), "hi");
                              EXPECT_EQ(startup.peer_inbound_reads(), std::nullopt);
                              EXPECT_EQ(startup.peer_outbound_reads(), std::nullopt);
                              ASSERT_TRUE(startup.accept({}, bytes_of("ho"), start));
                              EXPECT_EQ(pending(startup),
                                        reply("40 " + std::string(revision) + " 0002 686f"));
                          });
    }
    // The flag for enhanced terms was a reserved one then.
    auto startup = responder();
    auto asked = request("10 01 0002 6869");
    EXPECT_EQ(hear(startup, asked, 100).event, StartupEvent::requested);
    EXPECT_EQ(text_of(startup.peer_private_data()), "hi");
}

TEST(Responder, RejectsWithTheApplicationsWords) {
    for (bool enhanced : {false, true}) {
        auto startup = responder(as_siw);
        hear(startup, enhanced ? request("10 02 0004 0010 0010") : request("00 01 0000"), 100);
        ASSERT_TRUE(startup.reject(bytes_of("no"), start));
        EXPECT_EQ(pending(startup),
                  enhanced ? reply("30 02 0006 0010 0001 6e6f") : reply("20 01 0002 6e6f"));
        EXPECT_EQ(sent(startup, 3), std::nullopt);
        EXPECT_EQ(send_all(startup), StartupEvent::rejected);
    }
}

TEST(Responder, RefusesABrokenRequest) {
    const struct {
        const char* what;
        Bytes stream;
        Heard expected;
    } rows[] = {
        {"a reply", golden("iwarp/mpa_reply.hex"), malformed(8, 20)},
        {"another protocol", join({bytes_of("GET / HTTP/1.1\r\nHost: x\r\n")}), malformed(0, 20)},
        {"revision 3", request("10 03 0004 0001 0001"),
         refused(Code::unsupported, MpaError::invalid_startup_frame, 17, 20)},
        {"revision 129, of Alibaba's driver", request("00 81 0000"),
         refused(Code::unsupported, MpaError::invalid_startup_frame, 17, 20)},
        {"513 octets", request("00 01 0201 0001"), malformed(18, 20)},
        {"65535 octets", request("10 02 ffff 0001"), malformed(18, 20)},
        {"enhanced terms cut short", request("10 02 0001 00"), malformed(18, 21)},
    };
    for (const auto& row : rows) {
        SCOPED_TRACE(row.what);
        hear_in_every_way([] { return responder(); }, row.stream, row.expected,
                          [](Startup& startup) {
                              EXPECT_TRUE(pending(startup).empty());
                              EXPECT_EQ(startup.deadline(), std::nullopt);
                          });
    }
}

TEST(Startup, WantsTheHeaderAndThenThePrivateDataAndNothingElse) {
    auto startup = responder();
    auto asked = request("10 02 0006 0001 0001 6869");
    std::size_t at = 0;
    auto fill = [&](std::size_t count) {
        auto place = startup.want();
        std::copy_n(asked.begin() + static_cast<std::ptrdiff_t>(at), count, place.begin());
        at += count;
        EXPECT_TRUE(startup.filled(count));
    };
    EXPECT_EQ(startup.want().size(), 20u);
    fill(7);
    EXPECT_EQ(startup.want().size(), 13u);
    fill(13);
    EXPECT_EQ(startup.want().size(), 6u);
    fill(5);
    EXPECT_EQ(startup.want().size(), 1u);
    fill(1);
    EXPECT_TRUE(startup.want().empty());
    EXPECT_EQ(text_of(startup.peer_private_data()), "hi");
}

TEST(Startup, CarriesAsMuchPrivateDataAsTheFramesHold) {
    Bytes most(513);
    for (std::size_t at = 0; at < most.size(); ++at) most[at] = static_cast<std::byte>(at * 7);
    for (bool enhanced : {false, true}) {
        SCOPED_TRACE(enhanced);
        std::size_t limit = enhanced ? 508 : 512;
        auto wishes = enhanced ? Wishes{} : old;
        auto too_long = Startup::initiate(wishes, ConstBuffer(most).first(limit + 1), start);
        ASSERT_FALSE(too_long);
        EXPECT_EQ(too_long.error().code, Code::out_of_range);

        auto data = ConstBuffer(most).first(limit);
        auto asks = initiator(wishes, data);
        auto answers = responder();
        EXPECT_EQ(hear(answers, pending(asks), 100).event, StartupEvent::requested);
        EXPECT_EQ(to_hex(answers.peer_private_data()), to_hex(data));
        send_all(asks);

        // An answer that does not fit can be made again.
        auto longer = ConstBuffer(most).first(limit + 1);
        EXPECT_EQ(answers.reject(longer, start).error().code, Code::out_of_range);
        EXPECT_EQ(answers.accept({}, longer, start).error().code, Code::out_of_range);
        EXPECT_EQ(answers.deadline(), std::nullopt);
        EXPECT_TRUE(pending(answers).empty());
        ASSERT_TRUE(answers.accept({}, data, start));
        EXPECT_EQ(hear(asks, pending(answers), 100).event, StartupEvent::established);
        EXPECT_EQ(to_hex(asks.peer_private_data()), to_hex(data));
        EXPECT_EQ(send_all(answers), StartupEvent::established);
    }
}

TEST(Startup, IsRefusedIfItsWishesMakeNoSense) {
    Wishes wishes{.inbound_reads = 0x3fff};
    EXPECT_EQ(Startup::initiate(wishes, {}, start).error().code, Code::out_of_range);
    EXPECT_EQ(Startup::respond(wishes, start).error().code, Code::out_of_range);
    auto startup = responder();
    hear(startup, golden("iwarp/mpa_request.hex"), 100);
    EXPECT_EQ(startup.accept(wishes, {}, start).error().code, Code::out_of_range);
    EXPECT_TRUE(startup.accept({}, {}, start));
}

TEST(Startup, KeepsWhatItLentInPlaceWhenItIsMoved) {
    auto first = initiator({}, bytes_of("hello"));
    std::array<ConstBuffer, 1> before, after;
    ASSERT_EQ(first.pending(before), 1u);
    Startup second = std::move(first);
    ASSERT_EQ(second.pending(after), 1u);
    EXPECT_EQ(before[0].data(), after[0].data());
    send_all(second);
    EXPECT_EQ(hear(second, reply("7e 02 0006 8004 8008 6e6f"), 100).event, StartupEvent::rejected);
    Startup third = std::move(second);
    EXPECT_EQ(text_of(third.peer_private_data()), "no");
}

TEST(Startup, GivesUpAPeerThatDrips) {
    constexpr Wishes wishes{.patience = std::chrono::seconds(3)};
    const auto until = start + wishes.patience;
    for (bool initiates : {false, true}) {
        auto startup = initiates ? initiator(wishes) : responder(wishes);
        auto stream = initiates ? reply("5e 02 0004 8010 8010") : request("10 02 0004 0001 0001");
        if (initiates) send_all(startup);
        for (std::size_t octet = 0; octet < 23; ++octet) {
            EXPECT_EQ(startup.deadline(), until);
            EXPECT_TRUE(startup.tick(start + std::chrono::milliseconds(100 * octet)));
            EXPECT_EQ(hear(startup, ConstBuffer(stream).subspan(octet, 1), 1).taken, 1u);
        }
        EXPECT_TRUE(startup.tick(until + std::chrono::nanoseconds(-1)));
        auto late = startup.tick(until);
        ASSERT_FALSE(late);
        EXPECT_EQ(late.error().code, Code::timed_out);
        EXPECT_TRUE(startup.want().empty());
        EXPECT_EQ(startup.deadline(), std::nullopt);
        EXPECT_TRUE(startup.tick(until)) << "said once";
    }
}

TEST(Startup, GivesUpAPeerThatDoesNotTakeItsRequest) {
    auto startup = initiator({});
    EXPECT_EQ(sent(startup, 3), std::nullopt);
    EXPECT_FALSE(startup.tick(start + Wishes{}.patience));
    EXPECT_TRUE(pending(startup).empty());
}

TEST(Responder, LetsTheApplicationTakeItsTimeButNotThePeer) {
    constexpr Wishes wishes{.patience = std::chrono::seconds(3)};
    const auto decided = start + std::chrono::hours(1);
    for (bool accepts : {false, true}) {
        // What counts is the patience of the wishes that were last told.
        auto startup = responder(accepts ? Wishes{} : wishes);
        hear(startup, golden("iwarp/mpa_request.hex"), 100);
        EXPECT_EQ(startup.deadline(), std::nullopt);
        EXPECT_TRUE(startup.tick(decided));
        if (accepts) {
            ASSERT_TRUE(startup.accept(wishes, {}, decided));
        } else {
            ASSERT_TRUE(startup.reject({}, decided));
        }
        EXPECT_EQ(startup.deadline(), decided + wishes.patience);
        EXPECT_EQ(sent(startup, 23), std::nullopt);
        EXPECT_TRUE(startup.tick(decided));
        EXPECT_EQ(startup.tick(decided + wishes.patience).error().code, Code::timed_out);
    }
}

/// What siw must have wished for to send this frame.
Wishes wishes_behind(const StartupFrame& frame) {
    Wishes wishes = as_siw;
    wishes.checksum = frame.terms.checksum;
    wishes.peer_to_peer = frame.enhanced->peer_to_peer;
    wishes.ready_by_send = frame.enhanced->ready_by_send;
    wishes.ready_by_write = frame.enhanced->ready_by_write;
    wishes.ready_by_read = frame.enhanced->ready_by_read;
    wishes.inbound_reads = frame.enhanced->inbound_reads;
    wishes.outbound_reads = frame.enhanced->outbound_reads;
    return wishes;
}
template <class Frame>
StartupFrame frame_of(ConstBuffer stream) {
    auto terms = decode<Frame>(stream)->terms;
    auto behind = stream.subspan(wire_size<Frame>());
    return {.terms = terms, .enhanced = wire::decode_private_data(terms, behind)->enhanced};
}

TEST(Startup, OpensEveryCapturedConnectionLikeSiw) {
    std::size_t connections = 0;
    for (const char* name :
         {"siw-rping.pcap", "siw-rping-crc.pcap", "siw-rping-crcp2p.pcap", "siw-iser.pcap"}) {
        auto capture = test::Capture::load(std::string(WEFT_CAPTURES "/") + name);
        for (const auto& connection : test::tcp_connections(capture)) {
            SCOPED_TRACE(name);
            ++connections;
            ConstBuffer asked = connection.from_client.octets;
            ConstBuffer answered = connection.from_server.octets;

            auto answers = responder();
            auto request_heard = hear(answers, asked, 1448);
            ASSERT_EQ(request_heard.event, StartupEvent::requested);
            auto asks = initiator(wishes_behind(frame_of<wire::MpaRequest>(asked)),
                                  answers.peer_private_data());
            EXPECT_EQ(to_hex(pending(asks)), to_hex(asked.first(request_heard.taken)));
            send_all(asks);

            auto reply_heard = hear(asks, answered, 1448);
            ASSERT_EQ(reply_heard.event, StartupEvent::established);
            ASSERT_TRUE(answers.accept(wishes_behind(frame_of<wire::MpaReply>(answered)),
                                       asks.peer_private_data(), start));
            EXPECT_EQ(to_hex(pending(answers)), to_hex(answered.first(reply_heard.taken)));
            EXPECT_EQ(asks.terms().ready, answers.terms().ready);
            EXPECT_EQ(asks.terms().checksum, answers.terms().checksum);
        }
    }
    EXPECT_EQ(connections, 6u);
}

TEST(Startup, AsksSiwAsTheProbeDidThatFoundItsEcho) {
    Wishes wishes{.ready_by_send = false, .inbound_reads = 1, .outbound_reads = 1};
    auto startup = initiator(wishes);
    EXPECT_EQ(pending(startup), request("5c 02 0004 8001 c001"));
    send_all(startup);
    EXPECT_EQ(hear(startup, reply("5c 02 0004 8001 8001"), 100).event, StartupEvent::established);
    EXPECT_EQ(startup.terms(), (Terms{.checksum = true,
                                      .inbound_reads = 1,
                                      .outbound_reads = 1,
                                      .ready = ReadyMessage::write,
                                      .peer = Peer::siw}));
}

}  // namespace
}  // namespace weft::iwarp
