// SPDX-License-Identifier: Apache-2.0
#include "scsi/unit_identity.hpp"

namespace weft::scsi {

namespace {

/// FNV-1a: short, and equal everywhere. Nobody is to be kept from guessing it.
std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (char letter : text) {
        hash ^= static_cast<unsigned char>(letter);
        hash *= 0x100000001b3;
    }
    return hash;
}

std::string hexadecimal(std::uint64_t number) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (std::size_t i = text.size(); i-- > 0; number >>= 4) text[i] = digits[number & 15];
    return text;
}

/// The upper four bits say: assigned by us alone.
constexpr std::uint64_t locally_assigned = 0x3000'0000'0000'0000;

}  // namespace

UnitIdentity derive_identity(const UnitOptions& options, std::string_view target,
                             std::uint32_t number) {
    std::string seed = options.seed;
    if (seed.empty()) seed = std::string(target) + "," + std::to_string(number);
    const auto hash = hash_of(seed);
    UnitIdentity identity;
    identity.network_address = options.identifier.value_or(locally_assigned | hash >> 4);
    identity.serial = options.serial.empty() ? hexadecimal(hash) : options.serial;
    return identity;
}

}  // namespace weft::scsi
