// SPDX-License-Identifier: Apache-2.0
// Blocks that a request has found to be corrupt, or stale, and that are restored from the others of
// their rows before it goes on. Their rows are the request's own meanwhile, so nobody writes what
// is being restored.
#pragma once

#include <vector>

#include "raid/bands.hpp"
#include "raid/limits.hpp"
#include "wire/array_identity.hpp"

namespace weft::raid {

struct CorruptRow {
    std::uint64_t stripe = 0;
    std::uint32_t offset = 0;  ///< in the chunk
    Mask places = 0;           ///< boxes whose block it is
    /// When it was found: under which volume, and how many blocks had been restored by then.
    wire::Generation generation{};
    std::uint64_t restored_before = 0;
};

class RowRepairs {
public:
    bool needed() const { return !rows_.empty(); }
    CorruptRow& current() { return rows_.back(); }
    const CorruptRow& current() const { return rows_.back(); }
    /// The one found last is restored first: it may be needed to restore the one before.
    /// False: this request has found more than it may.
    bool add(const CorruptRow& row) {
        if (++found_ > limits::heals) return false;
        rows_.push_back(row);
        return true;
    }
    /// Another block of the row that is being restored: both are found again together, or neither.
    bool widen_current(Mask places) {
        if (++found_ > limits::heals) return false;
        rows_.back().places |= places;
        return true;
    }
    CorruptRow take_current() {
        const CorruptRow row = rows_.back();
        rows_.pop_back();
        return row;
    }
    void clear() { rows_.clear(); }

private:
    std::vector<CorruptRow> rows_;
    unsigned found_ = 0;
};

}  // namespace weft::raid
