// SPDX-License-Identifier: Apache-2.0
// Which write a block is as of: what tells, of two that do not agree, the older from the newer.
//
// A version is the number of the transaction that wrote, so it rises: within an epoch by its count,
// over epochs by theirs, and writes to one row never overlap. What upkeep makes anew from the
// others has a version too, and is as new as they were, not newer: it says so.
#pragma once

#include <array>

#include "raid/bands.hpp"
#include "raid/code.hpp"
#include "wire/array_identity.hpp"

namespace weft::raid {

enum class Version : std::uint64_t {};  ///< 0: never written

constexpr Version version_of(wire::TransactionNumber transaction, bool restored) {
    return Version{static_cast<std::uint64_t>(transaction) << 1 | (restored ? 1 : 0)};
}
constexpr bool is_restored(Version version) {
    return (static_cast<std::uint64_t>(version) & 1) != 0;
}
constexpr std::uint64_t age_of(Version version) {
    return static_cast<std::uint64_t>(version) >> 1;
}

/// What a box remembers of one block of 4 KiB: of every data column of its row as of which write it
/// is in there. Of data that is itself alone, of a copy the first, of parity all.
struct Versions {
    bool kept = false;  ///< the box does keep them: if not, none of them says anything
    std::array<Version, data_columns_max> columns{};

    bool operator==(const Versions&) const = default;
};

}  // namespace weft::raid
