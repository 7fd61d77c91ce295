// SPDX-License-Identifier: Apache-2.0
// However the stream is cut, and whichever way its FPDUs are taken, the same segments come and the
// same memory results.
#include "iwarp/fpdu_receiver.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "iwarp/fault.hpp"
#include "support/deliver.hpp"
#include "support/fpdu_writer.hpp"
#include "support/recording_sink.hpp"
#include "support/seeds.hpp"

namespace weft::iwarp {
namespace {

using test::Bytes;
using test::deliver;
using test::FpduWriter;
using test::pattern;
using test::RecordingSink;
using wire::RdmapOpcode;

struct Waiter final : FpduBufferWaiter {
    void buffer_available() override { ++told; }
    int told = 0;
};

struct Mode {
    const char* name;
    FpduReceiverOptions options;
};
const std::array modes{
    Mode{"straight", {.checksum = false}},
    Mode{"eager", {.checksum = true, .placement = Placement::eager}},
    Mode{"verified", {.checksum = true}},
    Mode{"markers", {.checksum = true, .markers = true}},
    Mode{"markers, eager", {.checksum = true, .markers = true, .placement = Placement::eager}},
    Mode{"markers, no checksum", {.checksum = false, .markers = true}},
};

FpduWriter writer(const Mode& mode) {
    return {mode.options.checksum, mode.options.markers};
}
wire::TaggedSegment write_at(std::uint64_t offset) {
    return {.last = true,
            .opcode = RdmapOpcode::write,
            .steering_tag = SteeringTag{0x1234},
            .offset = wire::TaggedOffset{offset}};
}
wire::UntaggedSegment send(std::uint32_t number) {
    return {.last = true, .opcode = RdmapOpcode::send, .message_number = number};
}

/// A receiver and all it needs.
struct Receiving {
    explicit Receiving(const Mode& mode, std::size_t piece_size = 100'000,
                       std::size_t buffer_bytes = 1u << 20)
        : sink(piece_size),
          buffers(buffer_bytes, 0),
          receiver(sink, buffers, waiter, mode.options) {}

    /// Returns the fault, if there was one.
    std::optional<Error> take(ConstBuffer stream, std::size_t step) {
        std::optional<Error> fault;
        taken = deliver(receiver, stream, step, [&](Result<void> outcome) {
            if (!outcome) fault = outcome.error();
        });
        return fault;
    }
    /// The same of bytes that were read ahead of their places; counts those taken whole.
    std::optional<Error> take_ahead(ConstBuffer stream) {
        taken = 0;
        while (taken < stream.size()) {
            auto size = receiver.take_whole(stream.subspan(taken));
            if (!size) return size.error();
            whole_fpdus += *size > 0 ? 1 : 0;
            taken += *size;
            if (*size > 0) continue;
            Buffer place = receiver.want();
            if (place.empty()) return std::nullopt;
            auto count = std::min(place.size(), stream.size() - taken);
            std::memcpy(place.data(), stream.data() + taken, count);
            taken += count;
            if (auto outcome = receiver.filled(count); !outcome) return outcome.error();
        }
        return std::nullopt;
    }
    Bytes header() const {
        auto octets = receiver.segment().header_octets;
        return {octets.begin(), octets.end()};
    }

