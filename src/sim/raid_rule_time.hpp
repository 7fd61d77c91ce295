// SPDX-License-Identifier: Apache-2.0
// L7: every request ends within its bound, in virtual time, while the volume can serve; time in
// which it cannot is not counted. L6: none fails that the promise covers: with an error only when
// more boxes are away than the code can spare, for longer than the volume is patient.
#pragma once

#include "sim/rdma_memory_model.hpp"
#include "weft/instant.hpp"
#include "weft/result.hpp"

namespace weft::sim {

class RaidTimeRule {
public:
    explicit RaidTimeRule(Complaints& complaints) : complaints_(complaints) {}

    /// How long a volume that cannot serve lets requests wait, before it fails them.
    static constexpr Duration patience = std::chrono::seconds(60);
    /// The longest a request may take that the volume can serve.
    static constexpr Duration bound = std::chrono::seconds(60);

    /// At this moment the volume cannot serve, or is about to learn that something is gone.
    void note_trouble(Instant now) { trouble_ = now; }
    /// Of a request that has not ended.
    void look_at_waiting(const char* what, Instant began, Instant now);
    /// Of one that has ended badly, and should not have been let down.
    void look_at_failed(const char* what, Code code, Instant began, Instant now);

private:
    Complaints& complaints_;
    Instant trouble_{};
};

}  // namespace weft::sim
