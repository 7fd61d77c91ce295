// SPDX-License-Identifier: Apache-2.0
#include "base/wire_format.hpp"

#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace weft {
namespace {

enum class Colour : std::uint16_t { red = 1, blue = 0x0203 };

struct Point {
    std::uint8_t x = 0;
    std::uint8_t y = 0;
    static constexpr void describe(auto& v, auto& h) {
        v("x", h.x);
        v("y", h.y);
    }
    bool operator==(const Point&) const = default;
};

struct Sample {
    bool last = false;
    std::uint32_t length = 0;
    Colour colour{};
    Octets<3> name{};
    Point at;
    std::uint64_t wide = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<3>("version", 5), bits<1>("last", h.last), reserved<4>,
               bits<24>("length", h.length));
        v("colour", h.colour);
        v("name", h.name);
        v.nested("at", h.at);
        v.pack(bits<40>("wide", h.wide));
    }
    bool operator==(const Sample&) const = default;
};
static_assert(wire_size<Sample>() == 16);

constexpr Sample sample{.last = true,
                        .length = 0x010203,
                        .colour = Colour::blue,
                        .name = {7, 8, 9},
                        .at = {.x = 1, .y = 2},
                        .wide = 0xa1a2a3a4a5};
static_assert(*decode<Sample>(encoded(sample)) == sample, "holds at compile time");

struct TwoConstants {
    static constexpr void describe(auto& v, auto&) {
        v.pack(reserved<16>);
        v.pack(fixed<8>("magic", 0x42));
        v.pack(fixed<8>("magic", 0x43));
    }
};

struct Magic {
    static constexpr void describe(auto& v, auto&) {
        v.pack(fixed<64>("magic", 0xfedcba9876543210));
    }
};

const auto octets = test::from_hex("b0 010203 0203 070809 01 02 a1a2a3a4a5");

TEST(WireFormat, ReadsAndWritesWhatWasDescribed) {
    EXPECT_EQ(*decode<Sample>(octets), sample);
    EXPECT_EQ(test::to_hex(encoded(sample)), test::to_hex(octets));
}

TEST(WireFormat, RefusesEveryTruncation) {
    for (std::size_t size = 0; size < octets.size(); ++size)
        EXPECT_EQ(decode<Sample>(std::span(octets).first(size)).error().code, Code::truncated);
}

TEST(WireFormat, RefusesABrokenConstantAndSaysWhere) {
    auto refused = decode<TwoConstants>(test::from_hex("0000 41 40"));
    EXPECT_EQ(refused.error(), (Error{.code = Code::malformed, .where = 2}));
}

TEST(WireFormat, IgnoresReservedBitsAndWritesThemAsZero) {
    auto dirty = octets;
    dirty[0] |= std::byte{0x0f};
    EXPECT_EQ(*decode<Sample>(dirty), sample);
}

TEST(WireFormat, HoldsConstantsOf64Bits) {
    EXPECT_EQ(test::to_hex(encoded(Magic{})), "fe dc ba 98 76 54 32 10");
    EXPECT_TRUE(decode<Magic>(encoded(Magic{})));
    EXPECT_FALSE(decode<Magic>(test::from_hex("fedcba9876543211")));
}

TEST(WireFormat, PrintsNamesAndValues) {
    EXPECT_EQ(to_text(sample),
              "last=1 length=66051 colour=515 name=070809 at={x=1 y=2} wide=694218368165");
}

}  // namespace
}  // namespace weft
