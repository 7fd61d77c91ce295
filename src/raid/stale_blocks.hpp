// SPDX-License-Identifier: Apache-2.0
// Which blocks of a row are old. A disk that has lost a write gives back what was there before, and
// a checksum that matches it; so does a box whose folder was put back from a copy. That something
// is wrong the row's sums say. What is wrong they do not say of a mirror or of RAID 5; but every
// box remembers of which write its block is, parity of which write each column in it is, and of two
// who remember the same column the one with the older write has missed the other.
#pragma once

#include <span>

#include "raid/digest.hpp"
#include "raid/version.hpp"

namespace weft::raid {

/// What a box said of its block of the row.
struct Testimony {
    Column column = 0;
    Digest digest{};
    Versions versions{};
};

/// The columns that have missed a write, of a row whose digests do not agree; none if that cannot
/// be told. Never a guess: where two ways of telling it contradict each other none is named.
Mask stale_columns(const Layout& layout, std::span<const Testimony> row);

/// Versions as an answer carries them, in the words of a digest: so many from the first on.
Digest digest_with(const Versions& versions, Column first);
void take_versions(const Digest& digest, Column first, Versions& into);

}  // namespace weft::raid
