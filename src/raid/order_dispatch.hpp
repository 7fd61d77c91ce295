// SPDX-License-Identifier: Apache-2.0
// Orders of attempts on their way out: addressed by the volume as it is, with the tags of all whose
// memory they name, and remembered until they are answered.
#pragma once

#include "raid/attempt.hpp"
#include "raid/request.hpp"
#include "raid/transaction_ledger.hpp"
#include "raid/volume_engine_owner.hpp"
#include "raid/volume_status.hpp"
#include "raid/volume_view.hpp"

namespace weft::raid {

class OrderDispatch {
public:
    OrderDispatch(VolumeEngineOwner& owner, const VolumeView& view, OwnWork& own,
                  const wire::BoxIdentity& own_identity, CommandBook& book,
                  const TransactionLedger& ledger, VolumeCounters& counters)
        : owner_(owner),
          view_(view),
          own_(own),
          own_identity_(own_identity),
          book_(book),
          ledger_(ledger),
          counters_(counters) {}

    /// May end the attempt, where the controller does the order itself.
    void send(Attempt& attempt, std::size_t order, SentCommand::Purpose purpose, Instant now);
    /// Abort, release or resolve.
    void send_end(CommandHolder& holder, wire::TransactionNumber transaction, BoxIndex box,
                  wire::ArrayAction action, SentCommand command, Instant now);
    /// Everything below has ended durably at all who took part in it, or they are no members. A box
    /// forgets what is below: so a transaction whose end is pending at a box that may return is
    /// not.
    wire::TransactionNumber settled() const;

private:
    void send_own(Attempt& attempt, const Order& order, SentCommand command);
    void count(const Order& order);
    wire::ArrayAddress address_of(BoxIndex box) const;
    OrderEnvelope envelope_of(const Attempt& attempt, BoxIndex box) const;
    std::vector<PartyAccess> accesses_of(const Attempt& attempt) const;

    VolumeEngineOwner& owner_;
    const VolumeView& view_;
    OwnWork& own_;
    const wire::BoxIdentity own_identity_;
    CommandBook& book_;
    const TransactionLedger& ledger_;
    VolumeCounters& counters_;
};

}  // namespace weft::raid
