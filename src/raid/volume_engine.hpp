// SPDX-License-Identifier: Apache-2.0
// The controller's half of a volume: takes requests, decides which starts when, has it planned and
// carried out, and plans it anew when that fails. It never sees data unless that goes by way of the
// controller.
//
// What a request needs is found in classes of their own: its rows (RowOrder), its turn (Admission),
// its plan (RequestPlanner), one try to carry that out (Attempt), what is left of a read that went
// around a late box (SupersededReads), links that do not carry (LinkTable). Here they meet. When a
// box fails amid a request, its attempt undoes what was staged and the request waits to be told
// what the volume is now; then it is planned anew, from the host's memory, which is still there. A
// request fails when no attempt has gone through for as long as requests wait (`request_patience`).
//
// A write without a journal that failed amid its commit has left data and parity of its rows at
// odds, unless whoever did not commit is no member any more. Its rows stay its own until it is done
// again, and then parity is recomputed: changed by a difference it would stay wrong. Where that
// cannot be, for a column that is lost and known by that parity alone, the write is refused.
#pragma once

#include <map>
#include <vector>

#include "raid/attempt_maker.hpp"
#include "raid/executed_commands.hpp"
#include "raid/failure_rules.hpp"
#include "raid/hedged_reads.hpp"
#include "raid/order_dispatch.hpp"
#include "raid/request_queue.hpp"

