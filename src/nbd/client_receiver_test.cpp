// SPDX-License-Identifier: Apache-2.0
#include "nbd/client_receiver.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "support/deliver.hpp"
#include "support/nbd_messages.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;
using test::Bytes;

struct Heard {
    std::vector<std::string> events;
    Bytes memory;
    std::optional<Code> refused;
    std::size_t taken = 0;

    bool operator==(const Heard&) const = default;
};

/// Drives a receiver as a client would: the ACK of GO begins replies; a simple reply to an odd
/// cookie has payload, five octets in two places; chunks have what their headers say.
class Listener {
public:
    Listener() { heard_.memory.resize(1 << 12); }

    Heard listen(ConstBuffer stream, const std::function<std::size_t()>& step) {
        std::size_t at = 0;
        while (at < stream.size() && !heard_.refused) {
            auto piece = stream.subspan(at, std::min(step(), stream.size() - at));
            at += test::deliver(receiver_, piece, piece.size(), [&](auto outcome) {
                if (!outcome)
                    heard_.refused = outcome.error().code;
                else if (*outcome)
                    std::visit([&](const auto& event) { hear(event); }, **outcome);
            });
        }
        heard_.taken = at;
        return heard_;
    }

private:
    void note(std::string words) { heard_.events.push_back(std::move(words)); }
    void place(std::size_t offset, std::size_t length) {
        Buffer memory = heard_.memory;
        pieces_ = {memory.first(3), Buffer{}, memory.subspan(100)};
        receiver_.expect_payload({pieces_, offset, length});
    }
    void hear(const Greeting& greeting) { note(to_text(greeting)); }
    void hear(const OptionReply& reply) {
        note(to_text(reply.header) + " " + test::to_hex(reply.data));
        if (reply.header.option == Option::export_name) receiver_.expect_body(10);
        if (reply.header.option == Option::go && reply.header.type == OptionReplyType::ack)
            receiver_.begin_replies();
    }
    void hear(const SimpleReply& reply) {
        note(to_text(reply));
        if (reply.cookie % 2 != 0) place(1, 5);
    }
    void hear(const ChunkHeader& chunk) {
        note(to_text(chunk));
        chunk_ = chunk;
        if (chunk.type == ChunkType::offset_data)
            receiver_.expect_body(wire_size<DataOffset>());
        else if (chunk.length > 0)
            receiver_.expect_body(chunk.length);
    }
    void hear(const ReplyBody& body) {
        note("body " + test::to_hex(body.data));
        if (chunk_.type == ChunkType::offset_data && body.data.size() == wire_size<DataOffset>())
            place(0, chunk_.length - wire_size<DataOffset>());
    }
    void hear(const PayloadPlaced&) { note("payload"); }

    ClientReceiver receiver_;
    Heard heard_;
    ChunkHeader chunk_;
    std::array<Buffer, 3> pieces_;
};

Heard listen(ConstBuffer stream, std::size_t step) {
    return Listener().listen(stream, [&] { return step; });
}

void hears_the_same(ConstBuffer stream, const Heard& expected) {
    for (std::size_t step = 1; step <= 64; ++step) {
        SCOPED_TRACE("step " + std::to_string(step));
        ASSERT_TRUE(listen(stream, step) == expected);
    }
    for (std::uint32_t seed = 1; seed <= 50; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 chance(seed);
        auto random_step = [&] { return 1 + chance() % (chance() % 4 == 0 ? 500 : 40); };
        ASSERT_TRUE(Listener().listen(stream, random_step) == expected);
    }
}

TEST(ClientReceiver, HearsTheSameHoweverTheStreamIsCut) {
    auto stream = test::join(
        {encoded(Greeting{true, true}),
         test::option_reply(Option::structured_reply, OptionReplyType::ack, {}),
         test::option_reply(Option::list, OptionReplyType::server, Bytes(3000, std::byte{7})),
         test::option_reply(Option::go, OptionReplyType::ack, {}),
         encoded(SimpleReply{ErrorNumber::none, 2}), encoded(SimpleReply{ErrorNumber::none, 3}),
         test::from_hex("0102030405"),
         encoded(ChunkHeader{false, ChunkType::offset_hole, 4, wire_size<HoleRange>()}),
         encoded(HoleRange{5, 6}), encoded(ChunkHeader{true, ChunkType::offset_data, 4, 8 + 1000}),
         encoded(DataOffset{77}), Bytes(1000, std::byte{0x5a}),
         encoded(ChunkHeader{true, ChunkType::none, 5, 0}),
         encoded(SimpleReply{ErrorNumber::io, 6})});
    auto expected = listen(stream, stream.size());
    EXPECT_EQ(expected.refused, std::nullopt);
    EXPECT_EQ(expected.taken, stream.size());
    EXPECT_EQ(expected.events.size(), 14u);
    EXPECT_EQ(expected.memory[2], std::byte{0x5a});
    EXPECT_EQ(expected.memory[3], std::byte{0}) << "between the pieces nothing is placed";
    EXPECT_EQ(expected.memory[100 + 996], std::byte{0x5a});
    EXPECT_EQ(expected.memory[100 + 997], std::byte{0});
    hears_the_same(stream, expected);
}

TEST(ClientReceiver, HearsARecordedSessionOfQemuNbd) {
    auto stream = test::golden("nbd/session_qemu_io.server.hex");
    auto expected = listen(stream, stream.size());
    EXPECT_EQ(expected.refused, std::nullopt);
    EXPECT_EQ(expected.taken, stream.size());
    hears_the_same(stream, expected);
}

TEST(ClientReceiver, TakesTheEndOfAnOldHandshakeForABody) {
    ClientReceiver receiver;
    std::vector<std::size_t> bodies;
    auto stream = test::join({encoded(Greeting{}), Bytes(134), encoded(SimpleReply{})});
    auto taken = test::deliver(receiver, stream, 50, [&](auto outcome) {
        ASSERT_TRUE(outcome.has_value());
        if (!*outcome) return;
        if (std::holds_alternative<Greeting>(**outcome)) receiver.expect_body(134);
        if (auto* body = std::get_if<ReplyBody>(&**outcome)) bodies.push_back(body->data.size());
    });
    EXPECT_EQ(taken, stream.size());
    EXPECT_EQ(bodies, std::vector<std::size_t>{134});
}

TEST(ClientReceiver, RefusesWrongMagicsHoweverTheyAreCut) {
    auto greeting = encoded(Greeting{true, true});
    auto ack = test::option_reply(Option::go, OptionReplyType::ack, {});
    for (const auto& stream :
         {Bytes(40), test::join({greeting, Bytes(40)}), test::join({greeting, ack, Bytes(40)})}) {
        auto expected = listen(stream, stream.size());
        EXPECT_EQ(expected.refused, Code::malformed);
        hears_the_same(stream, expected);
    }
}

TEST(ClientReceiver, RefusesAnOptionReplyTooLongToKeep) {
    OptionReplyHeader header{Option::list, OptionReplyType::server, ClientReceiver::body_max + 1};
    auto stream = test::join({encoded(Greeting{true, true}), encoded(header), Bytes(10)});
    EXPECT_EQ(listen(stream, 99).refused, Code::out_of_range);
    hears_the_same(stream, listen(stream, 1));
}

}  // namespace
}  // namespace weft::nbd
