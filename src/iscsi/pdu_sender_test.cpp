// SPDX-License-Identifier: Apache-2.0
#include "iscsi/pdu_sender.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "base/bytes.hpp"
#include "support/deliver.hpp"
#include "wire/iscsi_command.hpp"

namespace weft::iscsi {
namespace {

using test::Bytes;

/// A Data-In that goes in several parts, and writes down what happens to it.
struct Parcel final : OutgoingPdu {
    std::vector<Buffer> list;
    std::vector<std::uint32_t> lengths;
    std::size_t part = 0;
    std::uint32_t* counter = nullptr;
    std::string* log = nullptr;
    char letter = '?';

    void load() {
        data = list;
        data_length = lengths.empty() ? 0 : lengths[part];
        encode(wire::DataInPdu{.final = part + 1 >= lengths.size(),
                               .data_length = data_length,
                               .task_tag = static_cast<wire::InitiatorTaskTag>(letter),
                               .data_number = static_cast<std::uint32_t>(part)},
               header);
    }
    void about_to_go() override { store_big_endian<4>((*counter)++, header.data() + 24); }
    bool may_go_again() const override { return lengths.size() > 1; }
    Then gone() override {
        *log += letter;
        if (++part >= lengths.size()) return Then::done;
        data_skip += data_length;
        load();
        return Then::again;
    }
    void dropped() override { *log += '-', *log += letter; }
};

struct Fixture {
    PduSender sender;
    std::uint32_t counter = 100;
    std::string log;
    std::deque<Parcel> parcels;
    Bytes memory;

    Fixture() : memory(4000) {
        for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7);
    }
    void queue(char letter, std::vector<std::uint32_t> lengths, ConstBuffer additional) {
        Parcel& parcel = parcels.emplace_back();
        parcel.letter = letter;
        parcel.lengths = std::move(lengths);
        parcel.list = {Buffer(memory).first(5), Buffer(memory).subspan(100, 95),
                       Buffer(memory).subspan(1000, 3000)};
        parcel.counter = &counter;
        parcel.log = &log;
        parcel.load();
        parcel.additional = additional;
        parcel.header[4] = static_cast<std::byte>(additional.size() / 4);
        sender.queue(parcel);
    }
    /// All that the sender sends, taken `step` octets at a time through `room` pieces.
    Bytes drain(std::size_t step, std::size_t room) {
        Bytes stream;
        std::vector<ConstBuffer> pieces(room);
        while (const std::size_t used = sender.pending(pieces)) {
            std::size_t left = step;
            for (ConstBuffer piece : std::span(pieces).first(used)) {
                EXPECT_FALSE(piece.empty());
                piece = piece.first(std::min(piece.size(), left));
                stream.insert(stream.end(), piece.begin(), piece.end());
                left -= piece.size();
            }
            sender.sent(step - left);
        }
        return stream;
    }
};

struct Seen {
    std::vector<std::string> headers;
    std::vector<Bytes> data;
    bool good = true;
};

Seen read_back(ConstBuffer stream, Digests digests) {
    PduReceiver receiver(4096);
    receiver.use_digests(digests);
    Seen seen;
    while (!stream.empty()) {
        const auto taken = test::deliver(receiver, stream, 64, [&](const auto& result) {
            if (!result) seen.good = false;
            if (!result || !*result) return;
            if (const auto* header = std::get_if<PduHeader>(&**result)) {
                seen.headers.push_back(test::to_hex(header->octets));
            } else if (const auto* data = std::get_if<PduData>(&**result)) {
                seen.good &= data->digest_good;
                seen.data.emplace_back(data->collected.begin(), data->collected.end());
            } else {
                seen.good = false;
            }
        });
        stream = stream.subspan(taken);
        if (receiver.waits_for_place()) receiver.collect();
        if (taken == 0 && receiver.want().empty()) break;
    }
    return seen;
}

TEST(PduSender, SendsWhatAReceiverReadsBackInPiecesOfAnySize) {
    const Bytes additional(8, std::byte{0x5a});
    for (Digests digests : {Digests{}, Digests{true, false}, Digests{true, true}}) {
        Bytes first;
        for (std::size_t step : {1u, 2u, 7u, 48u, 53u, 100000u}) {
            for (std::size_t room : {1u, 2u, 3u, 16u}) {
                Fixture fixture;
                fixture.sender.use_digests(digests);
                fixture.queue('a', {}, additional);
                fixture.queue('b', {1, 99, 400, 3}, {});
                fixture.queue('c', {7}, {});
                fixture.queue('d', {}, {});
                const Bytes stream = fixture.drain(step, room);
                EXPECT_EQ(fixture.log, "abbbbcd");
                EXPECT_EQ(fixture.sender.total_sent(), stream.size());
                EXPECT_TRUE(fixture.sender.empty());
                if (first.empty()) first = stream;
                EXPECT_EQ(stream, first);
            }
        }
        const Seen seen = read_back(first, digests);
        EXPECT_TRUE(seen.good);
        ASSERT_EQ(seen.headers.size(), 7u);
        ASSERT_EQ(seen.data.size(), 5u);
        EXPECT_EQ(seen.data[1].size(), 99u);
        // The numbers were given in the order of going: 100 is 0x64.
        EXPECT_NE(seen.headers[0].find("00 00 00 64"), std::string::npos);
        EXPECT_NE(seen.headers[6].find("00 00 00 6a"), std::string::npos);
    }
}

TEST(PduSender, LendsDataWhereItIs) {
    Fixture fixture;
    fixture.queue('x', {200}, {});
    std::array<ConstBuffer, 8> pieces;
    ASSERT_EQ(fixture.sender.pending(pieces), 4u);
    EXPECT_EQ(pieces[1].data(), fixture.memory.data());
    EXPECT_EQ(pieces[2].data(), fixture.memory.data() + 100);
    EXPECT_EQ(pieces[3].data(), fixture.memory.data() + 1000);
    EXPECT_EQ(pieces[3].size(), 100u);
}

TEST(PduSender, LendsSeveralSmallPdusAtOnceAndStampsEachOnce) {
    Fixture fixture;
    for (char letter : {'a', 'b', 'c'}) fixture.queue(letter, {}, {});
    std::array<ConstBuffer, 8> pieces;
    EXPECT_EQ(fixture.sender.pending(pieces), 3u);
    EXPECT_EQ(fixture.sender.pending(pieces), 3u);
    EXPECT_EQ(fixture.counter, 103u);
    fixture.sender.sent(48 + 10);
    EXPECT_EQ(fixture.log, "a");
    EXPECT_EQ(fixture.sender.pending(pieces), 2u);
    EXPECT_EQ(pieces[0].size(), 38u);
}

TEST(PduSender, GivesDigestsToWhatIsQueuedAfterTheyAreAgreedOn) {
    Fixture fixture;
    fixture.queue('a', {}, {});
    fixture.sender.use_digests({true, true});
    fixture.queue('b', {}, {});
    EXPECT_EQ(fixture.drain(1000, 8).size(), 48u + 52u);
}

TEST(PduSender, GivesEveryPduBackWhenTheStreamIsGone) {
    Fixture fixture;
    fixture.queue('a', {4, 4}, {});
    fixture.queue('b', {}, {});
    std::array<ConstBuffer, 8> pieces;
    fixture.sender.pending(pieces);
    fixture.sender.sent(52);
    fixture.sender.drop_all();
    EXPECT_EQ(fixture.log, "a-a-b");
    EXPECT_EQ(fixture.sender.pending(pieces), 0u);
}

}  // namespace
}  // namespace weft::iscsi
