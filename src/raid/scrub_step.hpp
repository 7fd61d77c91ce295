// SPDX-License-Identifier: Apache-2.0
// One stripe being scrubbed. First the digests of a large part are compared; where they do not
// agree the part is gone through again slice by slice, and every box is asked of which writes its
// block is: who has missed one can then be named.
#pragma once

#include <algorithm>
#include <vector>

#include "raid/stale_blocks.hpp"

namespace weft::raid {

class ScrubStep {
public:
    /// Whether the part that begins there is compared slice by slice.
    bool is_detailed(std::uint64_t done) const { return done < detailed_until_; }
    void look_closely_until(std::uint64_t end) { detailed_until_ = end; }

    void begin() { row_.clear(); }
    /// What a box says of its slice, or of its versions.
    void take(Column column, const Piece& asked, const Digest& said) {
        auto found = std::ranges::find(row_, column, &Testimony::column);
        if (found == row_.end()) found = row_.insert(found, {.column = column});
        if (asked.verb == Verb::versions)
            take_versions(said, asked.column, found->versions);
        else
            found->digest = said;
    }
    bool row_agrees(const Layout& layout) const {
        std::vector<Digest> digests;
        for (const Testimony& box : row_) digests.push_back(box.digest);
        return digests_agree(layout, digests);
    }
    /// The columns that were told of and have missed a write; none if that cannot be said.
    Mask stale(const Layout& layout) const {
        Mask told = 0;
        for (const Testimony& box : row_) told |= only(box.column);
        return stale_columns(layout, row_) & told;
    }

private:
    std::uint64_t detailed_until_ = 0;
    std::vector<Testimony> row_;
};

}  // namespace weft::raid
