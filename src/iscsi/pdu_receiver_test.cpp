// SPDX-License-Identifier: Apache-2.0
#include "iscsi/pdu_receiver.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "support/deliver.hpp"
#include "wire/iscsi_command.hpp"

namespace weft::iscsi {
namespace {

using test::Bytes;

Bytes pattern(std::size_t size, unsigned start) {
    Bytes octets(size);
    for (std::size_t i = 0; i < size; ++i) octets[i] = static_cast<std::byte>(start + i);
    return octets;
}

void add_digest(Bytes& to, ConstBuffer of) {
    Bytes digest(4);
    store_little_endian<4>(crc32c(of), digest.data());
    to.insert(to.end(), digest.begin(), digest.end());
}

/// A PDU as it travels, made independently of the sender.
Bytes pdu_on_wire(const Bytes& data, std::size_t additional_words, Digests digests) {
    const wire::ScsiCommandPdu command{
        .final = true,
        .write = !data.empty(),
        .additional_header_words = static_cast<std::uint8_t>(additional_words),
        .data_length = static_cast<std::uint32_t>(data.size()),
        .task_tag = static_cast<wire::InitiatorTaskTag>(data.size() + 7)};
    Bytes pdu(wire::basic_header_size);
    encode(command, pdu);
    const Bytes additional = pattern(additional_words * 4, 0x80);
    pdu.insert(pdu.end(), additional.begin(), additional.end());
    if (digests.header) add_digest(pdu, Bytes(pdu));
    Bytes padded = data;
    padded.resize(round_up(data.size(), 4));
    pdu.insert(pdu.end(), padded.begin(), padded.end());
    if (digests.data && !data.empty()) add_digest(pdu, padded);
    return pdu;
}

/// What became of a stream: a line per event, and the memory data was placed in.
struct Outcome {
    std::vector<std::string> events;
    Bytes memory;

