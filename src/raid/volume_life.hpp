// SPDX-License-Identifier: Apache-2.0
// The inside of VolumeManager. Everything that comes in changes what is known and nothing else;
// then, once, on the way out, it is seen to that the volume becomes what it should be (settle) and
// that its upkeep goes on (work_on). So nothing runs inside itself, and what has to be done follows
// from what is known, not from the order in which it came to be known.
#pragma once

#include <deque>
#include <list>
#include <set>

#include "raid/in_doubt.hpp"
#include "raid/lasting_map.hpp"
#include "raid/membership.hpp"
#include "raid/rebuild.hpp"
#include "raid/timer.hpp"
#include "raid/volume_manager.hpp"
#include "raid/write_log.hpp"

namespace weft::raid {

class VolumeManager::Life final : private VolumeEngineOwner {
public:
    Life(VolumeManagerOwner& owner, const VolumeManagerOptions& options);

    Result<void> start(wire::ClusterIdentity cluster, wire::Epoch epoch,
                       const wire::ArrayVolume& volume, const VolumeRecords& records);
    void box_up(const wire::BoxIdentity& box, const BoxStanding& standing);
    void box_down(const wire::BoxIdentity& box);
    void answered(CommandTicket ticket, const wire::ArrayAnswer& answer, ConstBuffer data_in);
    void lost(CommandTicket ticket);
    void stored(Result<void> outcome);
    void submit(HostRequest& request);
    void note_time(Instant now) {
        now_ = now;
        engine_.note_time(now);
    }
    std::optional<Instant> deadline() const;
    void tick(Instant now);
    Result<void> fail(std::uint8_t place);
    Result<void> re_add(std::uint8_t place);
    Result<void> replace(std::uint8_t place, const wire::BoxIdentity& box);
    Result<void> pause_rebuild(bool paused);
    Result<void> limit_rebuild(std::uint64_t octets_per_second);
    Result<void> scrub(bool repair);
    Result<void> stop_scrub();
    Result<void> grow(std::uint64_t stripes);
    VolumeStatus status() const;
    const wire::ArrayVolume& volume() const { return volume_; }
    std::uint64_t size() const;

private:
    /// Then a broken one is tried again.
    static constexpr Duration links_rest = std::chrono::seconds(60);

    struct BoxState {
        BoxFacts facts;
        wire::Generation generation{};
        std::uint64_t data_length = 0;
        std::uint64_t boot = 0;    ///< which life of its process; 0: not known
        bool lost_power = false;   ///< it has begun another since it was last believed
        bool has_session = false;  ///< it can be told to end what it is doing, if nothing else
        std::set<wire::TransactionNumber> left_open;  ///< to be ended before it is up again
        bool must_end = false;                        ///< what is left open there, once that may be
        bool greeted = false;              ///< in this session; it is up unless it is held back
        std::optional<Recalled> recalled;  ///< of its journal, in this session
        bool needs_repair = false;         ///< it does not do what it must, and cannot be spared
        /// Since when it has not reached the controller's memory, though it was asked to.
        std::optional<Instant> cut_off_since{};
        unsigned refusals = 0;       ///< in a row, to hear what the volume is, or answers lost
        bool out_for_links = false;  ///< it failed, and nothing else is wrong with it
        unsigned fallen_out = 0;     ///< so often, for that
        unsigned minutes_left = 0;   ///< until it is tried again; or forgiven, where it is back
    };
    /// A command of the manager's own.
    struct Told {
        wire::BoxIdentity box;
        enum class What : std::uint8_t { greeting, volume, recall, outcome } what{};
        wire::Generation generation{};
        std::uint64_t stripes = 0;
        wire::TransactionNumber transaction{};
        wire::ArrayTransactionState outcome{};  ///< that a transaction is told to have
    };
    /// A box has said that it does not do what it must.
    struct ProvenFailure {
        std::uint8_t place = 0;
        wire::ArrayOutcome why{};
    };
    /// What rebuilds have in common, and what is kept of them.
    struct RebuildOrders {
        bool paused = false;
        std::uint64_t octets_per_second = 0;
    };
    struct Place {
        std::optional<RegionMap> lacks;  ///< of one that is absent: what it will have to be given
        std::optional<LastingMap> lasting;  ///< the same as the store has it, until it is whole
        bool missed = false;                ///< its box was away since the engine last heard of it
        bool blank = false;                 ///< its box has just been given an empty part
        wire::TransactionNumber left_at{};  ///< the last that was begun when it became absent
        std::optional<Rebuild> rebuild;     ///< of one that is being rebuilt
        std::uint64_t rebuilds = 0;         ///< begun: tells the work of one from that of another
        std::uint64_t lasting_mark = 0;     ///< stripes of it that outlive the power
        std::uint64_t flushing_mark = 0;    ///< will be lasting when a flush has ended
        bool flushing = false;
        std::uint64_t octets = 0;  ///< rebuilt so far
        bool keep = false;         ///< its record is to be written anew
        Timer spare;
        Timer full;            ///< until it is looked whether it still has no room
        unsigned refused = 0;  ///< for lack of room, since that was last looked at
        wire::ArrayOutcome refused_for{};
        bool said_full = false;
    };
    struct Work final : UpkeepRequest {
        enum class Purpose : std::uint8_t { rebuild, save, scrub, repair, mend, flush };
        explicit Work(Life& life) : life_(life) {}
        void completed(Result<void> outcome) override { life_.work_ended(*this, outcome); }
        Purpose purpose{};
        std::uint8_t place = 0;
        std::uint64_t round = 0;  ///< which rebuilding of the place, or which scrub
        bool busy = false;

