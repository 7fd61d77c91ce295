// SPDX-License-Identifier: Apache-2.0
// Plans: what the boxes must do so that a host's request is served and the code holds.
//
// The controller is out of band: it never sees the data, it only says who fetches what from whom.
// So a plan is a plain value, and making one is a pure function of the layout, the boxes that are
// there, and the request. Nothing is sent here and nothing can fail later that was not planned:
// a box lost on the way means a new plan, made from the host's memory, which is still there.
#pragma once

#include "raid/health.hpp"
#include "raid/order.hpp"
#include "raid/plan_builder.hpp"

namespace weft::raid {

enum class DataPath : std::uint8_t {
    third_party,  ///< between host and boxes, and among boxes
    in_band,      ///< by way of the controller: the Baseline, and the way for hosts out of reach
};

/// How blocks come together where parity is computed.
enum class Topology : std::uint8_t {
    star,         ///< one box fetches them all: the fewest bytes
    binary_tree,  ///< boxes fetch in pairs, round by round: fewer on any one link
};

/// What is done with a part of a stripe. All of one is never modified but written anew.
enum class PartialWrite : std::uint8_t {
    modify,             ///< parity changes by what the data changes: the fewest bytes on the wire
    reconstruct,        ///< parity is made anew from all columns: old data and parity are not read
    fewest_disk_reads,  ///< whichever of the two reads fewer blocks
};

enum class Ending : std::uint8_t {
    two_phase,  ///< stage, parity and commit are separate orders
    at_once,    ///< in-band only: a box writes what it fetches, as a plain WRITE does
};

struct PlanOptions {
    DataPath path = DataPath::third_party;
    Topology topology = Topology::star;
    Style style = Style::vectored;
    PartialWrite partial = PartialWrite::modify;
    Ending ending = Ending::two_phase;
    /// What is staged is made lasting before it is decided, and the commit says nothing but that it
    /// is. Vectored, and never at once.
    bool journal = false;
    Preparing preparing = Preparing::with_last;  ///< with a journal
};

/// Refusals of all of these: `malformed` for a range that is empty, not made of slices or too long
/// for one request, `io_failed` if more boxes are lost than the code can do without.
Result<Plan> plan_read(const Layout& layout, const Health& health, Range range,
                       const PlanOptions& options);
Result<Plan> plan_write(const Layout& layout, const Health& health, Range range,
                        const PlanOptions& options);

/// Makes all writes that were answered before outlive the power, on every box that is there.
Result<Plan> plan_flush(const Layout& layout, const Health& health);
/// Makes a write durable: every box that commits flushes before it answers.
void flush_after_commit(Plan& plan);

/// A run of offsets in every chunk of a stripe: what rebuilding and scrubbing go by.
struct StripeRun {
    std::uint64_t stripe = 0;
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
};

/// Makes the absent boxes of `targets` whole for this run. They are absent for readers (Health) and
/// there for orders: spares in their places.
Result<Plan> plan_rebuild(const Layout& layout, const Health& health, Mask targets, StripeRun run,
                          const PlanOptions& options);
/// Asks every box for checksums of the run; raid/digest.hpp says what they tell.
Result<Plan> plan_scrub(const Layout& layout, const Health& health, StripeRun run,
                        const PlanOptions& options);
/// Asks every box for the checksum of one slice and for what it remembers of its versions;
/// raid/stale_blocks.hpp says what they tell.
Result<Plan> plan_inquest(const Layout& layout, const Health& health, StripeRun run,
                          const PlanOptions& options);
/// Makes parity (of a mirror: the other copies) anew from the data.
Result<Plan> plan_repair(const Layout& layout, const Health& health, StripeRun run,
                         const PlanOptions& options);

}  // namespace weft::raid
