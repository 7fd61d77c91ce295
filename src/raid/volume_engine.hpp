// SPDX-License-Identifier: Apache-2.0
// The controller's half of a volume: takes hosts' requests, keeps those apart that touch the same
// rows, makes plans and sends their orders turn by turn. It never sees data unless that goes by way
// of the controller. When a box fails amid a request it says so, undoes what was staged, and waits
// to be told what the volume is now; then the request is planned anew, from the host's memory.
//
// A write that failed amid its commit has left data and parity of its rows at odds, unless whoever
// did not commit is no member any more. Its rows stay its own until it is done again, and then
// parity is made anew: changed by a difference it would stay wrong. A box of which it is only not
// heard whether it has committed is asked again, once it is there or known to be gone. Where that
// cannot be, for a column that is lost and known by that parity alone, the write is refused.
//
// With a journal nothing of that arises. All who take part have made lasting what they shall write
// before anything is decided; when the last of them says so, and their digests agree, the write is
// decided: whoever dies from then on, the next controller finds it prepared by all who are left,
// and commits it. So the host is answered then, and the commit follows; the rows stay the write's
// own until all have acknowledged it. A box that does not is told again, until it does or is no
// member any more. Before that point a loss undoes the write everywhere, and it is done again.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "raid/box_pace.hpp"
#include "raid/executed_commands.hpp"
#include "raid/own_work.hpp"
#include "raid/plan.hpp"
#include "raid/stale_blocks.hpp"
#include "raid/volume_requests.hpp"
#include "raid/volume_status.hpp"

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

class VolumeEngineOwner {
public:
    virtual void carry(BoxIndex box, CommandTicket ticket, const EncodedOrder& order) = 0;
    /// Under which tag peers reach a box's window while this transaction uses it.
    virtual SteeringTag window_tag(BoxIndex box, std::uint32_t window,
                                   wire::TransactionNumber transaction) = 0;
    /// The same of the controller's own, which are numbered apart from the boxes' (OwnWork).
    virtual SteeringTag own_window_tag(std::uint32_t, wire::TransactionNumber) { return {}; }
    /// A request is stuck until set_volume() says what to do without this box, or with it again, or
    /// until try_again(). `answer` is what the reporter said.
    virtual void box_failed(BoxIndex suspect, BoxIndex reporter,
                            const wire::ArrayAnswer& answer) = 0;
    /// A box is short of windows: those concerned wait for try_again().
    virtual void no_room(BoxIndex, wire::ArrayOutcome /*why*/) {}
    /// Whether a write in these rows may begin: what must be lasting before it is. False: it waits
    /// for go_on().
    virtual bool may_write(std::span<const Band>) { return true; }
    /// A write is about to be sent out. What it has not completed, it may have begun.
    virtual void writing(std::span<const Band>) {}
    /// A write was given up amid its commit: parity of these rows may be wrong.
    virtual void doubtful(std::span<const Band>) {}
    /// This box does not reach a host that is there: its data goes by way of the controller until
    /// try_links().
    virtual void host_cut_off(BoxIndex, bool /*is_new*/) {}
    /// Over these links something went again.
    virtual void link_mended(BoxIndex, BoxIndex) {}
    virtual void host_reached(BoxIndex) {}
    /// This box has not answered a read for so long, and the others have served it meanwhile, who
    /// take so long. Reads go around it until it is said to be quick again.
    virtual void box_slow(BoxIndex, Duration /*waited*/, Duration /*others*/) {}
    virtual void box_quick(BoxIndex) {}
    /// A block of this stripe is not what was written there; it is about to be found again.
    virtual void block_corrupt(BoxIndex, std::uint64_t) {}
    virtual void block_healed(BoxIndex, std::uint64_t) {}
    /// The block at this home has missed a write; a scrub that mends is about to find it again.
    virtual void block_stale(BoxIndex, std::uint64_t) {}
    /// It cannot be: too much of the row is lost.
    virtual void block_lost(BoxIndex, std::uint64_t) {}
    /// What was prepared for these rows does not agree: it was not committed.
    virtual void audit_failed(std::span<const Band>) {}
    /// This transaction must be ended at a box that was lost, before the box is used again. Said
    /// before anything else is sent to anybody.
    virtual void owes_end(const wire::BoxIdentity&, wire::TransactionNumber) {}
    /// The lowest transaction that is still owed an end so, by a box that counts.
    virtual std::optional<wire::TransactionNumber> owed_end() const { return std::nullopt; }

protected:
    ~VolumeEngineOwner() = default;
};