    private:
        Life& life_;
    };
    enum class Storing : std::uint8_t { nothing, volume, records };
    /// On the way out of the outermost call everything is put right.
    class Visit {
    public:
        explicit Visit(Life& life) : life_(life) { ++life_.visits_; }
        ~Visit() {
            if (life_.visits_ == 1) life_.put_right();
            --life_.visits_;
        }
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;

    private:
        Life& life_;
    };

    // volume_manager.cpp
    void put_right();
    void see_to_it();
    void say(VolumeEventKind kind) { say({.kind = kind, .place = {}}); }
    void say(const VolumeEvent& event) { owner_.event(event); }
    void say_of(VolumeEventKind kind, std::uint8_t place, wire::ArrayOutcome why = {},
                std::uint64_t number = 0);
    Result<void> check_place(std::uint8_t place) const;

    // volume_settling.cpp: what must be lasting
    void settle();
    bool starts_yet();
    void keep(wire::ArrayVolume next);
    void keep_records();
    bool tell_members();
    void tell(const wire::BoxIdentity& box, std::uint8_t place);
    void told(const Told& what, const wire::ArrayAnswer& answer);
    bool can_serve() const;
    void apply();
    bool is_blank(std::uint8_t index) const;
    RegionMap lacks_of(std::uint8_t index, const wire::ArrayMember& was) const;
    void take_places(const wire::ArrayVolume& before);
    void leave_place(std::uint8_t index);
    void begin_rebuild(std::uint8_t index, const wire::ArrayMember& was);
    void stop();
    void depose();
    Health health() const;
    bool is_changing() const;

    // volume_dirty.cpp: what is in question, lastingly
    bool keeps_intent() const;
    bool loses_somebody() const;
    bool may_write(std::span<const Band> bands) override;
    void recall_dirty(std::span<const DirtyRecord> records);
    void recall_place(std::uint8_t index);
    DirtyRecord::Boots boots() const;
    DirtyRecord dirty_record(std::uint8_t place, LastingMap& map);
    void keep_lacks(const wire::ArrayVolume& next, std::vector<MetadataChange>& changes);
    void lacks_stored(const wire::ArrayVolume& before, bool good);
    void add_dirty(std::vector<MetadataChange>& changes);
    void forget_intent();
    void has_begun_anew(std::optional<std::uint8_t> place, BoxState& box);
    void believe(std::uint8_t index);
    bool owes_a_loss(wire::HostSession session);

