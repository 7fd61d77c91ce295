// SPDX-License-Identifier: Apache-2.0
#include "wire/checksum.hpp"

#include <bit>
#include <cstring>

#include "base/bytes.hpp"

namespace weft::wire {
namespace {

std::uint16_t fold(std::uint64_t sum) {
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(sum);
}

std::uint16_t swapped(std::uint16_t word) {
    return static_cast<std::uint16_t>(word << 8 | word >> 8);
}

/// The sum of a piece as big-endian words, the last one filled up with a zero octet. It is taken
/// four octets at a time in the machine's own order: the order of the octets of a one's complement
/// sum is that of its words, whatever it is (RFC 1071, 2B). 64 bits hold four billion carries.
std::uint16_t sum_of(ConstBuffer octets) {
    std::uint64_t sum = 0;
    for (; octets.size() >= 4; octets = octets.subspan(4)) {
        std::uint32_t word;
        std::memcpy(&word, octets.data(), 4);
        sum += word;
    }
    std::uint32_t rest = 0;
    if (!octets.empty()) std::memcpy(&rest, octets.data(), octets.size());
    auto folded = fold(sum + rest);
    return std::endian::native == std::endian::little ? swapped(folded) : folded;
}

}  // namespace

void InternetChecksum::add(ConstBuffer octets) {
    auto sum = sum_of(octets);
    // A piece that begins in the middle of a word has its octets in the other halves.
    sum_ = fold(std::uint64_t{sum_} + (odd_ ? swapped(sum) : sum));
    odd_ ^= octets.size() % 2 != 0;
}

}  // namespace weft::wire