    RecordingSink sink;
    FpduBuffers buffers;
    Waiter waiter;
    FpduReceiver receiver;
    std::size_t taken = 0;
    std::size_t whole_fpdus = 0;
};

class FpduReceiverInMode : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, FpduReceiverInMode, testing::ValuesIn(modes), [](const auto& mode) {
    std::string name = mode.param.name;
    std::erase_if(name, [](char c) { return !std::isalpha(c); });
    return name;
});

constexpr std::size_t small_fpdu_payload = limits::small_fpdu - 20;  // tagged, with no padding
const std::array<std::size_t, 14> sizes{
    0,   1,   3,   4,    200,    small_fpdu_payload - 1, small_fpdu_payload, small_fpdu_payload + 1,
    255, 256, 257, 1442, 17'000, wire::ulpdu_limit - 14};

TEST_P(FpduReceiverInMode, PlacesPayloadsOfAnySizeHoweverTheStreamIsCut) {
    for (auto size : sizes) {
        SCOPED_TRACE(size);
        auto stream = writer(GetParam());
        auto payload = pattern(size, size);
        stream.add(send(1), pattern(5, 1));
        stream.add(write_at(10), payload);
        stream.add(send(2), {});
        for (std::size_t step : {1u, 2u, 3u, 7u, 16u, 20u, 64u, 509u, 1u << 20}) {
            Receiving receiving(GetParam());
            ASSERT_EQ(receiving.take(stream.octets(), step), std::nullopt) << step;
            EXPECT_EQ(receiving.taken, stream.octets().size());
            EXPECT_EQ(receiving.receiver.fpdu_count(), 3u);
            EXPECT_FALSE(receiving.receiver.is_amid_fpdu());
            EXPECT_EQ(receiving.sink.events.size(), 6u);
            auto expected = Bytes(80'000, std::byte{0xee});
            auto first = pattern(5, 1);
            std::copy(first.begin(), first.end(), expected.begin());
            std::copy(payload.begin(), payload.end(), expected.begin() + 10);
            ASSERT_TRUE(receiving.sink.memory == expected) << step;
            EXPECT_EQ(receiving.buffers.bytes_lent(), 0u);
        }
    }
}

TEST_P(FpduReceiverInMode, TakesRandomStreamsTheSameHoweverTheyAreCut) {
    test::for_each_seed(40, [&](std::uint64_t seed) {
        std::mt19937 chance(static_cast<std::uint32_t>(seed));
        auto stream = writer(GetParam());
        for (int i = 0; i < 12; ++i) {
            auto payload = pattern(chance() % (chance() % 4 == 0 ? 5000 : 600), chance());
            if (chance() % 2 == 0)
                stream.add(write_at(chance() % 70'000), payload);
            else
                stream.add(send(static_cast<std::uint32_t>(chance())), payload);
        }
        // One octet may be wrong: then the same fault must come, after the same segments.
        if (chance() % 3 == 0)
            stream.octets()[chance() % stream.octets().size()] ^= std::byte{0x40};
        auto piece_size = 1 + chance() % 3000;
        Receiving whole(GetParam(), piece_size), cut(GetParam(), piece_size);
        auto fault = whole.take(stream.octets(), stream.octets().size());
        std::optional<Error> cut_fault;
        for (std::size_t at = 0; at < stream.octets().size() && !cut_fault; at += cut.taken) {
            auto piece = ConstBuffer(stream.octets()).subspan(at);
            piece = piece.first(std::min<std::size_t>(piece.size(), 1 + chance() % 700));
            cut_fault = cut.take(piece, piece.size());
        }
        EXPECT_EQ(fault, cut_fault);
        EXPECT_EQ(whole.sink.events, cut.sink.events);
        EXPECT_EQ(whole.header(), cut.header());
        EXPECT_TRUE(whole.sink.memory == cut.sink.memory);

        Receiving ahead(GetParam(), piece_size);
        std::optional<Error> ahead_fault;
        for (std::size_t at = 0; at < stream.octets().size() && !ahead_fault; at += ahead.taken) {
            auto piece = ConstBuffer(stream.octets()).subspan(at);
            ahead_fault = ahead.take_ahead(
                piece.first(std::min<std::size_t>(piece.size(), 1 + chance() % 4000)));
        }
        EXPECT_EQ(fault, ahead_fault);
        EXPECT_EQ(whole.sink.events, ahead.sink.events);
        EXPECT_EQ(whole.header(), ahead.header());
        EXPECT_TRUE(whole.sink.memory == ahead.sink.memory);
        EXPECT_EQ(whole.receiver.fpdu_count(), ahead.receiver.fpdu_count());
    });
}

TEST_P(FpduReceiverInMode, TakesFpdusWholeWhereTheyWereReadAhead) {
    auto stream = writer(GetParam());
    stream.add(send(1), pattern(5, 1));
    stream.add(write_at(100), pattern(3000, 2));
    stream.add(send(2), {});
    bool can = !GetParam().options.markers && (!GetParam().options.checksum ||
                                               GetParam().options.placement == Placement::verified);
    // The last one without its last octet: it is to be waited for.
    Receiving receiving(GetParam());
    auto octets = ConstBuffer(stream.octets());
    EXPECT_EQ(receiving.take_ahead(octets.first(octets.size() - 1)), std::nullopt);
    EXPECT_EQ(receiving.whole_fpdus, can ? 2u : 0u);
    EXPECT_TRUE(receiving.receiver.is_amid_fpdu());
    EXPECT_EQ(receiving.take_ahead(octets.last(1)), std::nullopt);
    EXPECT_EQ(receiving.receiver.fpdu_count(), 3u);
    EXPECT_EQ(receiving.receiver.octet_count(), octets.size());
}

TEST_P(FpduReceiverInMode, WaitsWithWhatWasReadAheadUntilTheSinkIsReady) {
    auto stream = writer(GetParam());
    stream.add(send(1), pattern(200, 3));
    stream.add(send(2), pattern(3, 4));
    Receiving receiving(GetParam());
    receiving.sink.not_yet = 2;
    EXPECT_EQ(receiving.take_ahead(stream.octets()), std::nullopt);
    auto taken = receiving.taken;
    while (receiving.receiver.is_stalled()) EXPECT_TRUE(receiving.receiver.resume());
    EXPECT_EQ(receiving.take_ahead(ConstBuffer(stream.octets()).subspan(taken)), std::nullopt);
    EXPECT_EQ(receiving.receiver.fpdu_count(), 2u);
    EXPECT_EQ(receiving.sink.events.size(), 2u + 4u) << "each began once it could, and once only";
    EXPECT_EQ(receiving.sink.memory[199], pattern(200, 3)[199]);
}

TEST(FpduReceiver, FindsEverySpoiltOctetByTheChecksum) {
    for (const auto& mode : modes) {
        if (!mode.options.checksum) continue;
        auto stream = writer(mode);
        stream.add(write_at(0), pattern(301, 1));
        std::size_t header_end = mode.options.markers ? 6 + 14 : 2 + 14;
        for (std::size_t at = header_end; at < stream.octets().size(); ++at) {
            auto spoilt = stream.octets();
            spoilt[at] ^= std::byte{1};
            Receiving receiving(mode);
            auto fault = receiving.take(spoilt, 50);
            ASSERT_EQ(fault, iwarp::fault(wire::MpaError::checksum)) << mode.name << at;
            bool placed = receiving.sink.memory[1] != std::byte{0xee};
            bool eager = mode.options.placement == Placement::eager && !mode.options.markers;
            EXPECT_EQ(placed, eager);
            EXPECT_EQ(receiving.receiver.fpdu_count(), 0u);
        }
    }
}

TEST_P(FpduReceiverInMode, RefusesLengthsTooSmallForAnyHeader) {
    for (std::size_t size = 0; size < 18; ++size) {
        for (bool tagged : {true, false}) {
            if (tagged && size >= 14) continue;
            auto stream = writer(GetParam());
            Bytes ulpdu(size);
            auto header = tagged ? test::octets_of(write_at(0)) : test::octets_of(send(1));
            std::copy_n(header.begin(), std::min(size, header.size()), ulpdu.begin());
            stream.add_ulpdu(ulpdu);
            stream.add(send(1), pattern(40, 1));
            Receiving receiving(GetParam());
            EXPECT_EQ(receiving.take(stream.octets(), 1), fault(wire::MpaError::framing))
                << size << tagged;
            EXPECT_TRUE(receiving.sink.events.empty());
        }
    }
}

TEST_P(FpduReceiverInMode, RefusesSuchLengthsThoughNothingFollows) {
    for (std::size_t size = 0; size < 14; ++size) {
        for (std::size_t step : {std::size_t{1}, std::size_t{2}, SIZE_MAX}) {
            auto stream = writer(GetParam());
            stream.add_ulpdu(Bytes(size));
            Receiving receiving(GetParam());
            EXPECT_EQ(receiving.take(stream.octets(), step), fault(wire::MpaError::framing))
                << size << " in steps of " << step;
        }
    }
}

TEST_P(FpduReceiverInMode, TellsTheVersionsOfTheTwoLayersApart) {
    struct Case {
        Bytes ulpdu;
        std::size_t octet;
        Error expected;
    };
    auto tagged = test::octets_of(write_at(0));
    auto untagged = test::octets_of(send(1));
    for (const auto& [ulpdu, octet, expected] :
         {Case{tagged, 0, fault(wire::TaggedBufferError::invalid_version)},
          Case{untagged, 0, fault(wire::UntaggedBufferError::invalid_version)},
          Case{tagged, 1, fault(wire::RemoteOperationError::invalid_version)},
          Case{untagged, 1, fault(wire::RemoteOperationError::invalid_version)}}) {
        auto wrong = ulpdu;
        wrong[octet] ^= octet == 0 ? std::byte{0x02} : std::byte{0x80};
        auto stream = writer(GetParam());
        stream.add_ulpdu(wrong);
        Receiving receiving(GetParam());
        EXPECT_EQ(receiving.take(stream.octets(), 5), expected);
        EXPECT_EQ(receiving.header(), wrong) << "a Terminate quotes it";
    }
}

TEST_P(FpduReceiverInMode, WaitsForASinkThatIsNotReady) {
    auto stream = writer(GetParam());
    stream.add(send(1), pattern(2000, 3));
    stream.add(send(2), pattern(3, 4));
    Receiving receiving(GetParam());
    receiving.sink.not_yet = 3;
    EXPECT_EQ(receiving.take(stream.octets(), 11), std::nullopt);
    auto taken = receiving.taken;
    EXPECT_TRUE(receiving.receiver.is_stalled());
    EXPECT_TRUE(receiving.receiver.is_amid_fpdu());
    EXPECT_TRUE(receiving.receiver.want().empty());
    EXPECT_TRUE(receiving.receiver.resume());
    EXPECT_TRUE(receiving.receiver.resume());
    EXPECT_TRUE(receiving.receiver.is_stalled());
    EXPECT_TRUE(receiving.receiver.resume());
    EXPECT_FALSE(receiving.receiver.is_stalled());
    EXPECT_TRUE(receiving.receiver.resume()) << "there is nothing to ask for again";
    EXPECT_EQ(receiving.take(ConstBuffer(stream.octets()).subspan(taken), 11), std::nullopt);
    EXPECT_EQ(receiving.receiver.fpdu_count(), 2u);
    EXPECT_EQ(receiving.sink.events.size(), 3u + 4u);
    EXPECT_EQ(receiving.sink.memory[1999], pattern(2000, 3)[1999]);
}

TEST_P(FpduReceiverInMode, IsNotStalledAnyMoreWhenTheSegmentEnds) {
    auto stream = writer(GetParam());
    stream.add(send(1), pattern(20, 3));
    Receiving receiving(GetParam());
    receiving.sink.not_yet = 1;
    // As an owner does that posts the next receive as soon as one ends.
    receiving.sink.at_end = [&] { EXPECT_TRUE(receiving.receiver.resume()); };
    receiving.take(stream.octets(), 100);
    auto taken = receiving.taken;
    EXPECT_TRUE(receiving.receiver.resume());
    EXPECT_EQ(receiving.take(ConstBuffer(stream.octets()).subspan(taken), 100), std::nullopt);
    EXPECT_EQ(receiving.sink.events.size(), 3u);
    EXPECT_EQ(receiving.receiver.fpdu_count(), 1u);
}

TEST_P(FpduReceiverInMode, QuotesTheHeaderOfASegmentThatFailsAtItsEnd) {
    auto stream = writer(GetParam());
    stream.add(write_at(7), pattern(700, 3));
    Receiving receiving(GetParam());
    auto why = fault(wire::RemoteProtectionError::cannot_invalidate);
    receiving.sink.refusal = why;
    EXPECT_EQ(receiving.take(stream.octets(), 100), why);
    EXPECT_EQ(receiving.header(), test::octets_of(write_at(7)));
    EXPECT_EQ(receiving.receiver.fpdu_count(), 0u);
}

TEST_P(FpduReceiverInMode, QuotesTheHeaderOfASegmentWhoseMemoryIsGone) {
    auto stream = writer(GetParam());
    stream.add(write_at(0), pattern(3000, 3));
    Receiving receiving(GetParam());
    EXPECT_EQ(receiving.take(ConstBuffer(stream.octets()).first(1500), 100), std::nullopt);
    receiving.sink.memory_is_gone = true;
    auto before = receiving.sink.memory;
    auto rest = ConstBuffer(stream.octets()).subspan(1500);
    EXPECT_EQ(receiving.take(rest, 100), receiving.sink.memory_gone());
    EXPECT_EQ(receiving.header(), test::octets_of(write_at(0)));
    EXPECT_TRUE(receiving.sink.memory == before);
}

TEST_P(FpduReceiverInMode, NeedsNoPoolForSmallFpdus) {
    auto stream = writer(GetParam());
    stream.add(write_at(0), pattern(200, 3));
    Receiving receiving(GetParam(), 100'000, FpduBuffers::largest);
    Waiter other;
    Buffer all = receiving.buffers.take(FpduBuffers::largest, other);
    EXPECT_EQ(receiving.take(stream.octets(), 100), std::nullopt);
    EXPECT_EQ(receiving.receiver.fpdu_count(), 1u);
    receiving.buffers.give_back(all);
}

TEST(FpduReceiver, WaitsForABufferAndTakesUpWhereItWas) {
    for (const auto& mode : {modes[2], modes[3]}) {
        auto stream = writer(mode);
        stream.add(write_at(0), pattern(30'000, 3));
        Receiving receiving(mode, 100'000, FpduBuffers::largest);
        Waiter other;
        Buffer all = receiving.buffers.take(FpduBuffers::largest, other);
        EXPECT_EQ(receiving.take(stream.octets(), 100), std::nullopt);
        auto taken = receiving.taken;
        EXPECT_LE(taken, 16u);
        EXPECT_TRUE(receiving.receiver.want().empty());
        EXPECT_FALSE(receiving.receiver.is_stalled());
        receiving.buffers.give_back(all);
        EXPECT_EQ(receiving.waiter.told, 1);
        EXPECT_EQ(receiving.take(ConstBuffer(stream.octets()).subspan(taken), 100), std::nullopt);
        EXPECT_EQ(receiving.receiver.fpdu_count(), 1u);
        EXPECT_EQ(receiving.sink.memory[29'999], pattern(30'000, 3)[29'999]);
    }
}

TEST(FpduReceiver, LeavesThePoolAsItWasWhenItGoes) {
    FpduBuffers buffers(FpduBuffers::largest, 0);
    RecordingSink sink(1000);
    Waiter first_waiter, second_waiter;
    auto stream = writer(modes[2]);
    stream.add(write_at(0), pattern(60'000, 3));
    auto first = std::make_unique<FpduReceiver>(sink, buffers, first_waiter, modes[2].options);
    auto second = std::make_unique<FpduReceiver>(sink, buffers, second_waiter, modes[2].options);
    auto ignore = [](Result<void>) {};
    deliver(*first, ConstBuffer(stream.octets()).first(2000), 2000, ignore);
    Waiter greedy;
    Buffer rest = buffers.take(4096, greedy);
    EXPECT_FALSE(rest.empty());
    EXPECT_EQ(deliver(*second, stream.octets(), 2000, ignore), 16u);
    EXPECT_TRUE(second_waiter.is_waiting_for_buffer);
    second.reset();
    EXPECT_FALSE(second_waiter.is_waiting_for_buffer);
    first.reset();
    EXPECT_EQ(second_waiter.told, 0) << "it is gone";
    buffers.give_back(rest);
    EXPECT_EQ(buffers.bytes_lent(), 0u);
}

TEST(FpduReceiver, RefusesMarkersThatPointElsewhere) {
    auto mode = modes[5];
    auto stream = writer(mode);
    stream.add(write_at(0), pattern(1200, 3));
    stream.octets()[512 + 3] ^= std::byte{4};
    Receiving receiving(mode);
    EXPECT_EQ(receiving.take(stream.octets(), 100), fault(wire::MpaError::framing));
    EXPECT_TRUE(receiving.sink.events.empty());
}

TEST(FpduReceiver, ReadsTheExamplesOfTheStandard) {
    // The figures are the first FPDU of a stream and one at octet 492 of it.
    FpduWriter stream(true, true);
    stream.add_raw(test::golden("iwarp/fpdu_rfc5044_figure5.hex"));
    stream.add(write_at(100), pattern(420, 1));
    ASSERT_EQ(stream.octets().size(), 492u);
    stream.add_raw(test::golden("iwarp/fpdu_rfc5044_figure6.hex"));
    Receiving receiving(modes[3]);
    EXPECT_EQ(receiving.take(stream.octets(), 9), std::nullopt);
    EXPECT_EQ(receiving.receiver.fpdu_count(), 3u);
    EXPECT_EQ(receiving.sink.events.back(), "end " + test::to_hex(test::octets_of(send(2))));
}

}  // namespace
}  // namespace weft::iwarp
