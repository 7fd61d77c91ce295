// SPDX-License-Identifier: Apache-2.0
// Memory that its owner needs again while peers may still be writing to it: the tag stays valid for
// their Writes, and what they write goes nowhere, wherever in a segment they are at that moment.
#include <random>

#include "support/memory_table_fixture.hpp"
#include "support/session_side.hpp"
#include "support/session_words.hpp"

namespace weft::iwarp {
namespace {

using test::FpduWriter;
using test::MemoryTableTest;
using test::pattern;
using test::SessionSide;
using enum MemoryFault;

class DiscardedTag : public MemoryTableTest {
protected:
    SteeringTag discarded() {
        auto tag = fast_register();
        EXPECT_TRUE(table.discard(tag, us));
        return tag;
    }
};

TEST_F(DiscardedTag, TakesRemoteWritesAndOpensNothingElse) {
    auto tag = discarded();
    auto nowhere = table.resolve(tag, base + 3, 61, Rights::remote_write, us);
    ASSERT_TRUE(nowhere);
    EXPECT_EQ(nowhere->size(), 61u);
    for (auto* octet : test::addresses(*nowhere))
        EXPECT_TRUE(octet < memory.data() || octet >= memory.data() + memory.size());
    for (auto asked : {Rights::local_read, Rights::local_write, Rights::remote_read,
                       Rights::remote_atomic, Rights::remote_write | Rights::remote_read})
        EXPECT_EQ(use(tag, base, 1, asked), invalid_tag);
}

TEST_F(DiscardedTag, ChecksKeyDomainRightsAndBoundsAsBefore) {
    auto tag = discarded();
    auto writes = [&](SteeringTag by, std::uint64_t offset, std::size_t size, Asker asker) {
        return use(by, offset, size, Rights::remote_write, asker);
    };
    EXPECT_EQ(writes(tag, base, 64, us), std::nullopt);
    EXPECT_EQ(writes(tag, base, 64, our_other_pair), std::nullopt);
    EXPECT_EQ(writes(with_key(tag, key(tag) + 1), base, 1, us), invalid_tag);
    EXPECT_EQ(writes(tag, base, 1, stranger), wrong_domain);
    EXPECT_EQ(writes(tag, base, 65, us), out_of_bounds);
    EXPECT_EQ(writes(tag, base - 1, 1, us), out_of_bounds);
    EXPECT_EQ(writes(tag, UINT64_MAX, 2, us), offset_wraps);
    const Rights none = Rights::local_read;
    EXPECT_EQ(writes(tag, base, 1, {us.domain, us.queue_pair, &none}), no_rights)
        << "a connection that is not proved writes nowhere either";
}

TEST_F(DiscardedTag, IsOneThatPeersMayWriteTo) {
    auto tag = *table.allocate(us.domain, 4);
    EXPECT_EQ(fault(table.discard(tag, us)), invalid_tag) << "it is closed";
    auto wanted = registration(tag);
    wanted.rights = Rights::remote_read | Rights::local_write;
    ASSERT_TRUE(table.fast_register(wanted, us));
    EXPECT_EQ(fault(table.discard(tag, us)), no_rights);
    EXPECT_EQ(use(tag, base, 1), std::nullopt) << "a refusal changes nothing";
    EXPECT_EQ(fault(table.discard(fast_register(), stranger)), wrong_domain);
    EXPECT_EQ(fault(table.discard(add_all(), us)), cannot_invalidate) << "not an allocated one";
}

TEST_F(DiscardedTag, IsHeldForAsLongAsBytesAreLent) {
    auto tag = fast_register();
    auto lent = *table.resolve(tag, base, 64, Rights::remote_read, us);
    auto held = table.hold(tag);
    std::vector<SteeringTag> released;
    table.on_last_release([&](SteeringTag each) { released.push_back(each); });
    ASSERT_TRUE(table.discard(tag, us));
    EXPECT_TRUE(table.is_held(tag));
    EXPECT_EQ(test::addresses(lent), memory_from(0, 64));
    table.release(held);
    EXPECT_FALSE(table.is_held(tag));
    EXPECT_EQ(released, std::vector{tag}) << "its owner has waited for that";
    EXPECT_EQ(use(tag, base, 1, Rights::remote_write), std::nullopt);
}

TEST_F(DiscardedTag, EndsWhenItIsInvalidatedOrRemoved) {
    auto tag = discarded();
    EXPECT_EQ(fault(table.fast_register(registration(tag), us)), already_open);
    auto before = table.revocations();
    ASSERT_TRUE(table.invalidate(tag, us));
    EXPECT_EQ(table.revocations(), before + 1) << "a place that was found before is none any more";
    EXPECT_EQ(use(tag, base, 1, Rights::remote_write), invalid_tag);
    ASSERT_TRUE(table.fast_register(registration(tag), us));
    EXPECT_EQ(use(tag, base, 1), std::nullopt);
    ASSERT_TRUE(table.discard(tag, us));
    EXPECT_TRUE(table.discard(tag, us)) << "twice is as good as once";
    ASSERT_TRUE(table.remove(tag));
    EXPECT_EQ(use(tag, base, 1, Rights::remote_write), invalid_tag);
    EXPECT_EQ(table.size(), 0u);
}

// Writes that come in while their memory is given back to its owner.

struct Way {
    const char* name;
    bool checksum, markers;
    Placement placement;
};
constexpr std::array ways{Way{"straight", false, false, Placement::verified},
                          Way{"verified", true, false, Placement::verified},
                          Way{"eager", true, false, Placement::eager},
                          Way{"marked", true, true, Placement::verified}};

/// Of a connection that brings three Writes and a Send.
struct Latecomer {
    static constexpr std::uint64_t segment = 65'000, all = 3 * segment;
    static constexpr std::size_t kept = 190'000;  ///< octets of the arena that no Send comes into

