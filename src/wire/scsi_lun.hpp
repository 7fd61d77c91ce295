// SPDX-License-Identifier: Apache-2.0
// The eight octets that name a logical unit (SAM-5).
//
// The first two bits say how the number is written: 00 peripheral device (one octet of number), 01
// flat space (14 bits), 11 extended (here: extended flat space, 24 bits). One number may thus come
// in several spellings, so a target compares numbers and never octets.
#pragma once

#include <cstdint>

#include "weft/result.hpp"

namespace weft::wire {

/// A logical unit as it travels. The first octet on the wire is the most significant.
enum class LogicalUnit : std::uint64_t { first = 0 };

enum class LogicalUnitAddressing : std::uint8_t {
    peripheral_device = 0,
    flat_space = 1,
    logical_unit = 2,  ///< a bus behind a controller; nothing we know uses it
    extended = 3,
};

inline constexpr std::uint32_t max_peripheral_unit = 0xff;
inline constexpr std::uint32_t max_flat_unit = 0x3fff;
inline constexpr std::uint32_t max_extended_flat_unit = 0xffffff;
/// Length field 01b (four octets in all) and extended method 2: "extended flat space".
inline constexpr std::uint64_t extended_flat_mark = 0xd2;

constexpr LogicalUnitAddressing addressing_of(LogicalUnit unit) {
    return static_cast<LogicalUnitAddressing>(static_cast<std::uint64_t>(unit) >> 62);
}

/// The shortest spelling of a number, which is what every initiator sends.
constexpr Result<LogicalUnit> spell_logical_unit(std::uint32_t number) {
    auto wide = static_cast<std::uint64_t>(number);
    if (number <= max_peripheral_unit) return static_cast<LogicalUnit>(wide << 48);
    if (number <= max_flat_unit) return static_cast<LogicalUnit>((0x4000 | wide) << 48);
    if (number <= max_extended_flat_unit)
        return static_cast<LogicalUnit>((extended_flat_mark << 24 | wide) << 32);
    return Error{.code = Code::out_of_range, .where = number};
}

/// The number behind any of the spellings above. A bus number, a second level of addressing or a
/// well known logical unit has none here.
constexpr Result<std::uint32_t> number_of(LogicalUnit unit) {
    auto octets = static_cast<std::uint64_t>(unit);
    auto upper = static_cast<std::uint32_t>(octets >> 48);
    const bool single_level = (octets & 0xffff'ffff'ffff) == 0;
    switch (addressing_of(unit)) {
        case LogicalUnitAddressing::peripheral_device:
            if (!single_level || upper > max_peripheral_unit) break;
            return upper;
        case LogicalUnitAddressing::flat_space:
            if (!single_level) break;
            return upper & max_flat_unit;
        case LogicalUnitAddressing::extended:
            if (octets >> 56 != extended_flat_mark || (octets & 0xffff'ffff) != 0) break;
            return static_cast<std::uint32_t>(octets >> 32) & max_extended_flat_unit;
        case LogicalUnitAddressing::logical_unit:
            break;
    }
    return Error{.code = Code::unsupported, .where = upper};
}

}  // namespace weft::wire
