// SPDX-License-Identifier: Apache-2.0
// Boxes that are late with reads. A read that waits for one longer than it would for the others is
// planned once more, as if that box were lost for this read alone, and the others serve it. Writes
// always wait: a write that a member has not is no write, and a member is not removed for being
// slow.
//
// Hedging cannot feed on itself: a hedge is paid for by many reads that went well, and once the
// others have shown that it is the box, reads go around it from the beginning, but for one now and
// then. That one costs nothing: it measures whether the box is well again.
#pragma once

#include "raid/box_pace.hpp"
#include "raid/request_planner.hpp"
#include "raid/superseded_reads.hpp"
#include "raid/volume_engine_owner.hpp"
#include "raid/volume_status.hpp"

namespace weft::raid {

class HedgedReads {
public:
    HedgedReads(const HedgeOptions& options, std::uint32_t windows, VolumeEngineOwner& owner,
                const RequestPlanner& planner, SupersededReads& superseded, const CommandBook& book,
                VolumeCounters& counters)
        : owner_(owner),
          planner_(planner),
          superseded_(superseded),
          book_(book),
          counters_(counters),
          paces_(options),
          credit_(2 * windows * reads_for_a_hedge) {}

    /// Boxes this request's next plan should do without, if the code can.
    Mask to_avoid(const Request& request, Instant now) const;
    void order_sent(const Attempt& attempt, const Order& order, Instant now);
    void answered(const Attempt& attempt, const SentCommand& command, const CommandAnswer& answer,
                  Instant now);
    /// A box that was gone around has answered after all.
    void late_box_answered(const SentCommand& command, Instant now);
    /// Somebody may be late by now.
    void look_now(Instant now) { look_in({}, now); }
    std::optional<Instant> deadline() const;
    /// Ends attempts that wait for late boxes alone.
    void tick(Instant now);
    /// A part of a host's read is done: if the others have served what a box did not, and soon, it
    /// was that box, and not the host, or all.
    void served(const Request& request, const Attempt& attempt, Instant now);
    Mask slow_boxes() const { return paces_.slow(); }
    void forget(std::uint8_t place) { paces_.forget(place); }

private:
    static constexpr unsigned reads_for_a_hedge = 50;

    bool applies_to(const Request& request) const;
    bool is_awaited(const Attempt& attempt, const SentCommand& command) const;
    void look_in(Duration span, Instant now);
    void hedge_what_is_late(Instant now);
    void hedge(Attempt& attempt, Mask late, Instant now);
    bool pay_for(Mask late);
    void note_pace(const SentCommand& command, Instant now);

    VolumeEngineOwner& owner_;
    const RequestPlanner& planner_;
    SupersededReads& superseded_;
    const CommandBook& book_;
    VolumeCounters& counters_;
    BoxPaces paces_;
    std::optional<Instant> look_at_;  ///< for boxes that are late
    unsigned credit_;
    unsigned spent_ = 0;  ///< in reads that went well
};

}  // namespace weft::raid