    explicit Latecomer(const Way& way)
        : peer(way.checksum, way.markers), side(agreed(way), {.placement = way.placement}) {
        tag = *side.memory.allocate(SessionSide::us.domain, 4);
        const auto arena = Buffer(side.arena).subspan(0, kept);
        const std::array pieces{arena.subspan(1000, 2000), arena.subspan(4000, 1),
                                arena.subspan(5000, 180'000), Buffer(rest)};
        const verbs::FastRegistration opening{.tag = tag,
                                              .pieces = {pieces.begin(), pieces.end()},
                                              .address = 0,
                                              .rights = Rights::local_write | Rights::remote_write,
                                              .addressing = Addressing::from_zero};
        EXPECT_TRUE(side.memory.fast_register(opening, SessionSide::us));
        for (std::uint64_t at = 0; at < all; at += segment)
            peer.add(test::write_to(tag, at), pattern(segment, at));
        peer.add(test::send_header, pattern(9, 1));
        side.post_receive(kept, 10);
    }
    static Terms agreed(const Way& way) {
        auto made = test::terms(Role::responder);
        made.checksum = way.checksum;
        made.markers_in = way.markers;
        return made;
    }
    /// The owner has its memory again, and uses it.
    void take_memory_back() {
        ASSERT_TRUE(side.memory.discard(tag, SessionSide::us));
        std::ranges::copy(pattern(kept, 77), side.arena.begin());
        std::ranges::fill(rest, std::byte{0x77});
    }
    void expect_nothing_was_touched() const {
        const auto expected = pattern(kept, 77);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), side.arena.begin()));
        EXPECT_TRUE(rest == test::Bytes(rest.size(), std::byte{0x77}));
    }

    FpduWriter peer;
    SessionSide side;
    SteeringTag tag{};
    test::Bytes rest = test::Bytes(all - 182'001);
};

class LateWrite : public testing::TestWithParam<Way> {};

TEST_P(LateWrite, TouchesNothingAnyMoreWhereverItIsCut) {
    const auto size = Latecomer(GetParam()).peer.octets().size();
    std::mt19937 random(GetParam().name[0]);
    std::vector<std::size_t> cuts{0, 1, 2, 15, 16, 17, 65'015, 65'016, 65'017, 65'020, size - 1};
    for (int i = 0; i < 60; ++i) cuts.push_back(random() % size);
    for (auto cut : cuts) {
        SCOPED_TRACE(cut);
        Latecomer late(GetParam());
        const auto octets = ConstBuffer(late.peer.octets());
        late.side.hear(octets.first(cut), 1 + random() % 70'000);
        late.take_memory_back();
        late.side.hear(octets.subspan(cut), 1 + random() % 70'000);
        late.expect_nothing_was_touched();
        EXPECT_FALSE(late.side.failure) << "the connection goes on";
        ASSERT_EQ(late.side.received.size(), 1u) << "and what was sent behind the Writes is here";
        EXPECT_EQ(late.side.session().writes_received(), 3u);
    }
}

/// What every superseded read did before there was discard().
TEST_P(LateWrite, EndsTheConnectionIfItsTagIsClosed) {
    Latecomer late(GetParam());
    const auto octets = ConstBuffer(late.peer.octets());
    late.side.hear(octets.first(100));
    late.take_memory_back();
    late.side.hear(octets.subspan(100, 100'000));
    EXPECT_FALSE(late.side.failure);
    ASSERT_TRUE(late.side.memory.invalidate(late.tag, SessionSide::us));
    late.side.hear(octets.subspan(100'100));
    late.expect_nothing_was_touched();
    test::expect_failure(late.side, fault(wire::TaggedBufferError::invalid_steering_tag));
}

INSTANTIATE_TEST_SUITE_P(Ways, LateWrite, testing::ValuesIn(ways),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace weft::iwarp
