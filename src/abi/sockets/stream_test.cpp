// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>

namespace weft::abi::sockets {
namespace {

/// A stream with its memory, and a queue pair that ends whatever it is given at once. What it says
/// waits in `said` until deliver(): writes are seen before the messages that tell of them.
class Side final : public Carrier {
public:
    struct Sizes {
        std::uint32_t buffer = 8192;
        std::uint32_t entries = 32;
        std::uint16_t credits = 32;
        std::uint32_t mappings = 0;
    };

    explicit Side(const Sizes& sizes)
        : send_ring_(sizes.buffer),
          receive_ring_(sizes.buffer),
          slots_(StreamMemory::slots_size(sizes.mappings)),
          stream_(*this,
                  {.send_ring = send_ring_,
                   .receive_ring = receive_ring_,
                   .slots = slots_,
                   .receive_key = 1,
                   .slots_key = 2},
                  sizes.entries, sizes.credits) {}

    Stream& stream() { return stream_; }
    void begin(Side& peer) { ASSERT_TRUE(stream_.begin(peer.stream_.introduction())); }

    /// What this side has said is heard by the other.
    void deliver(Side& peer) {
        while (!said.empty()) {
            auto [message, receipt] = said.front();
            said.pop_front();
            stream_.done(receipt);
            peer.stream_.heard(message);
        }
    }
    /// As a call of an application's would: as much as goes.
    std::size_t send(ConstBuffer bytes) {
        std::size_t count = 0;
        while (count < bytes.size() && stream_.can_send()) {
            auto part = stream_.outgoing().next_transfer(bytes.size() - count);
            auto from = bytes.subspan(count, part);
            for (auto piece : stream_.outgoing().room(part)) {
                std::memcpy(piece.data(), from.data(), piece.size());
                from = from.subspan(piece.size());
            }
            EXPECT_TRUE(stream_.outgoing().send(part));
            count += part;
        }
        return count;
    }
    std::vector<std::byte> receive(std::size_t most) {
        std::vector<std::byte> bytes;
        for (auto piece : stream_.incoming().front(most))
            bytes.insert(bytes.end(), piece.begin(), piece.end());
        stream_.incoming().consume(bytes.size());
        stream_.grant();
        return bytes;
    }

    bool say(Message message, Receipt receipt) override {
        said.push_back({message, receipt});
        return !refuses;
    }
    bool write_and_say(std::span<const ConstBuffer> pieces, const Window& to, Message message,
                       Receipt receipt) override {
        place(pieces, to);
        return say(message, receipt);
    }
    bool write(std::span<const ConstBuffer> pieces, const Window& to, Receipt receipt) override {
        place(pieces, to);
        stream_.done(receipt);
        return !refuses;
    }

    std::deque<std::pair<Message, Receipt>> said;
    bool refuses = false;

private:
    void place(std::span<const ConstBuffer> pieces, const Window& to) {
        auto* at = reinterpret_cast<std::byte*>(to.address);
        for (auto piece : pieces) at = std::ranges::copy(piece, at).out;
    }