struct VolumeEngineOptions {
    PlanOptions plan{};
    OwnSide own{};
    std::uint32_t windows = 16;              ///< of each box
    std::uint32_t window_bytes = 2 << 20;    ///< of each window; longer requests go in parts
    std::uint32_t upkeep_bytes = 128 << 10;  ///< of a chunk, at a time
    HedgeOptions hedge{};
};

class VolumeEngine final : private OwnWork::Listener {
public:
    VolumeEngine(VolumeEngineOwner& owner, const VolumeEngineOptions& options);

    /// What the volume is from now on: at the start, and after every change of membership, which
    /// must be lasting by then. Requests that were stuck go on. Refuses what is no volume.
    Result<void> set_volume(wire::ClusterIdentity cluster, wire::Epoch epoch,
                            const wire::ArrayVolume& volume, const Health& health);
    /// The same volume, with more or fewer stripes on its boxes.
    void set_health(const Health& health) { health_ = health; }
    /// Nothing is begun until set_volume().
    void halt() { halted_ = true; }
    /// What is stuck, or waits for room, goes on.
    void try_again();
    /// Writes that were not allowed to begin are asked for again.
    void go_on();
    /// What is stuck, or could not be begun, is answered so; of an engine that is halted also what
    /// fails later.
    void give_up(Error why);

    /// Whether data can go by way of the controller, around a link that is broken.
    bool can_detour() const { return own_.windows() >= options_.windows; }
    /// These two do not reach each other, though both are there: what would go between them is
    /// planned by way of the controller, until try_links(). True: it was not known.
    bool avoid(std::uint8_t place, std::uint8_t reporter);
    /// Links that were broken are used again. One that works is told of.
    void try_links();
    Mask unreached_by(std::uint8_t place) const;
    bool misses_host(std::uint8_t place) const;

    /// The time, before whatever else is told. Who never says it is taken to be very quick.
    void note_time(Instant now) { now_ = now; }
    /// When it is to be looked for boxes that are late.
    std::optional<Instant> deadline() const;
    void tick(Instant now);
    /// Boxes that reads go around, as they answer too slowly.
    Mask slow_boxes() const { return paces_.slow(); }

    void submit(HostRequest& request);
    void submit(UpkeepRequest& request);
    void answered(CommandTicket ticket, const wire::ArrayAnswer& answer);
    /// Nothing more will come from this box: what it has not answered has failed. Returns what may
    /// still be open there, to be aborted before it is used again.
    std::vector<wire::TransactionNumber> lost(const wire::BoxIdentity& box);
    /// One command of a box that is there will not be answered.
    void lost(CommandTicket ticket);

    /// Everything below has ended at all who took part in it, lastingly, or they are no members.
    wire::TransactionNumber settled() const;
    /// The last that was begun.
    wire::TransactionNumber last_transaction() const;
    /// The last of which this box has said that it is lasting there: its journal knows it, or that
    /// all of its time are settled, as long as the disk is what it was.
    std::optional<wire::TransactionNumber> prepared_by(const wire::BoxIdentity& box) const;
    /// What it has now is another part.
    void forget_prepared(const wire::BoxIdentity& box) { prepared_.erase(box); }
    /// Whether this one is being committed: it will be, whatever happens.
    bool is_decided(wire::TransactionNumber transaction) const;
    /// Whether this one has not ended. Of one that has, all who took part have kept its end, and
    /// for the others somebody owes it: owes_end().
    bool is_under_way(wire::TransactionNumber transaction) const;
    /// What has been executed before: of a journal, and of this engine.
    ExecutedCommands& executed() { return executed_; }

