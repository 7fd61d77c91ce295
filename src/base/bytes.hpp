// SPDX-License-Identifier: Apache-2.0
// Numbers as octets. The loops serve the compiler at compile time, the copies the machine.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "weft/buffer.hpp"

namespace weft {

template <std::size_t Count>
constexpr std::uint64_t load_big_endian(const std::byte* from) {
    static_assert(Count <= 8);
    if constexpr (Count == 2 || Count == 4 || Count == 8) {
        if (!std::is_constant_evaluated()) {
            std::uint64_t word = 0;
            std::memcpy(reinterpret_cast<std::byte*>(&word) + (8 - Count), from, Count);
            return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
        }
    }
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < Count; ++i)
        word = word << 8 | std::to_integer<std::uint64_t>(from[i]);
    return word;
}

template <std::size_t Count>
constexpr std::uint64_t load_little_endian(const std::byte* from) {
    static_assert(Count <= 8);
    std::uint64_t word = 0;
    for (std::size_t i = Count; i-- > 0;)
        word = word << 8 | std::to_integer<std::uint64_t>(from[i]);
    return word;
}

template <std::size_t Count>
constexpr void store_big_endian(std::uint64_t word, std::byte* to) {
    static_assert(Count <= 8);
    for (std::size_t i = Count; i-- > 0; word >>= 8) to[i] = static_cast<std::byte>(word);
}

template <std::size_t Count>
constexpr void store_little_endian(std::uint64_t word, std::byte* to) {
    static_assert(Count <= 8);
    for (std::size_t i = 0; i < Count; ++i, word >>= 8) to[i] = static_cast<std::byte>(word);
}

/// The octets of a text, without its terminator.
inline ConstBuffer bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

inline std::string_view text_of(ConstBuffer octets) {
    return {reinterpret_cast<const char*>(octets.data()), octets.size()};
}

constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) {
    return value - value % unit;
}
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
    return round_down(value + unit - 1, unit);
}

/// True if [offset, offset + length) lies within `size`, whatever the three numbers are.
constexpr bool within(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
    return length <= size && offset <= size - length;
}

}  // namespace weft