    // volume_boxes.cpp: who is there, and who is to blame
    BoxState* state_of(std::uint8_t place);
    std::optional<std::uint8_t> place_of(const wire::BoxIdentity& box) const;
    void greet(const wire::BoxIdentity& box, BoxState& state);
    void end_what_is_open(const wire::BoxIdentity& box, BoxState& state);
    void greeted(const Told& what, const wire::ArrayAnswer& answer);
    void tell_end(const wire::BoxIdentity& box, wire::ArrayAction action, const Told& what);
    bool can_count_out(std::uint8_t place) const;
    bool is_of_the_past(std::uint8_t place) const;
    void count_out(std::uint8_t place, wire::ArrayOutcome why);
    void judge_failures();
    void note_cut_off(std::uint8_t place, wire::ArrayOutcome why);
    bool is_trusted(std::uint8_t place) const;
    std::map<wire::BoxIdentity, BoxFacts> facts() const;
    CommandTicket remember(const Told& what);
    void carry(BoxIndex box, CommandTicket ticket, const EncodedOrder& order) override;
    SteeringTag window_tag(BoxIndex box, std::uint32_t window,
                           wire::TransactionNumber transaction) override;
    SteeringTag own_window_tag(std::uint32_t window, wire::TransactionNumber transaction) override;
    void in_trouble(const Trouble& trouble) override;
    void writing(std::span<const Band> bands) override;
    void doubtful(std::span<const Band> bands) override;
    void block_corrupt(BoxIndex box, std::uint64_t stripe) override;
    void block_healed(BoxIndex box, std::uint64_t stripe) override;
    void block_stale(BoxIndex box, std::uint64_t home) override;
    void block_lost(BoxIndex box, std::uint64_t stripe) override;
    void audit_failed(std::span<const Band> bands) override;

    // volume_troubles.cpp: boxes that are there, and slow, full or cut off from somebody
    void no_room(BoxIndex box, wire::ArrayOutcome why) override;
    void ask_again_who_had_none(std::uint8_t place);
    void look_for_room(std::uint8_t place, Instant now);
    void box_slow(BoxIndex box, Duration waited, Duration others) override;
    void box_quick(BoxIndex box) override;
    void try_links_again();
    void link_suspected() override { link_timer_.ask(links_rest); }
    void link_changed(LinkReport what, BoxIndex box, BoxIndex other) override;
    void host_link_changed(LinkReport what, BoxIndex box) override;
    void reaches_controller(BoxIndex box) override;

    // volume_recall.cpp: what journals know, and what becomes of it
    bool has_journal() const { return volume_.consistency == wire::ArrayConsistency::journal; }
    bool is_counted_on(const wire::BoxIdentity& box) const;
    void ask_for_recall(const wire::BoxIdentity& box);
    void recalled(const Told& what, const wire::ArrayAnswer& answer, ConstBuffer data_in);
    static bool has_committed(const BoxState& box, wire::TransactionNumber transaction);
    static bool knows(const Recalled& recalled, wire::TransactionNumber transaction);
    bool has_forgotten(const wire::BoxIdentity& box, const Recalled& recalled) const;
    bool take_as_put_back(std::uint8_t index);
    std::optional<std::uint8_t> put_back_before_us(
        const std::map<std::uint8_t, Recalled>& known) const;
    void note_executed(const Recalled& recalled);
    void note_missed(std::uint8_t place, std::uint64_t home, std::uint64_t home_end);
    bool lacks_are_due() const;
    void end_what_may_be();
    bool resolve_what_is_in_doubt();
    void do_without(Mask owing);
    bool tell_outcome(const Resolution& resolution);
    void outcome_told(const Told& what, const wire::ArrayAnswer& answer);
    void let_in_who_may();
    bool is_closed(std::uint8_t place) const;
    MembershipWishes wishes() const;
    void end_is_pending(const wire::BoxIdentity& box, wire::TransactionNumber transaction) override;
    std::optional<wire::TransactionNumber> lowest_pending_end() const override;
    bool is_host_here(wire::HostSession session) const override {
        return owner_.is_host_here(session);
    }
    void writers_gone(wire::HostSession session, std::uint64_t command) override {
        owner_.writers_gone(session, command);
    }