    bool operator==(const Outcome&) const = default;
};

/// Takes a stream and says by turns that data shall be placed in pieces, collected or discarded;
/// sometimes only after the stream has had to stop.
Outcome receive(ConstBuffer stream, Digests digests, std::size_t step) {
    PduReceiver receiver(512);
    receiver.use_digests(digests);
    receiver.limit_data_length(4096);
    Outcome outcome{.events = {}, .memory = Bytes(8192)};
    std::size_t placed = 0;
    std::vector<Buffer> places;
    unsigned turn = 0;
    auto say_where = [&] {
        const std::size_t size = receiver.data_length();
        switch (++turn % 3) {
            case 0:
                return receiver.discard();
            case 1: {
                if (receiver.can_collect(size)) return receiver.collect();
                return receiver.discard();
            }
            default:
                break;
        }
        const Buffer place = Buffer(outcome.memory).subspan(placed, size + 3);
        placed += size + 3;
        places = {place.first(3 + size / 2), place.subspan(3 + size / 2)};
        receiver.place(places, 3);
    };
    auto note = [&](const auto& result) {
        if (!result) {
            outcome.events.push_back("error");
            return;
        }
        if (!*result) return;
        if (const auto* header = std::get_if<PduHeader>(&**result)) {
            outcome.events.push_back("header " + test::to_hex(header->octets) + " " +
                                     test::to_hex(header->additional));
        } else if (const auto* data = std::get_if<PduData>(&**result)) {
            outcome.events.push_back(std::string(data->digest_good ? "good " : "bad ") +
                                     test::to_hex(data->collected));
        } else {
            outcome.events.push_back("header digest wrong");
        }
    };
    while (!stream.empty()) {
        const std::size_t taken = test::deliver(receiver, stream, step, note);
        stream = stream.subspan(taken);
        if (!receiver.waits_for_place()) break;
        EXPECT_TRUE(receiver.want().empty());
        say_where();
    }
    return outcome;
}

Bytes conversation(Digests digests) {
    Bytes stream;
    for (std::size_t size : {0u, 1u, 2u, 3u, 4u, 511u, 512u, 513u, 4096u, 48u, 0u, 31u}) {
        const Bytes pdu = pdu_on_wire(pattern(size, 1), size % 5 == 1 ? size % 7 + 1 : 0, digests);
        stream.insert(stream.end(), pdu.begin(), pdu.end());
    }
    return stream;
}

TEST(PduReceiver, GivesTheSameEventsAndMemoryHoweverTheStreamIsCut) {
    for (Digests digests :
         {Digests{}, Digests{true, false}, Digests{false, true}, Digests{true, true}}) {
        const Bytes stream = conversation(digests);
        const Outcome whole = receive(stream, digests, stream.size());
        EXPECT_EQ(whole.events.size(), 12u + 10u);
        for (std::size_t step : {1u, 2u, 3u, 5u, 47u, 48u, 49u, 52u, 100u, 1000u})
            EXPECT_EQ(receive(stream, digests, step), whole) << step;
    }
}

TEST(PduReceiver, PlacesDataWhereItIsToldAndNowhereElse) {
    PduReceiver receiver(16);
    const Bytes data = pattern(10, 0x30);
    const Bytes stream = pdu_on_wire(data, 0, {});
    Bytes memory(20);
    std::array<Buffer, 3> places{Buffer(memory).subspan(2, 4), Buffer(memory).subspan(8, 1),
                                 Buffer(memory).subspan(10, 9)};
    auto ignore = [](const auto&) {};
    const std::size_t headers = test::deliver(receiver, stream, 1, ignore);
    EXPECT_EQ(headers, wire::basic_header_size);
    receiver.place(places, 1);
    test::deliver(receiver, ConstBuffer(stream).subspan(headers), 3, ignore);
    EXPECT_EQ(test::to_hex(memory),
              test::to_hex(test::from_hex("00 00 00 30 31 32 00 00 33 00 34 35 36 37 38 39"
                                          "00 00 00 00")));
}

TEST(PduReceiver, TellsOfADamagedSegmentAndGoesOn) {
    const Digests digests{true, true};
    Bytes first = pdu_on_wire(pattern(9, 1), 0, digests);
    first[first.size() - 5] ^= std::byte{1};  // the padding is part of what is checked
    const Bytes second = pdu_on_wire(pattern(5, 1), 0, digests);
    const Outcome outcome = receive(test::join({first, second}), digests, 7);
    ASSERT_EQ(outcome.events.size(), 4u);
    EXPECT_TRUE(outcome.events[1].starts_with("bad "));
    EXPECT_TRUE(outcome.events[3].starts_with("good"));
}

TEST(PduReceiver, BelievesNothingAfterADamagedHeader) {
    const Digests digests{true, true};
    for (std::size_t octet : {0u, 6u, 47u, 50u, 53u}) {
        Bytes stream = test::join(
            {pdu_on_wire(pattern(3, 1), 1, digests), pdu_on_wire(pattern(3, 1), 1, digests)});
        stream[octet] ^= std::byte{4};
        const Outcome outcome = receive(stream, digests, 1000);
        ASSERT_EQ(outcome.events.size(), 1u) << octet;
        EXPECT_EQ(outcome.events[0], "header digest wrong");
    }
}

TEST(PduReceiver, RefusesASegmentLongerThanTheLimit) {
    const Outcome good = receive(pdu_on_wire(pattern(4096, 0), 0, {}), {}, 4096);
    EXPECT_EQ(good.events.size(), 2u);
    const Outcome bad = receive(pdu_on_wire(pattern(4097, 0), 0, {}), {}, 4096);
    ASSERT_EQ(bad.events.size(), 1u);
    EXPECT_EQ(bad.events[0], "error");
}

TEST(PduReceiver, TakesAsManyAdditionalHeadersAsTheLengthCanSay) {
    const Outcome outcome = receive(pdu_on_wire({}, 255, {true, true}), {true, true}, 100);
    ASSERT_EQ(outcome.events.size(), 1u);
    EXPECT_GT(outcome.events[0].size(), 2 * 255 * 4u);
}

}  // namespace
}  // namespace weft::iscsi
