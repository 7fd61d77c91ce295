// SPDX-License-Identifier: Apache-2.0
// Two sessions back to back: whatever is asked of them in whatever order, however the bytes between
// them are cut, it is all done, in order, and no other byte of memory changes.
#include <gtest/gtest.h>

#include <random>

#include "iwarp/session.hpp"
#include "support/engine_driver.hpp"
#include "support/seeds.hpp"
#include "support/session_side.hpp"

namespace weft::iwarp {
namespace {

using test::Bytes;
using test::EngineDriver;
using test::pattern;
using test::SessionSide;
using wire::RdmapOpcode;

constexpr auto base = SessionSide::base;

struct Agreed {
    Terms initiator, responder;
};

Agreed agree(Terms initiator) {
    auto responder = initiator;
    initiator.role = Role::initiator;
    responder.role = Role::responder;
    responder.markers_in = initiator.markers_out;
    responder.markers_out = initiator.markers_in;
    responder.inbound_reads = initiator.outbound_reads;
    responder.outbound_reads = initiator.inbound_reads;
    return {initiator, responder};
}

class Pair {
public:
    Pair(const Terms& terms, const SessionOptions& options, std::uint64_t seed)
        : initiator(agree(terms).initiator, options),
          responder(agree(terms).responder, options),
          chance_(static_cast<std::uint32_t>(seed)) {
        initiator.on_wake = [this] { one_.wake(); };
        responder.on_wake = [this] { other_.wake(); };
        if (seed == 0) return;
        for (auto* driver : {&one_, &other_})
            driver->reads_ahead = [this] { return chance_() % 2 == 0; };
        for (auto* driver : {&one_, &other_})
            driver->cut = [this](std::size_t count) {
                auto most = chance_() % 3 == 0 ? count : std::min<std::size_t>(count, 100);
                return 1 + chance_() % most;
            };
    }

    /// Until nothing moves.
    void run() {
        for (bool moved = true; moved;) {
            one_.run_if_woken();
            other_.run_if_woken();
            auto there = one_.take_sent();
            auto back = other_.take_sent();
            moved = !there.empty() || !back.empty();
            if (!there.empty() && !other_.closed()) other_.receive(there);
            if (!back.empty() && !one_.closed()) one_.receive(back);
        }
    }
    bool closed() const { return one_.closed() && other_.closed(); }

    SessionSide initiator, responder;

private:
    std::mt19937 chance_;
    EngineDriver one_{initiator}, other_{responder};
};

Terms plain_terms() {
    return {.checksum = true, .inbound_reads = 4, .outbound_reads = 4, .peer = Peer::weft};
}

// Where in each side's memory things are.
constexpr std::size_t source_at = 0, target_at = 40'000, sink_at = 80'000, receive_at = 120'000,
                      counter_at = 199'992;
constexpr std::size_t part_size = 40'000;

/// One side's work and what it must have come to.
class Plan {
public:
    Plan(SessionSide& side, SessionSide& peer)
        : side_(side),
          peer_(peer),
          source_(peer.add_region(source_at, part_size, Rights::remote_read)),
          target_(
              peer.add_region(target_at, part_size, Rights::local_write | Rights::remote_write)),
          counter_(peer.add_region(counter_at, 8, Rights::local_write | Rights::remote_atomic)) {
        std::memset(peer.arena.data() + counter_at, 0, 8);
    }

    /// Memory as it is before the work, from which follows what it must be after.
    void begin() { ours_ = side_.arena, theirs_ = peer_.arena; }

