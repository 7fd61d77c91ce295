// SPDX-License-Identifier: Apache-2.0
// What a volume's engine asks of whoever has it, and what it reports: the volume's manager.
#pragma once

#include "raid/command_book.hpp"
#include "raid/link_table.hpp"
#include "raid/order_codec.hpp"

namespace weft::raid {

/// Who answers so will have some: nobody is to blame.
constexpr bool lacks_room(wire::ArrayOutcome outcome) {
    return outcome == wire::ArrayOutcome::no_room || outcome == wire::ArrayOutcome::no_space;
}

/// A transfer failed, and `party` says with whom.
constexpr bool is_about_peer(wire::ArrayOutcome outcome) {
    return outcome == wire::ArrayOutcome::peer_unreachable ||
           outcome == wire::ArrayOutcome::peer_refused ||
           outcome == wire::ArrayOutcome::peer_timed_out;
}

/// Why an attempt has failed, where its request waits to be tried again.
struct Trouble {
    std::optional<BoxIndex> reporter;  ///< whose command it was; none: no box is concerned
    std::optional<BoxIndex> peer;  ///< the box it had a transfer with, if it is about that
    CommandAnswer answer;          ///< none: the command was lost
};

class VolumeEngineOwner {
public:
    virtual void carry(BoxIndex box, CommandTicket ticket, const EncodedOrder& order) = 0;
    /// Under which tag peers reach a box's window while this transaction uses it.
    virtual SteeringTag window_tag(BoxIndex box, std::uint32_t window,
                                   wire::TransactionNumber transaction) = 0;
    /// The same of the controller's own, which are numbered apart from the boxes' (OwnWork).
    virtual SteeringTag own_window_tag(std::uint32_t, wire::TransactionNumber) { return {}; }
    /// A request waits until set_volume() or try_again().
    virtual void in_trouble(const Trouble& trouble) = 0;
    /// A box is short of room: those concerned wait for try_again().
    virtual void no_room(BoxIndex, wire::ArrayOutcome /*why*/) {}
    /// Whether a write in these rows may begin: what must be durable before it is. False: it waits
    /// for go_on().
    virtual bool may_write(std::span<const Band>) { return true; }
    /// A write is about to be sent out. What it has not completed, it may have begun.
    virtual void writing(std::span<const Band>) {}
    /// A write was given up amid its commit: parity of these rows may be wrong.
    virtual void doubtful(std::span<const Band>) {}
    /// A link is gone around: retry_links() is wanted after a while.
    virtual void link_suspected() {}
    virtual void link_changed(LinkReport, BoxIndex, BoxIndex) {}
    virtual void host_link_changed(LinkReport, BoxIndex) {}
    /// A transfer of this box to or from the controller's memory has gone through.
    virtual void reaches_controller(BoxIndex) {}
    /// This box has not answered a read for so long, and the others have served it meanwhile, who
    /// take so long. Reads go around it until it is said to be quick again.
    virtual void box_slow(BoxIndex, Duration /*waited*/, Duration /*others*/) {}
    virtual void box_quick(BoxIndex) {}
    /// A block of this stripe is not what was written there; it is about to be found again.
    virtual void block_corrupt(BoxIndex, std::uint64_t) {}
    virtual void block_healed(BoxIndex, std::uint64_t) {}
    /// The block at this final location has missed a write; a scrub that repairs is about to
    /// restore it.
    virtual void block_stale(BoxIndex, std::uint64_t) {}
    /// It cannot be: too much of the row is lost.
    virtual void block_lost(BoxIndex, std::uint64_t) {}
    /// What was prepared for these rows does not agree: it was not committed.
    virtual void audit_failed(std::span<const Band>) {}
    /// This transaction must be ended at a box that was lost, before the box is used again. Said
    /// before anything else is sent to anybody.
    virtual void end_is_pending(const wire::BoxIdentity&, wire::TransactionNumber) {}
    /// The lowest transaction whose end is pending so, at a box that counts.
    virtual std::optional<wire::TransactionNumber> lowest_pending_end() const {
        return std::nullopt;
    }
    /// Whether this host is there, as far as its own session tells.
    virtual bool is_host_here(wire::HostSession) const { return true; }
    /// Of a read that ended with `leaves_writers`: no box can write into its memory any more.
    virtual void writers_gone(wire::HostSession, std::uint64_t /*command*/) {}

protected:
    ~VolumeEngineOwner() = default;
};

}  // namespace weft::raid
