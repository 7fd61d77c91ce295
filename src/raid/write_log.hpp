// SPDX-License-Identifier: Apache-2.0
// Which stripes were written since all boxes last flushed. A box that comes back from a loss of
// power may lack any of these, though it has answered for them: they are what it is rebuilt by.
#pragma once

#include <span>

#include "raid/bands.hpp"
#include "raid/region_map.hpp"

namespace weft::raid {

class WriteLog {
public:
    explicit WriteLog(std::uint64_t stripes) : written_(stripes), flushing_(stripes) {}

    void wrote(std::span<const Band> bands) {
        for (const Band& band : bands) written_.add(band.stripe);
    }
    /// By a controller before this one, which did not say that it was flushed.
    void wrote(const RegionMap& stripes) { written_.add(stripes); }
    /// What is being written while a flush begins, it may miss.
    void flush_begins(std::span<const Band> under_way) {
        flushing_.add(written_);
        written_.clear();
        wrote(under_way);
    }
    void flush_ended(bool everywhere) {
        if (!everywhere) written_.add(flushing_);
        flushing_.clear();
    }
    bool empty() const { return written_.empty() && flushing_.empty(); }
    RegionMap unflushed() const {
        RegionMap all = written_;
        all.add(flushing_);
        return all;
    }
    void grow(std::uint64_t stripes) {
        written_ = written_.grown(stripes);
        flushing_ = flushing_.grown(stripes);
    }

private:
    RegionMap written_, flushing_;
};

}  // namespace weft::raid