    void add(std::mt19937& chance) {
        std::size_t size = chance() % (chance() % 4 == 0 ? 6000 : 300);
        auto bytes = pattern(size, chance());
        switch (chance() % 4) {
            case 0:
                return add_send(bytes, chance() % 2 == 0);
            case 1:
                return add_write(bytes);
            case 2:
                return add_read(static_cast<std::uint32_t>(size), chance() % 30'000);
            default:
                return add_atomic();
        }
    }
    void post_receives() {
        for (auto size : sends_) {
            peer_.post_receive(receive_at + receives_at_, size);
            receives_at_ += size;
        }
        sends_.clear();
    }

    void check(Plan& other) {
        EXPECT_FALSE(side_.failure);
        EXPECT_EQ(side_.works_sent, count_);
        EXPECT_EQ(side_.originals, originals_);
        ASSERT_EQ(peer_.received.size(), solicited_.size());
        for (std::size_t i = 0; i < solicited_.size(); ++i) {
            EXPECT_EQ(peer_.received[i].status, verbs::Status::success);
            EXPECT_EQ(peer_.received[i].solicited, solicited_[i]);
            EXPECT_EQ(peer_.received[i].bytes, sizes_[i]);
        }
        // What the other did in our memory is its to say, in its part of it.
        for (auto part : {target_at, receive_at})
            std::copy_n(other.theirs_.begin() + static_cast<std::ptrdiff_t>(part), part_size,
                        ours_.begin() + static_cast<std::ptrdiff_t>(part));
        std::memcpy(ours_.data() + counter_at, other.theirs_.data() + counter_at, 8);
        EXPECT_TRUE(side_.arena == ours_);
    }

private:
    void add_send(const Bytes& bytes, bool solicited) {
        if (sent_ + bytes.size() > part_size) return;
        side_.post_send(bytes, solicited ? RdmapOpcode::send_solicited : RdmapOpcode::send);
        put(theirs_, receive_at + sent_, bytes);
        sends_.push_back(static_cast<std::uint32_t>(bytes.size()));
        sizes_.push_back(static_cast<std::uint32_t>(bytes.size()));
        solicited_.push_back(solicited);
        sent_ += bytes.size();
        ++count_;
    }
    void add_write(const Bytes& bytes) {
        if (written_ + bytes.size() > part_size) return;
        side_.post_write(target_, base + target_at + written_, bytes);
        put(theirs_, target_at + written_, bytes);
        written_ += bytes.size();
        ++count_;
    }
    void add_read(std::uint32_t size, std::size_t from) {
        if (read_ + size > part_size) return;
        side_.post_read(sink_at + read_, size, source_, base + source_at + from);
        auto first = peer_.arena.begin() + static_cast<std::ptrdiff_t>(source_at + from);
        put(ours_, sink_at + read_, Bytes(first, first + size));
        read_ += size;
        originals_.push_back(0);
        ++count_;
    }
    void add_atomic() {
        if (read_ + 8 > part_size) return;
        side_.post_atomic(sink_at + read_,
                          {.operation = wire::AtomicOperation::fetch_add,
                           .request_identifier = static_cast<std::uint32_t>(count_),
                           .remote_tag = counter_,
                           .remote_offset = wire::TaggedOffset{base + counter_at},
                           .add_or_swap = 3});
        Bytes original(8);
        std::memcpy(original.data(), &counted_, 8);
        put(ours_, sink_at + read_, original);
        read_ += 8;
        originals_.push_back(counted_);
        counted_ += 3;
        std::memcpy(theirs_.data() + counter_at, &counted_, 8);
        ++count_;
    }
    static void put(Bytes& memory, std::size_t at, const Bytes& bytes) {
        std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(at));
    }

    SessionSide& side_;
    SessionSide& peer_;
    SteeringTag source_, target_, counter_;
    Bytes ours_, theirs_;
    std::size_t count_ = 0, sent_ = 0, written_ = 0, read_ = 0, receives_at_ = 0;
    std::uint64_t counted_ = 0;
    std::vector<std::uint32_t> sends_, sizes_;
    std::vector<bool> solicited_;
    std::vector<std::uint64_t> originals_;
};

TEST(SessionPair, DoesAllItIsAskedForInEitherDirection) {
    test::for_each_seed(150, [](std::uint64_t seed) {
        std::mt19937 chance(static_cast<std::uint32_t>(seed * 77));
        constexpr std::array readies{ReadyMessage::none, ReadyMessage::send, ReadyMessage::write,
                                     ReadyMessage::read};
        auto terms = plain_terms();
        terms.checksum = chance() % 3 != 0;
        terms.markers_in = chance() % 4 == 0;
        terms.markers_out = chance() % 4 == 0;
        terms.inbound_reads = static_cast<std::uint16_t>(1 + chance() % 5);
        terms.outbound_reads = static_cast<std::uint16_t>(1 + chance() % 5);
        terms.ready = readies[chance() % readies.size()];
        SessionOptions options{.placement =
                                   chance() % 2 == 0 ? Placement::verified : Placement::eager};
        Pair pair(terms, options, seed);
        Plan there(pair.initiator, pair.responder), back(pair.responder, pair.initiator);
        there.begin();
        back.begin();
        bool late = chance() % 2 == 0;
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 12; ++i) {
                there.add(chance);
                back.add(chance);
            }
            if (late) pair.run();  // what was sent waits for its receive
            there.post_receives();
            back.post_receives();
            pair.run();
        }
        if (!pair.responder.spoke) {  // nothing was said to it that would let it speak
            pair.responder.tick(Instant{} + std::chrono::seconds(1));
            pair.responder.tick(Instant{} + std::chrono::seconds(2));
            pair.run();
        }
        there.check(back);
        back.check(there);
    });
}

TEST(SessionPair, KeepsNoMoreReadsUnderWayThanWereAgreedOn) {
    auto terms = plain_terms();
    terms.outbound_reads = 2;
    Pair pair(terms, {}, 0);
    auto tag = pair.responder.add_region(0, 1000, Rights::remote_read);
    for (std::uint32_t i = 0; i < 10; ++i)
        pair.initiator.post_read(sink_at + 100 * i, 100, tag, base + 100 * i);
    pair.initiator.say();
    EXPECT_EQ(pair.initiator.works_begun(), 2u);
}

