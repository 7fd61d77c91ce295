// SPDX-License-Identifier: Apache-2.0
// A box: takes a controller's commands, refuses what is not meant for it or comes from yesterday,
// and carries out the rest. It knows its identity and its superblock; of plans, layouts and hosts
// it knows nothing. Orders of one request work in one window and one after another; requests do not
// wait for each other.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "raid/prepare_work.hpp"
#include "raid/superblock_keeper.hpp"
#include "weft/instant.hpp"
#include "wire/array_connection.hpp"

namespace weft::raid {

/// Names a command until it is answered; whoever carries commands chooses it.
enum class CommandTicket : std::uint64_t {};

/// The boxes of a meet_boxes' parameter list.
Result<std::vector<wire::ArrayPeer>> parse_peers(ConstBuffer parameters, std::size_t boxes_max);

class BoxOwner {
public:
    /// Once for every command, in any order.
    virtual void answer(CommandTicket ticket, const wire::ArrayAnswer& answer) = 0;
    /// The same, with what the journal remembers: the Data-In of recall.
    virtual void answer_with_data(CommandTicket ticket, const wire::ArrayAnswer& said,
                                  ConstBuffer /*data*/) {
        answer(ticket, said);
    }
    /// The boxes to connect to, and the hosts: already checked for being from our controller.
    virtual void meet(std::span<const wire::ArrayPeer> boxes) = 0;
    virtual void admit(const wire::ArrayHostAdmission& host) = 0;
    virtual void dismiss(wire::HostSession host) = 0;
    /// The disk shall have so many octets from now on, those that are new being zero.
    virtual Result<void> make_room(std::uint64_t) { return Error{.code = Code::unsupported}; }
    /// There was no room for a write: nothing new that needs some is begun.
    virtual bool disk_is_full() const { return false; }

protected:
    ~BoxOwner() = default;
};

class Box final : private OrderWorkOwner, private SuperblockKeeper::Listener {
public:
    /// `journaled` is the same disk, of a part that has a journal; it has recovered.
    Box(BoxOwner& owner, BlockDevice& disk, StagingMemory& staging, PeerTransfers& peers,
        const wire::ArraySuperblock& superblock, unsigned copy, JournaledDisk* journaled = nullptr);
    ~Box();

    const wire::ArraySuperblock& superblock() const { return keeper_.current(); }
    void receive(CommandTicket ticket, const wire::ArrayCommandBlock& block,
                 ConstBuffer parameters);
    /// The time, for leases: before a command, if there is a clock.
    void tick(Instant now) { now_ = now; }
    /// Requests whose window is open; none when all is quiet.
    std::size_t open_windows() const;
    /// Nothing is under way, at disk or peers: it may be destroyed.
    bool idle() const;

private:
    struct Waiting {
        CommandTicket ticket{};
        ReceivedOrder order;
    };
    struct Window {
        bool open = false;  ///< for the transaction below; its memory may be empty
        bool ending = false;
        wire::TransactionNumber transaction{};
        Buffer memory{};
        std::deque<Waiting> waiting;
        std::unique_ptr<OrderWork> work;         ///< until its order is answered
        std::unique_ptr<PrepareWork> preparing;  ///< its end, if it prepares
        std::vector<Buffer> prepared;            ///< what the journal has, while it is in memory
        CommandTicket ticket{};                  ///< of the work
        std::vector<CommandTicket> end_tickets;  ///< of the commands that end it
        std::vector<CommandTicket> aborts;       ///< of those that want that to last
        std::vector<CommandTicket> repeats;      ///< of its commit, sent again while under way
        wire::TransactionNumber committed{};     ///< the last that was, here
    };
    /// A change of the superblock, in its turn.
    struct Change {
        std::vector<CommandTicket> tickets;  ///< of all who asked for it
        wire::ArraySuperblock superblock;
    };

    wire::ArrayOutcome check(const wire::ArrayAddress& address) const;
    void take_order(CommandTicket ticket, const wire::ArrayCommandBlock& block,
                    ConstBuffer parameters);
    bool is_staged(const ReceivedOrder& order) const;
    bool take_repeated(CommandTicket ticket, const ReceivedOrder& order);
    wire::ArrayOutcome place(const ReceivedOrder& order);
    void end_request(CommandTicket ticket, wire::TransactionNumber transaction, bool aborts);
    void end(Window& window);
    void take_epoch(CommandTicket ticket, ConstBuffer parameters);
    void take_volume(CommandTicket ticket, ConstBuffer parameters);
    void take_peers(CommandTicket ticket, const wire::ArrayCommandBlock& block,
                    ConstBuffer parameters);
    void change(CommandTicket ticket, const wire::ArraySuperblock& superblock);
    void begin_change();
    bool is_working() const;
    bool is_open(wire::TransactionNumber transaction) const;
    void begin_to_end(Window& window);
    void run(Window& window);
    void order_answered(Window& window, const OrderResult& result);
    // with a journal: box_journal.cpp
    wire::ArrayOutcome check_journaling(const ReceivedOrder& order) const;
    wire::ArrayOutcome check_lease(const ReceivedOrder& order);
    wire::ArrayOutcome keep_room(const ReceivedOrder& order);
    bool is_in_journal(const ReceivedOrder& order) const;
    bool journals(Window& window, const OrderResult& result);
    void tell_versions(Window& window, const OrderResult& result);
    void commit_from_journal(CommandTicket ticket, wire::TransactionNumber transaction);
    void abort_in_journal(std::vector<CommandTicket> tickets, wire::TransactionNumber transaction);
    void take_recall(CommandTicket ticket);
    void answer_recalls();
    void end_recalls(wire::ArrayOutcome outcome, const Recalled& recalled);
    void say(CommandTicket ticket, wire::TransactionNumber transaction, const OrderResult& result);
    void say(CommandTicket ticket, wire::ArrayOutcome outcome);

    void order_ended(OrderWork& work, const OrderResult& result) override;
    void superblock_kept(Result<void> outcome) override;

    BoxOwner& owner_;
    BlockDevice& disk_;
    StagingMemory& staging_;
    PeerTransfers& peers_;
    SuperblockKeeper keeper_;
    JournaledDisk* journaled_;
    std::vector<Window> windows_;
    std::vector<CommandTicket> recalls_;  ///< until what is under way has ended
    Instant now_{};
    std::optional<Instant> lease_end_;
    std::deque<Change> changes_;
    wire::Epoch
        announced_{};  ///< the highest on its way to the disk: lower ones are refused already
};

}  // namespace weft::raid
