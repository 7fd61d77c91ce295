// SPDX-License-Identifier: Apache-2.0
// What follows when a command of an attempt was not done. Only what a box says of itself counts
// against it. Of a transfer between two there are three outcomes with three consequences: a peer
// that refuses knows of another end of the transaction, and it is tried again; one that times out
// is connected, something between is slow, and it is tried again later; one that is unreachable is
// gone around by way of the controller.
#pragma once

#include "raid/corrupt_blocks.hpp"

namespace weft::raid {

class FailureRules {
public:
    FailureRules(VolumeEngineOwner& owner, const VolumeView& view, const RequestPlanner& planner,
                 LinkTable& links, CorruptBlocks& corrupt, VolumeCounters& counters,
                 const wire::BoxIdentity& own_identity)
        : owner_(owner),
          view_(view),
          planner_(planner),
          links_(links),
          corrupt_(corrupt),
          counters_(counters),
          own_identity_(own_identity) {}

    /// Says by Attempt::fail() what becomes of the request.
    void order_failed(Attempt& attempt, const SentCommand& command, const CommandAnswer& answer);
    /// Whether there is something to wait for before a commit is sent again.
    bool waits_to_tell_again(const Attempt& attempt, const SentCommand& command,
                             const CommandAnswer& answer);
    /// A box that has become absent need not commit: those that are left have the same.
    bool still_counts(const Attempt& attempt, const Order& order) const;
    /// What was ordered is done: the links it went over carry.
    void order_done(const Attempt& attempt, const SentCommand& command);
    /// A way around has led there: both ends are there, and the link between them is broken.
    void detour_done(const Attempt& attempt);

private:
    void transfer_failed(Attempt& attempt, const SentCommand& command,
                         const wire::ArrayAnswer& answer);
    void host_not_reached(Attempt& attempt, const SentCommand& command, wire::ArrayOutcome why);
    void wait_for(Attempt& attempt, const Trouble& trouble);
    bool is_outdated(const Attempt& attempt) const {
        return attempt.terms().generation != view_.volume.generation;
    }
    void report(LinkReport what, BoxIndex one, BoxIndex other);
    void report(LinkReport what, BoxIndex box);

    VolumeEngineOwner& owner_;
    const VolumeView& view_;
    const RequestPlanner& planner_;
    LinkTable& links_;
    CorruptBlocks& corrupt_;
    VolumeCounters& counters_;
    const wire::BoxIdentity own_identity_;
};

}  // namespace weft::raid