TEST(SessionPair, EndsReadsInTheirOrderAndGoesOnAsTheyEnd) {
    auto terms = plain_terms();
    terms.outbound_reads = 2;
    Pair pair(terms, {}, 0);
    auto tag = pair.responder.add_region(0, 1000, Rights::remote_read);
    for (std::uint32_t i = 0; i < 10; ++i)
        pair.initiator.post_read(sink_at + 100 * i, 100, tag, base + 100 * i);
    pair.run();
    EXPECT_EQ(pair.initiator.originals.size(), 10u);
    EXPECT_FALSE(pair.initiator.failure);
    EXPECT_FALSE(pair.responder.failure);
    EXPECT_TRUE(std::equal(pair.responder.arena.begin(), pair.responder.arena.begin() + 1000,
                           pair.initiator.arena.begin() + sink_at));
}

TEST(SessionPair, CarriesImmediateDataBehindAWrite) {
    Pair pair(plain_terms(), {}, 0);
    auto tag = pair.responder.add_region(target_at, 1000, test::all_rights);
    pair.responder.post_receive(receive_at, 0);
    pair.responder.post_receive(receive_at, 0);
    pair.initiator.post_write(tag, base + target_at, pattern(70, 1));
    pair.initiator.post({RdmapOpcode::immediate_data, {}, 0, test::from_hex("01020304 00000000")});
    pair.initiator.post_write(tag, base + target_at, pattern(5, 1));
    pair.initiator.post(
        {RdmapOpcode::immediate_data_solicited, {}, 0, test::from_hex("0a0b0c0d 00000000")});
    pair.run();
    ASSERT_EQ(pair.responder.received.size(), 2u);
    for (const auto& outcome : pair.responder.received)
        EXPECT_EQ(outcome.what, verbs::Ended::received_immediate);
    EXPECT_EQ(pair.responder.received[0].immediate, 0x01020304u);
    EXPECT_EQ(pair.responder.received[0].bytes, 70u);
    EXPECT_FALSE(pair.responder.received[0].solicited);
    EXPECT_EQ(pair.responder.received[1].immediate, 0x0a0b0c0du);
    EXPECT_EQ(pair.responder.received[1].bytes, 5u);
    EXPECT_TRUE(pair.responder.received[1].solicited);
}

TEST(SessionPair, InvalidatesATagWithTheSendThatSaysSo) {
    Pair pair(plain_terms(), {}, 0);
    auto& responder = pair.responder;
    auto tag = *responder.memory.allocate(SessionSide::us.domain, 1);
    ASSERT_TRUE(responder.memory.fast_register({.tag = tag,
                                                .pieces = {Buffer(responder.arena)},
                                                .address = base,
                                                .rights = test::all_rights,
                                                .addressing = Addressing::by_address},
                                               SessionSide::us));
    responder.post_receive(receive_at, 100);
    pair.initiator.post_write(tag, base + target_at, pattern(70, 1));
    pair.initiator.post_send(pattern(10, 1), RdmapOpcode::send_invalidate, tag);
    pair.run();
    ASSERT_EQ(responder.received.size(), 1u);
    EXPECT_EQ(responder.received[0].invalidated, tag);
    EXPECT_FALSE(responder.failure);
    pair.initiator.post_write(tag, base + target_at, pattern(70, 1));
    pair.run();
    ASSERT_TRUE(responder.failure);
    EXPECT_EQ(responder.whose, FaultOf::us);
    ASSERT_TRUE(pair.initiator.failure) << "told by a Terminate";
    EXPECT_EQ(pair.initiator.whose, FaultOf::peer);
    EXPECT_EQ(pair.initiator.failure->error_code, responder.failure->error_code);
    EXPECT_TRUE(pair.closed());
}

TEST(SessionPair, ScattersAMessageOverThePiecesOfItsReceive) {
    Pair pair(plain_terms(), {}, 0);
    auto& responder = pair.responder;
    auto other = responder.add_region(receive_at, 10'000, Rights::local_write);
    responder.post_receive({{base + receive_at, 3, responder.local_tag()},
                            {base + receive_at + 50, 0, other},
                            {base + receive_at + 100, 5000, other},
                            {base + receive_at + 6000, 100, responder.local_tag()}});
    auto bytes = pattern(5010, 4);
    auto expected = responder.arena;
    auto at = [&](std::size_t offset) {
        return expected.begin() + static_cast<std::ptrdiff_t>(receive_at + offset);
    };
    std::copy_n(bytes.begin(), 3, at(0));
    std::copy_n(bytes.begin() + 3, 5000, at(100));
    std::copy_n(bytes.begin() + 5003, 7, at(6000));
    pair.initiator.post_send(bytes);
    pair.run();
    EXPECT_TRUE(responder.arena == expected);
}

}  // namespace
}  // namespace weft::iwarp
