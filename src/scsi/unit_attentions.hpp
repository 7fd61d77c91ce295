// SPDX-License-Identifier: Apache-2.0
// What has happened to a unit that one nexus was not told yet. Each is told once, the oldest first;
// the same twice is told once. A reset makes everything before it old news.
#pragma once

#include <optional>

#include "base/fixed_vector.hpp"
#include "scsi/limits.hpp"
#include "wire/scsi_sense.hpp"

namespace weft::scsi {

class UnitAttentions {
public:
    void raise(wire::AdditionalSense what) {
        if (is_reset(what)) waiting_.clear();
        for (auto known : waiting_)
            if (known == what) return;
        if (waiting_.full()) forget(waiting_[0]);
        waiting_.push_back(what);
    }
    bool empty() const { return waiting_.empty(); }
    std::optional<wire::AdditionalSense> first() const {
        if (waiting_.empty()) return std::nullopt;
        return waiting_[0];
    }
    void forget(wire::AdditionalSense what) {
        auto rest = std::exchange(waiting_, {});
        for (auto known : rest)
            if (known != what) waiting_.push_back(known);
    }
    void clear() { waiting_.clear(); }

private:
    static bool is_reset(wire::AdditionalSense what) {
        return static_cast<std::uint16_t>(what) >> 8 == 0x29;
    }

    FixedVector<wire::AdditionalSense, attentions_max> waiting_{};
};

}  // namespace weft::scsi
