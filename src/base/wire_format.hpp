// SPDX-License-Identifier: Apache-2.0
// How a header is described once and then read, written, measured and printed from that
// one description. wire/*.hpp hold the descriptions; nothing else in the house knows offsets.
//
//     static constexpr void describe(auto& v, auto& h) {
//         v.pack(bits<1>("final", h.final), reserved<7>);  // runs of bits, whole octets together
//         v("offset", h.offset);                           // a number or an enum, big-endian
//         v("address", h.address);                         // std::array<std::uint8_t, N>, as is
//         v.nested("lun", h.lun);                          // another described header
//     }
//
// A decoder takes any value of an enumeration (an unknown opcode is the engine's business) and
// parts of variable length are decoded by a second, explicit step over a span.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "weft/result.hpp"

namespace weft {

template <class T>
concept Field = std::is_enum_v<T> || std::is_unsigned_v<T>;

template <std::size_t Count>
using Octets = std::array<std::uint8_t, Count>;

/// A run of bits inside a big-endian word, most significant first.
template <unsigned Width, class T>
struct Bits {
    const char* name;
    T& value;
};
template <unsigned Width, class T>
constexpr Bits<Width, T> bits(const char* name, T& value) {
    return {name, value};
}

/// Bits that must hold one value: written always, checked on reading.
template <unsigned Width>
struct Fixed {
    const char* name;
    std::uint64_t value;
};
template <unsigned Width>
constexpr Fixed<Width> fixed(const char* name, std::uint64_t value) {
    return {name, value};
}

/// Bits a sender sets to zero and a receiver ignores.
template <unsigned Width>
struct Reserved {};
template <unsigned Width>
inline constexpr Reserved<Width> reserved{};

template <class P>
struct WidthOf;
template <unsigned W, class T>
struct WidthOf<Bits<W, T>> : std::integral_constant<unsigned, W> {};
template <unsigned W>
struct WidthOf<Fixed<W>> : std::integral_constant<unsigned, W> {};
template <unsigned W>
struct WidthOf<Reserved<W>> : std::integral_constant<unsigned, W> {};

template <class... Parts>
inline constexpr unsigned total_width = (WidthOf<std::remove_cvref_t<Parts>>::value + ...);

template <unsigned Width>
inline constexpr std::uint64_t low_bits = Width >= 64 ? ~0ull : (1ull << (Width % 64)) - 1;

/// Counts octets.
struct Sizer {
    std::size_t size = 0;

    constexpr void operator()(const char*, const Field auto& field) { size += sizeof field; }
    template <std::size_t Count>
    constexpr void operator()(const char*, const Octets<Count>&) {
        size += Count;
    }
    template <class Header>
    constexpr void nested(const char*, const Header& header) {
        Header::describe(*this, header);
    }
    template <class... Parts>
    constexpr void pack(const Parts&...) {
        static_assert(total_width<Parts...> % 8 == 0, "a packed group must fill whole octets");
        static_assert(total_width<Parts...> <= 64, "a packed group fits one 64-bit word");
        size += total_width<Parts...> / 8;
    }
};

template <class Header>
consteval std::size_t wire_size() {
    Sizer sizer;
    Header header{};
    Header::describe(sizer, header);
    return sizer.size;
}

/// Fills a header from octets. The first broken rule sticks, with the place it was found.
class Reader {
public:
    constexpr explicit Reader(ConstBuffer octets) : octets_(octets) {}

    template <Field T>
    constexpr void operator()(const char*, T& field) {
        field = static_cast<T>(take<sizeof(T)>());
    }
    template <std::size_t Count>
    constexpr void operator()(const char*, Octets<Count>& field) {
        for (auto& octet : field) octet = static_cast<std::uint8_t>(take<1>());
    }
    template <class Header>
    constexpr void nested(const char*, Header& header) {
        Header::describe(*this, header);
    }
    template <class... Parts>
    constexpr void pack(const Parts&... parts) {
        std::uint64_t word = take<total_width<Parts...> / 8>();
        unsigned left = total_width<Parts...>;
        (unpack(parts, word, left), ...);
    }

