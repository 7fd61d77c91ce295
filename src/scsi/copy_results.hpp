// SPDX-License-Identifier: Apache-2.0
// What became of the latest copies, for RECEIVE COPY RESULTS. A result is kept until it is told,
// and no longer than some hundred commands: after that nobody will ask.
#pragma once

#include <optional>

#include "base/fixed_vector.hpp"
#include "scsi/limits.hpp"
#include "wire/scsi_copy.hpp"

namespace weft::scsi {

class Nexus;

class CopyResults {
public:
    void keep(const Nexus& nexus, std::uint8_t list, const wire::CopyStatus& status,
              std::uint64_t now) {
        forget(nexus, list);
        if (results_.full()) drop(0);
        results_.push_back({&nexus, list, status, now});
    }
    /// Tells it, and forgets it.
    std::optional<wire::CopyStatus> take(const Nexus& nexus, std::uint8_t list, std::uint64_t now) {
        for (const auto& one : results_) {
            if (one.nexus != &nexus || one.list != list) continue;
            auto status = one.status;
            bool fresh = now - one.kept_at <= copy_results_commands;
            forget(nexus, list);
            if (fresh) return status;
            break;
        }
        return std::nullopt;
    }
    void forget(const Nexus& nexus) {
        for (std::size_t i = results_.size(); i-- > 0;)
            if (results_[i].nexus == &nexus) drop(i);
    }
    void clear() { results_.clear(); }

private:
    struct Kept {
        const Nexus* nexus = nullptr;
        std::uint8_t list = 0;
        wire::CopyStatus status{};
        std::uint64_t kept_at = 0;
    };
    void forget(const Nexus& nexus, std::uint8_t list) {
        for (std::size_t i = results_.size(); i-- > 0;)
            if (results_[i].nexus == &nexus && results_[i].list == list) drop(i);
    }
    void drop(std::size_t place) {
        for (auto i = place; i + 1 < results_.size(); ++i) results_[i] = results_[i + 1];
        results_.pop_back();
    }

    FixedVector<Kept, copy_results_max> results_{};
};

}  // namespace weft::scsi
