// SPDX-License-Identifier: Apache-2.0
// Makes the next attempt of a request: what it has come upon is restored first, what it has left at
// odds is made up for, and then its next part is served; with a plan, a transaction, and a window
// at all the boxes of it.
#pragma once

#include <memory>

#include "raid/corrupt_blocks.hpp"
#include "raid/hedged_reads.hpp"
#include "raid/transaction_ledger.hpp"
#include "raid/volume_engine_options.hpp"
#include "raid/window_pool.hpp"

namespace weft::raid {

class AttemptMaker {
public:
    AttemptMaker(const VolumeEngineOptions& options, const VolumeView& view,
                 const RequestPlanner& planner, CorruptBlocks& corrupt, const HedgedReads& hedged,
                 WindowPool& windows, TransactionLedger& ledger, OwnWork& own)
        : options_(options),
          view_(view),
          planner_(planner),
          corrupt_(corrupt),
          hedged_(hedged),
          windows_(windows),
          ledger_(ledger),
          own_(own) {}

    static RequestPlanner::Options planner_options(const VolumeEngineOptions& options,
                                                   const OwnWork& own);
    /// None: no window is free where it is needed.
    Result<std::unique_ptr<Attempt>> make(AttemptOwner& owner, Request& request, Instant now);
    /// Whether it was one of the controller's, the last time.
    bool lacked_own_window() const { return lacked_own_window_; }

private:
    Result<void> make_up_for(Request& request) const;
    Result<RequestPlanner::Planned> plan_next(Request& request, Attempt::Purpose& purpose,
                                              Instant now);

    const VolumeEngineOptions options_;
    const VolumeView& view_;
    const RequestPlanner& planner_;
    CorruptBlocks& corrupt_;
    const HedgedReads& hedged_;
    WindowPool& windows_;
    TransactionLedger& ledger_;
    OwnWork& own_;
    bool lacked_own_window_ = false;
};

}  // namespace weft::raid
