// SPDX-License-Identifier: Apache-2.0
// Which bytes of an answer have come. A server sends the chunks of a read in any order; only if
// they meet without overlap or gap is the answer whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::nbd {

class Coverage {
public:
    /// Chunks that come in order, either way, make one range. A server that sends so many apart is
    /// not trying to answer.
    static constexpr std::size_t ranges_max = 1024;

    /// False if some of these bytes came before, or there are too many ranges.
    bool add(std::uint64_t from, std::uint64_t length) {
        auto after = std::ranges::lower_bound(ranges_, from, {}, &Range::from);
        if (after != ranges_.end() && after->from < from + length) return false;
        bool joins_before = false;
        if (after != ranges_.begin()) {
            auto before = after - 1;
            if (before->to > from) return false;
            joins_before = before->to == from;
        }
        bool joins_after = after != ranges_.end() && after->from == from + length;
        if (joins_before && joins_after) {
            (after - 1)->to = after->to;
            ranges_.erase(after);
        } else if (joins_before) {
            (after - 1)->to = from + length;
        } else if (joins_after) {
            after->from = from;
        } else {
            if (ranges_.size() == ranges_max) return false;
            ranges_.insert(after, {from, from + length});
        }
        return true;
    }

    /// Every byte of [0, length) has come.
    bool is_whole(std::uint64_t length) const {
        if (length == 0) return ranges_.empty();
        return ranges_.size() == 1 && ranges_.front().from == 0 && ranges_.front().to == length;
    }

private:
    struct Range {
        std::uint64_t from = 0;
        std::uint64_t to = 0;
    };
    std::vector<Range> ranges_;
};

}  // namespace weft::nbd
