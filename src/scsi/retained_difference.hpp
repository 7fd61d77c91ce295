// SPDX-License-Identifier: Apache-2.0
// What XDWRITE found out and XDREAD will ask for: the difference of new data and old, kept for the
// initiator that made it until it is read, or until others need the room.
#pragma once

#include <vector>

#include "scsi/limits.hpp"
#include "scsi/task_work.hpp"
#include "weft/buffer.hpp"

namespace weft::scsi {

class Nexus;

class RetainedDifferences {
public:
    void keep(const Nexus& nexus, BlockRange range, ConstBuffer octets) {
        forget(nexus, range);
        if (kept_.size() == differences_max) kept_.erase(kept_.begin());
        kept_.push_back({&nexus, range, {octets.begin(), octets.end()}});
    }
    /// Empty if there is none for exactly these blocks.
    ConstBuffer of(const Nexus& nexus, BlockRange range) const {
        for (const auto& one : kept_)
            if (one.is_for(nexus, range)) return one.octets;
        return {};
    }
    void forget(const Nexus& nexus, BlockRange range) {
        std::erase_if(kept_, [&](const Kept& one) { return one.is_for(nexus, range); });
    }
    void forget(const Nexus& nexus) {
        std::erase_if(kept_, [&](const Kept& one) { return one.nexus == &nexus; });
    }
    void clear() { kept_.clear(); }

private:
    struct Kept {
        const Nexus* nexus = nullptr;
        BlockRange range{};
        std::vector<std::byte> octets;

        bool is_for(const Nexus& other, const BlockRange& blocks) const {
            return nexus == &other && range == blocks;
        }
    };
    std::vector<Kept> kept_;
};

}  // namespace weft::scsi