    std::vector<std::byte> send_ring_, receive_ring_, slots_;
    Stream stream_;
};

struct Pair {
    explicit Pair(const Side::Sizes& sizes = {}) : left(sizes), right(sizes) {
        left.begin(right);
        right.begin(left);
    }
    void settle() {
        do {
            left.stream().grant();
            right.stream().grant();
            left.deliver(right);
            right.deliver(left);
        } while (!left.said.empty() || !right.said.empty());
    }
    Side left, right;
};

std::vector<std::byte> pattern(std::size_t size) {
    std::vector<std::byte> bytes(size);
    std::minstd_rand random(7);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
    return bytes;
}

TEST(Stream, IntroducesItselfAsRsocketsDo) {
    Side side({.buffer = 8192, .credits = 384, .mappings = 1});
    auto octets = encoded(side.stream().introduction());
    EXPECT_EQ(octets[0], std::byte{1});                      // version
    EXPECT_EQ(octets[1], std::byte{2});                      // has mappings, is little-endian
    EXPECT_EQ(load_big_endian<2>(&octets[2]), 384u);         // credits
    EXPECT_EQ(load_big_endian<4>(&octets[4]), 1u);           // mappings
    EXPECT_EQ(load_big_endian<4>(&octets[8 + 8]), 2u);       // key of the slots
    EXPECT_EQ(load_big_endian<4>(&octets[8 + 12]), 2u);      // slots for windows
    EXPECT_EQ(load_big_endian<4>(&octets[24 + 8]), 1u);      // key of the buffer
    EXPECT_EQ(load_big_endian<4>(&octets[24 + 12]), 4096u);  // half of it
}

TEST(Stream, RefusesWhoSpeaksAnotherLanguage) {
    Side side({}), peer({});
    auto introduction = peer.stream().introduction();
    auto other = introduction;
    other.version = 2;
    EXPECT_FALSE(side.stream().begin(other));
    other = introduction;
    other.flags ^= Introduction::big_endian;
    EXPECT_FALSE(side.stream().begin(other));
    other = introduction;
    other.slots.length = 1;
    EXPECT_FALSE(side.stream().begin(other));
    EXPECT_TRUE(side.stream().begin(introduction));
}

TEST(Stream, LendsTheSecondHalfAtOnce) {
    Pair pair;
    pair.left.stream().grant();
    ASSERT_EQ(pair.left.said.size(), 1u);
    EXPECT_EQ(pair.left.said[0].first, (Message{Topic::credits, 32}));
    EXPECT_EQ(pair.left.said[0].second.control_entries, 2);
    pair.left.stream().grant();
    EXPECT_EQ(pair.left.said.size(), 1u);
}

TEST(Stream, CarriesBytesInOrderHoweverTheyAreCut) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::minstd_rand random(seed);
        auto below = [&](std::size_t bound) { return random() % bound; };
        Pair pair({.buffer = static_cast<std::uint32_t>(4096 + 2 * below(4000)),
                   .entries = static_cast<std::uint32_t>(16 + below(20)),
                   .credits = static_cast<std::uint16_t>(16 + below(20))});
        auto bytes = pattern(200'000);
        std::vector<std::byte> arrived;
        std::size_t sent = 0;
        unsigned idle = 0;
        while (arrived.size() < bytes.size() && idle < 100) {
            auto before = sent + arrived.size();
            auto wanted = std::min(1 + below(3000), bytes.size() - sent);
            sent += pair.left.send(std::span(bytes).subspan(sent, wanted));
            if (below(2)) pair.left.deliver(pair.right);
            auto some = pair.right.receive(1 + below(6000));
            arrived.insert(arrived.end(), some.begin(), some.end());
            if (below(2)) pair.right.deliver(pair.left);
            pair.right.stream().grant();
            pair.left.stream().grant();
            idle = sent + arrived.size() == before ? idle + 1 : 0;
        }
        EXPECT_EQ(arrived, bytes) << "seed " << seed;
        pair.settle();
        EXPECT_TRUE(pair.left.stream().is_idle() && pair.right.stream().is_idle());
    }
}

TEST(Stream, KeepsSomeCreditsForItsGrants) {
    Pair pair({.buffer = 65536, .entries = 1000, .credits = 40});
    pair.settle();
    std::byte one{};
    std::size_t count = 0;
    while (pair.left.send({&one, 1}) == 1) ++count;
    EXPECT_EQ(count, 40u - limits::credit_reserve);
    // And goes on when half of them have been read.
    pair.left.deliver(pair.right);
    pair.right.receive(20);
    pair.right.deliver(pair.left);
    EXPECT_TRUE(pair.left.stream().can_send());
}

TEST(Stream, CannotBeMadeToAcceptMoreThanItLent) {
    Pair pair;
    pair.right.stream().heard({Topic::data, 4097});
    EXPECT_TRUE(pair.right.stream().is_broken());
    EXPECT_FALSE(pair.right.stream().is_connected());
}

TEST(Stream, CannotBeMadeToKeepMoreMessagesThanItAllowed) {
    Pair pair({.buffer = 8192, .entries = 32, .credits = 16});
    for (int i = 0; i < 16; ++i) pair.right.stream().heard({Topic::data, 1});
    EXPECT_FALSE(pair.right.stream().is_broken());
    pair.right.stream().heard({Topic::data, 1});
    EXPECT_TRUE(pair.right.stream().is_broken());
}

TEST(Stream, BreaksOnWordsWithoutMeaning) {
    for (auto topic : {1, 2, 3, 5}) {
        Pair pair;
        pair.right.stream().heard({static_cast<Topic>(topic), 0});
        EXPECT_TRUE(pair.right.stream().is_broken()) << topic;
    }
}

TEST(Stream, GivesWhatCameBeforeTheEnd) {
    Pair pair;
    pair.left.send(pattern(100));
    auto farewell = pair.left.stream().shut(Shutdown::both);
    ASSERT_EQ(farewell, Control::disconnect);
    pair.left.stream().say(*farewell);
    pair.left.deliver(pair.right);
    EXPECT_FALSE(pair.left.stream().is_connected());
    EXPECT_FALSE(pair.right.stream().is_connected());
    EXPECT_EQ(pair.right.receive(1000), pattern(100));
}

TEST(Stream, CanEndOneDirectionAfterTheOther) {
    Pair pair;
    auto& left = pair.left.stream();
    auto& right = pair.right.stream();
    ASSERT_EQ(left.shut(Shutdown::writing), Control::shutdown);
    left.say(Control::shutdown);
    pair.settle();
    EXPECT_FALSE(right.is_readable());
    EXPECT_TRUE(right.can_send());
    pair.right.send(pattern(10));
    pair.settle();
    EXPECT_EQ(pair.left.receive(10), pattern(10));
    ASSERT_EQ(right.shut(Shutdown::writing), Control::disconnect);
    right.say(Control::disconnect);
    pair.settle();
    EXPECT_FALSE(left.is_connected() || right.is_connected());
}

TEST(Stream, SaysNothingTwice) {
    Pair pair;
    EXPECT_EQ(pair.left.stream().shut(Shutdown::writing), Control::shutdown);
    EXPECT_EQ(pair.left.stream().shut(Shutdown::writing), std::nullopt);
    EXPECT_EQ(pair.left.stream().shut(Shutdown::both), Control::disconnect);
    EXPECT_EQ(pair.left.stream().shut(Shutdown::both), std::nullopt);
}

TEST(Stream, IsLostWhenTheQueuePairRefuses) {
    Pair pair;
    pair.left.refuses = true;
    pair.left.stream().grant();
    EXPECT_FALSE(pair.left.stream().is_connected());
}

TEST(Stream, IsBrokenWhenSomethingItSentDidNotArrive) {
    Pair pair;
    pair.left.stream().failed();
    EXPECT_TRUE(pair.left.stream().is_broken());
    EXPECT_FALSE(pair.left.stream().is_connected());
    pair.right.stream().lost();
    pair.right.stream().failed();
    EXPECT_FALSE(pair.right.stream().is_broken()) << "what is flushed after the end says nothing";
}

TEST(Stream, TellsMappingsAndFindsThem) {
    Pair pair({.mappings = 3});
    std::vector<std::byte> memory(500);
    ASSERT_EQ(pair.left.stream().peers_mapping_slots(), 3u);
    pair.left.stream().tell_mapping(
        2, {.offset = 1000, .memory = {reinterpret_cast<std::uintptr_t>(memory.data()), 9, 500}});
    pair.settle();
    auto& right = pair.right.stream();
    EXPECT_FALSE(right.find_mapping(999));
    EXPECT_FALSE(right.find_mapping(1500));
    auto found = right.find_mapping(1100);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->length, 400u);
    EXPECT_EQ(found->key, 9u);
    auto bytes = pattern(50);
    EXPECT_TRUE(right.outgoing().write_inline(bytes, *found));
    EXPECT_TRUE(std::ranges::equal(std::span(memory).subspan(100, 50), bytes));
}

TEST(Stream, BreaksOnAMappingItHasNoSlotFor) {
    Pair pair({.mappings = 3});
    pair.right.stream().heard({Topic::mapping, 3});
    EXPECT_TRUE(pair.right.stream().is_broken());
}

}  // namespace
}  // namespace weft::abi::sockets