    std::size_t requests() const { return runs_.size(); }
    const VolumeCounters& counters() const { return counters_; }
    bool has_stuck() const;
    /// Of hosts, that have not begun or must begin again.
    std::size_t writes_waiting() const;
    /// What is being written now, or will be written again.
    std::vector<Band> bands_under_way() const;

private:
    enum class Stage : std::uint8_t {
        waiting,  ///< for its rows, for a window, or for the volume to be put right
        running,  ///< a turn of orders is out
        unheard,  ///< some were to commit and nobody knows whether they have
        ending,   ///< windows are being closed
    };
    /// Blocks of one row that are not what was written, and the boxes they are of.
    struct Ailing {
        std::uint64_t stripe = 0;
        std::uint32_t offset = 0;  ///< in the chunk
        Mask places = 0;
        /// When it was found: under which volume, and how many blocks had been healed by then.
        wire::Generation generation{};
        std::uint64_t healed_before = 0;
    };
    struct Run {
        HostRequest* request = nullptr;  ///< none of both once it is answered
        wire::HostSession host{};        ///< who asked, of what is answered too
        wire::HostIdentity host_identity{};
        std::uint64_t host_command = 0;
        UpkeepRequest* upkeep = nullptr;
        bool is_upkeep = false;
        std::vector<Band> bands;
        std::uint64_t length = 0, done = 0, part = 0;  ///< octets; of upkeep: of the chunk
        bool exclusive = false;
        Stage stage = Stage::waiting;
        bool begun = false;                ///< has been planned before: its rows are its own
        bool stuck = false;                ///< until set_volume() or try_again()
        bool held = false;                 ///< until go_on(): it may not write yet
        bool failed = false;               ///< an order of this turn was
        bool committed = false;            ///< orders that write home were sent
        bool decided = false;              ///< by a journal's rule: not all have acknowledged it
        bool disagreed = false;            ///< what was prepared once did
        bool anew = false;                 ///< parity must be
        std::vector<std::size_t> unheard;  ///< commits whose answer was lost: sent again
        Mask uncommitted = 0;  ///< places that were to write home and did not say that they had
        std::vector<Ailing> ailing;  ///< to be healed before it goes on; the last comes first
        bool heals = false;          ///< that is what its plan does
        bool sick = false;           ///< it failed for what it found
        bool detours = false;        ///< its plan goes by way of the controller, around a link
        unsigned times_sick = 0;
        unsigned passed_over = 0;
        std::optional<Error> refusal;  ///< it is not tried again
        Plan plan;
        std::vector<Digest> digests;
        std::uint64_t inquest_end = 0;  ///< up to there it goes slice by slice: something is wrong
        std::vector<Testimony> row;     ///< what was said of one
        std::size_t next = 0;           ///< the first order of the turn to come
        std::size_t unanswered = 0;
        Mask open = 0;                   ///< boxes whose window is open
        std::optional<OwnWindow> own{};  ///< the controller's window, while it is open
        std::uint32_t window = 0;
        wire::TransactionNumber transaction{};
        wire::Generation generation{};  ///< of the volume it was planned for
        // volume_hedging.cpp
        Mask late = 0;  ///< boxes it no longer waits for: it is served by the others
        Instant planned_at{};
        Instant late_since{};           ///< they were asked then
        Mask around = 0;                ///< boxes its plan does without, though they are there
        bool moves_over = false;        ///< it ends where it is, to begin anew around a box
        bool waits_it_out = false;      ///< nobody can serve it but who is late
        bool lacks_window = false;      ///< until one is free at all the boxes it needs
        std::uint64_t served = 0;       ///< octets that a box that was late has brought after all
        bool left_behind = false;       ///< it is what a run no longer waits for; the rest is of it
        Run* of = nullptr;              ///< the run, while that could still do with it
        std::uint64_t done_before = 0;  ///< by the run, when it was left
        bool sufficient = false;        ///< with it the run's part is done
        bool released = false;          ///< the box was told to let it be
    };
    struct Sent {
        std::list<Run>::iterator run;
        Party to{};
        wire::BoxIdentity box{};  ///< that had the place when it was sent
        bool closes = false, commits = false;
        std::vector<Party> parties;
        std::size_t order = 0;  ///< which of the plan's
        Instant since{};
        bool ends = false;  ///< it is no order, but ends what the box has of the request
    };
    using RunPlace = std::list<Run>::iterator;

    static bool is_inquest(const Run& run) { return run.done < run.inquest_end; }
    static bool is_over(const Run& run) { return !run.request && !run.upkeep && !run.decided; }
    static bool is_due(const Run& run);
    static bool clash(const Run& a, const Run& b);
    bool may_start(const Run& run) const;
    bool upkeep_may_start(Run& run) const;
    void start_what_may();
    bool start_first_of(std::list<Run>& runs);
    void start(RunPlace run);
    bool goes_in_band(const Run& run) const;
    Result<Plan> plan_part(const Run& run, std::uint64_t part) const;
    Result<Plan> plan_flush_if_any() const;
    Result<Plan> plan_next(Run& run) const;
    Result<Plan> plan_fitting(Run& run) const;
    Result<void> make_up_for(Run& run) const;
    bool is_held(Run& run);

    // volume_mending.cpp: blocks that are not what was written
    void note_corrupt(const Sent& sent, const wire::ArrayAnswer& answer);
    Result<Plan> plan_healing(Run& run);
    void healed(Run& run);
    void note_testimony(const Sent& sent, const wire::ArrayAnswer& answer);
    void judge_row(Run& run);