namespace weft::raid {

class VolumeEngine final : private OwnWork::Listener,
                           private AttemptOwner,
                           private SupersededReadsOwner {
public:
    VolumeEngine(VolumeEngineOwner& owner, const VolumeEngineOptions& options);

    /// What the volume is from now on: at the start, and after every change of membership, which
    /// must be durable by then. Requests that wait go on. Refuses what is no volume.
    Result<void> set_volume(wire::ClusterIdentity cluster, wire::Epoch epoch,
                            const wire::ArrayVolume& volume, const Health& health);
    /// The same volume, with more or fewer stripes on its boxes.
    void set_health(const Health& health) { view_.health = health; }
    /// Nothing is begun until set_volume().
    void halt() { halted_ = true; }
    /// What waits for the membership, or for room, goes on.
    void try_again();
    /// Writes that were not allowed to begin are asked for again.
    void go_on();
    /// What waits, or could not be begun, is answered so; of an engine that is halted also what
    /// fails later.
    void give_up(Error why);

    /// Whether data can go by way of the controller, around a link that is broken.
    bool can_detour() const { return planner_.can_detour(); }
    /// Links that are gone around are used again. One that works is reported.
    void retry_links() { links_.retry(); }
    const LinkTable& links() const { return links_; }

    /// The time, before whatever else is told. Who never says it is taken to be very quick.
    void note_time(Instant now) { now_ = now; }
    std::optional<Instant> deadline() const;
    void tick(Instant now);
    /// Boxes that reads go around, as they answer too slowly.
    Mask slow_boxes() const { return hedged_.slow_boxes(); }

    void submit(HostRequest& request);
    void submit(UpkeepRequest& request);
    void answered(CommandTicket ticket, const wire::ArrayAnswer& answer);
    /// Nothing more will come from this box: what it has not answered has failed. Returns what may
    /// still be open there, to be aborted before it is used again.
    std::vector<wire::TransactionNumber> lost(const wire::BoxIdentity& box);
    /// One command of a box that is there will not be answered.
    void lost(CommandTicket ticket);
    /// This box is back, and has ended whatever it had begun before.
    void has_ended_all(const wire::BoxIdentity& box) { superseded_.cannot_write(box); }

    /// Everything below has ended durably at all who took part in it, or they are no members.
    wire::TransactionNumber settled() const { return dispatch_.settled(); }
    /// The last that was begun.
    wire::TransactionNumber last_transaction() const { return ledger_.last(); }
    /// The last of which this box has said that it is durable there: its journal knows it, or that
    /// all of its time are settled, as long as the disk is what it was.
    std::optional<wire::TransactionNumber> prepared_by(const wire::BoxIdentity& box) const;
    /// What it has now is another part.
    void forget_prepared(const wire::BoxIdentity& box) { prepared_.erase(box); }
    /// Whether this one is being committed: it will be, whatever happens.
    bool is_decided(wire::TransactionNumber transaction) const {
        return queue_.is_decided(transaction);
    }
    /// Whether this one has not ended. Of one that has, all who took part have kept its end, and
    /// for the others it is pending: end_is_pending().
    bool is_under_way(wire::TransactionNumber transaction) const {
        return queue_.is_under_way(transaction);
    }
    /// What has been executed before: of a journal, and of this engine.
    ExecutedCommands& executed() { return executed_; }

    std::size_t requests() const { return queue_.of_hosts(); }
    const VolumeCounters& counters() const { return counters_; }
    /// Of hosts, that have not begun or must begin again.
    std::size_t writes_waiting() const { return queue_.writes_waiting(); }
    /// What is being written now, or will be written again.
    std::vector<Band> bands_under_way() const { return queue_.bands_under_way(); }

private:
    // Requests: from submission to their next attempt.
    void start_what_may();
    void start(Request& request);
    bool is_over_already(Request& request);
    bool waits_for_permission(Request& request);
    void attempt_failed(Request& request, AttemptFailure failure);
    void refuse(Request& request, Error why);
    void answer(Request& request, Result<void> outcome);

    // What attempts ask for and report.
    void send_order(Attempt& attempt, std::size_t order, SentCommand::Purpose purpose) override;
    void send_end(Attempt& attempt, BoxIndex box, wire::ArrayAction action,
                  SentCommand command) override;
    void command_answered(Attempt& attempt, const SentCommand& command,
                          const CommandAnswer& answer) override;
    void order_failed(Attempt& attempt, const SentCommand& command,
                      const CommandAnswer& answer) override;
    bool waits_to_tell_again(Attempt& attempt, const SentCommand& command,
                             const CommandAnswer& answer) override {
        const bool waits = rules_.waits_to_tell_again(attempt, command, answer);
        if (waits && !attempt.is_decided()) queue_.note_failing(attempt.request(), now_);
        return waits;
    }
    bool still_counts(const Attempt& attempt, const Order& order) const override {
        return rules_.still_counts(attempt, order);
    }
    void turn_ended(Attempt& attempt) override;
    bool agrees(Attempt& attempt) override;
    void decided(Attempt& attempt) override;
    void carried_out(Attempt& attempt) override;
    wire::BoxIdentity identity_at(BoxIndex place) const override { return view_.box_at(place); }
    void end_is_pending(const wire::BoxIdentity& box,
                        wire::TransactionNumber transaction) override {
        owner_.end_is_pending(box, transaction);
    }
    void over(Attempt& attempt) override;

    // What superseded reads report.
    void send_release(SupersededRead& read, wire::TransactionNumber transaction,
                      BoxIndex box) override;
    void late_box_answered(const SentCommand& command) override;
    void brought(Request& request, std::uint64_t octets) override;
    void windows_released() override;
    void writers_gone(wire::HostSession session, std::uint64_t command) override {
        owner_.writers_gone(session, command);
    }

    void end_command(CommandTicket ticket, const CommandAnswer& answer);
    SteeringTag own_window_tag(std::uint32_t window, wire::TransactionNumber transaction) override {
        return owner_.own_window_tag(window, transaction);
    }
    void own_order_ended(CommandTicket ticket, const OrderResult& result) override;

    VolumeEngineOwner& owner_;
    const VolumeEngineOptions options_;
    VolumeView view_;
    VolumeCounters counters_;
    OwnWork own_;
    LinkTable links_;
    RequestPlanner planner_;
    RequestQueue queue_;
    WindowPool windows_;
    CommandBook book_;
    TransactionLedger ledger_;
    OrderDispatch dispatch_;
    SupersededReads superseded_;
    HedgedReads hedged_;
    CorruptBlocks corrupt_;
    AttemptMaker maker_;
    FailureRules rules_;
    ExecutedCommands executed_;
    std::map<wire::BoxIdentity, wire::TransactionNumber> prepared_;
    Instant now_{};
    std::optional<Error> given_up_;
    bool halted_ = false;
    bool starting_ = false;
};

}  // namespace weft::raid