    constexpr Result<void> finish() const {
        if (broken_) return Error{.code = Code::malformed, .where = broken_at_};
        return {};
    }

private:
    template <std::size_t Count>
    constexpr std::uint64_t take() {
        at_ += Count;
        return load_big_endian<Count>(octets_.data() + at_ - Count);
    }
    template <unsigned W, class T>
    constexpr void unpack(const Bits<W, T>& part, std::uint64_t word, unsigned& left) {
        left -= W;
        part.value = static_cast<T>(word >> left & low_bits<W>);
    }
    template <unsigned W>
    constexpr void unpack(const Fixed<W>& part, std::uint64_t word, unsigned& left) {
        left -= W;
        if ((word >> left & low_bits<W>) == part.value || broken_) return;
        broken_ = true;
        broken_at_ = static_cast<std::uint32_t>(at_ - (left + W + 7) / 8);
    }
    template <unsigned W>
    constexpr void unpack(const Reserved<W>&, std::uint64_t, unsigned& left) {
        left -= W;
    }

    ConstBuffer octets_;
    std::size_t at_ = 0;
    bool broken_ = false;
    std::uint32_t broken_at_ = 0;
};

class Writer {
public:
    constexpr explicit Writer(Buffer octets) : octets_(octets) {}

    template <Field T>
    constexpr void operator()(const char*, const T& field) {
        put<sizeof(T)>(static_cast<std::uint64_t>(field));
    }
    template <std::size_t Count>
    constexpr void operator()(const char*, const Octets<Count>& field) {
        for (auto octet : field) put<1>(octet);
    }
    template <class Header>
    constexpr void nested(const char*, const Header& header) {
        Header::describe(*this, header);
    }
    template <class... Parts>
    constexpr void pack(const Parts&... parts) {
        std::uint64_t word = 0;
        unsigned left = total_width<Parts...>;
        ((left -= WidthOf<Parts>::value, word |= raw(parts) << left), ...);
        put<total_width<Parts...> / 8>(word);
    }

private:
    template <unsigned W, class T>
    static constexpr std::uint64_t raw(const Bits<W, T>& part) {
        return static_cast<std::uint64_t>(part.value) & low_bits<W>;
    }
    template <unsigned W>
    static constexpr std::uint64_t raw(const Fixed<W>& part) {
        return part.value & low_bits<W>;
    }
    template <unsigned W>
    static constexpr std::uint64_t raw(const Reserved<W>&) {
        return 0;
    }
    template <std::size_t Count>
    constexpr void put(std::uint64_t word) {
        store_big_endian<Count>(word, octets_.data() + at_);
        at_ += Count;
    }

    Buffer octets_;
    std::size_t at_ = 0;
};

/// Renders "name=value name=value", for logs, golden files and the tcpdump-like tracer.
/// Octets are printed in hexadecimal, numbers in decimal; constants and reserved bits are left out.
class Printer {
public:
    std::string text;

    void operator()(const char* name, const Field auto& field) {
        say(name, std::to_string(static_cast<std::uint64_t>(field)));
    }
    template <std::size_t Count>
    void operator()(const char* name, const Octets<Count>& field) {
        constexpr char digits[] = "0123456789abcdef";
        std::string hex;
        for (auto octet : field) (hex += digits[octet >> 4]) += digits[octet & 15];
        say(name, hex);
    }
    template <class Header>
    void nested(const char* name, const Header& header) {
        Printer inner;
        Header::describe(inner, header);
        say(name, "{" + inner.text + "}");
    }
    void pack(const auto&... parts) { (part(parts), ...); }

private:
    void say(const char* name, const std::string& value) {
        if (!text.empty()) text += ' ';
        text += name, text += '=', text += value;
    }
    template <unsigned W, class T>
    void part(const Bits<W, T>& p) {
        say(p.name, std::to_string(static_cast<std::uint64_t>(p.value)));
    }
    template <unsigned W>
    void part(const Fixed<W>&) {}
    template <unsigned W>
    void part(const Reserved<W>&) {}
};

/// The four uses of a description: wire_size above, and these.
template <class Header>
constexpr Result<Header> decode(ConstBuffer octets) {
    if (octets.size() < wire_size<Header>())
        return Error{.code = Code::truncated, .where = static_cast<std::uint32_t>(octets.size())};
    Header header{};
    Reader reader(octets);
    Header::describe(reader, header);
    if (auto done = reader.finish(); !done) return done.error();
    return header;
}

template <class Header>
constexpr void encode(const Header& header, Buffer octets) {
    WEFT_CHECK(octets.size() >= wire_size<Header>());
    Writer writer(octets);
    Header::describe(writer, header);
}

/// The header as an array of its own, for tests and for building small messages.
template <class Header>
constexpr std::array<std::byte, wire_size<Header>()> encoded(const Header& header) {
    std::array<std::byte, wire_size<Header>()> octets{};
    encode(header, octets);
    return octets;
}

template <class Header>
std::string to_text(const Header& header) {
    Printer printer;
    Header::describe(printer, header);
    return printer.text;
}

}  // namespace weft