    // volume_hedging.cpp: boxes that are late
    bool is_host_read(const Run& run) const;
    bool is_awaited(const Sent& sent) const;
    Result<Plan> plan_reading(const Run& run, Range range, const PlanOptions& options) const;
    std::optional<Health> health_without(Mask boxes) const;
    void look_in(Duration span);
    void hedge_what_is_late();
    void hedge(RunPlace run, Mask late);
    bool may_hedge(Mask late);
    void leave_behind(RunPlace run, Mask late);
    void left_answered(const Sent& sent, const wire::ArrayAnswer& answer, bool is_lost);
    void release_left(RunPlace left);
    void left_is_over(RunPlace left);
    void let_go_of_left(Run& run);
    void blame_the_late(Run& run);
    void note_answered(const Sent& sent, const wire::ArrayAnswer& answer, bool is_lost);
    std::optional<std::uint32_t> take_window(const Plan& plan);
    void give_window_back(std::uint32_t window);
    void windows_changed();
    wire::TransactionNumber next_transaction(std::uint32_t window);
    bool writes_have_their_windows(const Run& run) const;
    static void tell(Run& run, WaitsFor next, Instant now);
    static WaitsFor waits_for(const Run& run, Phase phase);

    // volume_detours.cpp: links that are broken
    bool must_detour(const Plan& plan, const Run& run) const;
    bool goes_around_host(const Sent& sent);
    void note_links(const Sent& sent);
    void refuse(RunPlace run, Error why);
    void erase(RunPlace run);
    void send_turn(RunPlace run);
    void send_own(RunPlace run, const Order& order, std::span<const PartyAccess> accesses);
    void count(const Order& order);
    void send_ends(RunPlace run, Mask boxes, wire::ArrayAction action);
    void turn_ended(RunPlace run);
    void run_failed(RunPlace run);
    void answer(Run& run, Result<void> outcome);
    void judge_digests(Run& run);
    bool agrees(Run& run);
    void decide(RunPlace run);
    bool executed_before(const Run& run) const;
    wire::TransactionNumber number_of(std::uint64_t count) const;
    void order_failed(const Sent& sent, const wire::ArrayAnswer& answer);
    CommandTicket remember(Sent sent);
    void take_answer(CommandTicket ticket, const wire::ArrayAnswer& answer, bool is_lost);
    void send_order(RunPlace run, std::size_t index, std::span<const PartyAccess> accesses);
    bool can_repeat(const Sent& sent) const;
    void ask_again(RunPlace run);
    bool counts(const Run& run, const Order& order) const;
    void carry_end(RunPlace run, BoxIndex box, wire::ArrayAction action, Sent sent);
    void count_unheard(Run& run);
    wire::ArrayAddress address_of(BoxIndex box) const;
    OrderEnvelope envelope_of(const Run& run, BoxIndex box);
    std::vector<PartyAccess> accesses_of(const Run& run);
    SteeringTag own_window_tag(std::uint32_t window, wire::TransactionNumber transaction) override {
        return owner_.own_window_tag(window, transaction);
    }
    void own_order_ended(CommandTicket ticket, const OrderResult& result) override;

    VolumeEngineOwner& owner_;
    VolumeEngineOptions options_;
    OwnWork own_;
    std::optional<Layout> layout_;
    Health health_;
    wire::ClusterIdentity cluster_{};
    wire::Epoch epoch_{};
    wire::ArrayVolume volume_{};
    bool journal_ = false;
    ExecutedCommands executed_;
    std::list<Run> runs_;     ///< hosts', in the order they came
    std::list<Run> upkeeps_;  ///< ours
    std::list<Run> left_;     ///< of runs that go around a box: what that box still does
    BoxPaces paces_;
    Instant now_{};
    std::optional<Instant> look_at_;  ///< for boxes that are late
    unsigned hedges_spent_ = 0;       ///< in reads that went well: what they have not paid for
    bool lacks_windows_ = false;      ///< somebody does
    std::map<CommandTicket, Sent> sent_;
    std::map<wire::BoxIdentity, wire::TransactionNumber> prepared_;
    std::deque<std::uint32_t> free_windows_;             ///< the one longest unused first
    using Link = std::pair<std::uint8_t, std::uint8_t>;  ///< the lower place first
    using HostLink = std::pair<wire::HostSession, std::uint8_t>;
    /// Planned around; and used again, on trial. By who did not reach the other.
    std::map<Link, std::uint8_t> broken_links_, tried_links_;
    std::set<HostLink> broken_host_links_, tried_host_links_;
    std::uint64_t transactions_ = 0, tickets_ = 0;
    VolumeCounters counters_;
    std::optional<Error> given_up_;
    bool halted_ = false;
    bool starting_ = false;
};

}  // namespace weft::raid
