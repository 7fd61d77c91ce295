// SPDX-License-Identifier: Apache-2.0
#include "node/array_address.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace weft::node {
namespace {

constexpr std::size_t mapped_prefix = 12;  ///< ten octets of zero and two of ones (RFC 4291)

template <class Number>
bool read(std::string_view text, int base, std::size_t digits_max, Number& number) {
    if (text.empty() || text.size() > digits_max) return false;
    auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    return fault == std::errc{} && end == text.data() + text.size();
}

std::optional<std::array<std::uint8_t, 4>> read_dotted(std::string_view text) {
    std::array<std::uint8_t, 4> octets{};
    for (std::size_t i = 0; i < octets.size(); ++i) {
        const auto end = i + 1 < octets.size() ? text.find('.') : text.size();
        if (end == std::string_view::npos || !read(text.substr(0, end), 10, 3, octets[i]))
            return std::nullopt;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return octets;
}

/// Groups between colons; the last may be an IPv4 address.
std::optional<std::vector<std::uint8_t>> read_groups(std::string_view text) {
    std::vector<std::uint8_t> octets;
    while (!text.empty()) {
        const auto colon = text.find(':');
        const auto group = text.substr(0, colon);
        if (auto dotted = read_dotted(group); dotted && colon == std::string_view::npos) {
            octets.insert(octets.end(), dotted->begin(), dotted->end());
            return octets;
        }
        std::uint16_t word = 0;
        if (!read(group, 16, 4, word)) return std::nullopt;
        octets.push_back(static_cast<std::uint8_t>(word >> 8));
        octets.push_back(static_cast<std::uint8_t>(word & 0xff));
        if (colon == std::string_view::npos) return octets;
        text.remove_prefix(colon + 1);
        if (text.empty()) return std::nullopt;
    }
    return octets;
}

}  // namespace

std::optional<Octets<16>> network_address_of(std::string_view host) {
    Octets<16> address{};
    if (auto dotted = read_dotted(host)) {
        address[10] = address[11] = 0xff;
        std::copy(dotted->begin(), dotted->end(), address.begin() + mapped_prefix);
        return address;
    }
    const auto gap = host.find("::");
    auto front = read_groups(host.substr(0, gap));
    if (!front) return std::nullopt;
    if (gap == std::string_view::npos) {
        if (front->size() != address.size()) return std::nullopt;
        std::copy(front->begin(), front->end(), address.begin());
        return address;
    }
    auto back = read_groups(host.substr(gap + 2));
    if (!back || front->size() + back->size() > address.size() - 2) return std::nullopt;
    std::copy(front->begin(), front->end(), address.begin());
    std::copy(back->begin(), back->end(),
              address.end() - static_cast<std::ptrdiff_t>(back->size()));
    return address;
}

std::string host_of(const Octets<16>& address) {
    const bool mapped = std::all_of(address.begin(), address.begin() + 10,
                                    [](std::uint8_t octet) { return octet == 0; }) &&
                        address[10] == 0xff && address[11] == 0xff;
    std::string text;
    if (mapped) {
        for (std::size_t i = mapped_prefix; i < address.size(); ++i)
            text += (i == mapped_prefix ? "" : ".") + std::to_string(address[i]);
        return text;
    }
    std::array<std::uint16_t, 8> words{};
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = static_cast<std::uint16_t>(address[2 * i] << 8 | address[2 * i + 1]);
    // The longest run of zeroes, if it is longer than one, becomes "::" (RFC 5952).
    std::size_t best = words.size(), best_length = 1;
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::size_t length = 0;
        while (i + length < words.size() && words[i + length] == 0) ++length;
        if (length > best_length) best = i, best_length = length;
    }
    for (std::size_t i = 0; i < words.size();) {
        if (i == best) {
            text += "::";
            i += best_length;
            continue;
        }
        if (!text.empty() && text.back() != ':') text += ':';
        std::array<char, 4> digits{};
        auto end = std::to_chars(digits.begin(), digits.end(), words[i], 16).ptr;
        text.append(digits.begin(), end);
        ++i;
    }
    return text;
}

std::string written(const Address& address) {
    const bool bracketed = address.host.find(':') != std::string::npos;
    return (bracketed ? "[" + address.host + "]" : address.host) + ":" +
           std::to_string(address.port);
}

}  // namespace weft::node
