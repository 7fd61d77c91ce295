// SPDX-License-Identifier: Apache-2.0
// Octets as JSON can carry them (RFC 4648, the usual alphabet, padded).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/result.hpp"

namespace weft::store {

inline constexpr std::string_view base64_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Of anything whose elements are octets: std::byte, char.
std::string to_base64(const auto& octets) {
    std::string text;
    for (std::size_t at = 0; at < octets.size(); at += 3) {
        const std::size_t count = std::min<std::size_t>(3, octets.size() - at);
        std::uint32_t word = 0;
        for (std::size_t i = 0; i < 3; ++i)
            word = word << 8 | (i < count ? static_cast<std::uint8_t>(octets[at + i]) : 0u);
        for (std::size_t i = 0; i < 4; ++i)
            text += i <= count ? base64_alphabet[word >> (18 - 6 * i) & 63] : '=';
    }
    return text;
}

/// `malformed`: it is no base64, or not padded.
inline Result<std::vector<std::byte>> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return Error{.code = Code::malformed};
    std::vector<std::byte> octets;
    for (std::size_t at = 0; at < text.size(); at += 4) {
        const bool last = at + 4 == text.size();
        std::size_t padding = 0;
        while (last && padding < 2 && text[at + 3 - padding] == '=') ++padding;
        std::uint32_t word = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            const auto digit = i + padding >= 4 ? 0 : base64_alphabet.find(text[at + i]);
            if (digit == std::string_view::npos)
                return Error{.code = Code::malformed, .where = static_cast<std::uint32_t>(at + i)};
            word = word << 6 | static_cast<std::uint32_t>(digit);
        }
        for (std::size_t i = 0; i + padding < 3; ++i)
            octets.push_back(static_cast<std::byte>(word >> (16 - 8 * i) & 0xff));
    }
    return octets;
}

}  // namespace weft::store