    // volume_healing.cpp: rebuilding, scrubbing, flushing
    void work_on();
    Work* idle_work();
    bool is_whole() const;
    std::size_t busy_works() const;
    void begin(Work& work, Work::Purpose purpose, UpkeepKind kind, std::uint64_t stripe,
               std::uint8_t place);
    bool rebuild_more(bool stuck);
    bool save_mark(std::uint8_t place);
    bool scrub_more();
    bool mend_more();
    void work_ended(Work& work, Result<void> outcome);
    void rebuilt(Work& work, bool good);
    bool is_of_this_scrub(const Work& work) const;
    void scrubbed(Work& work, bool good);
    void end_scrub_if_done();

    VolumeManagerOwner& owner_;
    VolumeManagerOptions options_;
    VolumeEngine engine_;
    wire::ClusterIdentity cluster_{};
    wire::Epoch epoch_{};
    wire::ArrayVolume volume_{};   ///< as the store has it
    wire::ArrayVolume applied_{};  ///< as the engine has it
    wire::ArrayVolume pending_{};  ///< as the store is about to have it
    MembershipWishes wishes_;
    std::map<wire::BoxIdentity, BoxState> boxes_;
    std::array<Place, limits::boxes> places_;
    WriteLog log_{0};
    LastingMap intent_{0};  ///< of a volume without a journal: where writes may be under way
    RegionMap recent_{0};   ///< where they were, since it was last seen to
    /// As the store has them, and as it is about to.
    DirtyRecord::Boots kept_boots_{}, storing_boots_{};
    bool inherited_ = false;    ///< the log has what a controller before us did not flush
    bool writes_held_ = false;  ///< until nobody is on the way out
    std::set<wire::HostSession> writers_;           ///< since all was flushed
    std::set<wire::HostSession> owed_, owed_told_;  ///< hosts whose next flush fails, and has
    std::map<CommandTicket, Told> told_;
    std::uint64_t tickets_ = 0;
    std::vector<CommandTicket> undeliverable_;
    std::vector<ProvenFailure> failures_;
    bool retry_wanted_ = false;  ///< requests wait to be tried again
    Storing storing_ = Storing::nothing;
    bool started_ = false, starting_ = false, serving_ = false, deposed_ = false, given_up_ = false;
    bool start_expired_ = false, deposing_ = false;
    bool back_in_time_ = false;
    Mask disbelieved_ = 0;   ///< places whose part was one of the past: no say in what is in doubt
    bool resolved_ = false;  ///< nothing of earlier controllers is in doubt any more
    unsigned visits_ = 0;
    bool putting_right_ = false, changed_ = false;

    RebuildOrders rebuild_orders_;
    std::list<Work> works_;
    ScrubStatus scrub_;
    std::uint64_t scrubs_ = 0;  ///< begun: tells the work of one from that of another
    std::uint64_t scrub_next_ = 0;
    std::vector<std::uint64_t> scrub_again_, to_repair_;
    std::set<std::uint64_t> lost_;        ///< stripes with blocks of which it was said
    RegionMap doubtful_{0};               ///< stripes whose parity is to be made anew
    std::vector<std::uint64_t> to_mend_;  ///< of them, those of one region that are next
    bool flushing_ = false;

    Timer start_timer_, stop_timer_, retry_timer_, calm_timer_, store_timer_, flush_timer_,
        rest_timer_, rate_timer_, intent_timer_, loss_timer_, link_timer_, visit_timer_;
    Instant now_{};
    Duration retry_after_{};
    std::uint64_t rate_debt_ = 0;  ///< octets begun since the limit was last waited for
};

}  // namespace weft::raid
