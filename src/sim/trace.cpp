// SPDX-License-Identifier: Apache-2.0
#include "sim/trace.hpp"

namespace weft::sim {
namespace {

constexpr std::uint64_t fnv_prime = 0x100000001b3;

}  // namespace

void Trace::fold(std::uint64_t word) {
    for (int i = 0; i < 8; ++i, word >>= 8) hash_ = (hash_ ^ (word & 0xff)) * fnv_prime;
}

void Trace::note(Instant when, std::string_view kind, std::uint64_t subject, std::uint64_t size,
                 std::uint32_t crc) {
    for (char letter : kind) hash_ = (hash_ ^ static_cast<unsigned char>(letter)) * fnv_prime;
    fold(static_cast<std::uint64_t>(when.nanoseconds));
    fold(subject);
    fold(size);
    fold(crc);
    if (!sink_) return;
    std::string line = std::to_string(when.nanoseconds);
    line.append(" ").append(kind).append(" ").append(std::to_string(subject));
    if (size != 0) line.append(" size ").append(std::to_string(size));
    if (crc != 0) line.append(" crc ").append(std::to_string(crc));
    sink_(line);
}

}  // namespace weft::sim
