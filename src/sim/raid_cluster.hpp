// SPDX-License-Identifier: Apache-2.0
// A volume of production boxes and managers on simulated machines, in virtual time. Data moves over
// production RDMA links between them: connections that are shared, prove themselves, end and are
// made again. Commands to boxes, their disks and the store are modelled beside that, each with a
// latency that is drawn. Boxes lose their session, their power, their disk's honesty; controllers
// follow each other, and the one before goes on sending.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>

#include "raid/records.hpp"
#include "raid/volume_manager.hpp"
#include "sim/raid_habits.hpp"
#include "sim/raid_host.hpp"
#include "sim/raid_machine.hpp"
#include "sim/raid_message.hpp"
#include "sim/raid_mutation.hpp"
#include "wire/array_host.hpp"

namespace weft::sim {

class RaidCluster {
public:
    RaidCluster(RaidAgenda& agenda, Complaints& complaints, const RaidHabits& habits,
                RaidMutation mutation);
    ~RaidCluster();

    /// Those the volume begins with; spares are numbered behind them.
    unsigned boxes() const { return layout_.boxes(); }
    unsigned machines() const { return static_cast<unsigned>(places_.size()); }
    bool is_up(unsigned i) const { return places_[i].session != 0; }
    raid::Box& box(unsigned i) { return places_[i].machine->box; }
    RaidMachine& machine(unsigned i) { return *places_[i].machine; }
    RaidDisk& disk(unsigned i) { return *places_[i].disk; }
    bool has_part(unsigned i) const { return places_[i].machine != nullptr; }
    /// Which machine has a place of the volume now, and which place a machine has.
    unsigned machine_at(std::uint8_t place) const;
    std::optional<std::uint8_t> place_of(unsigned i) const;
    static std::string machine_name(unsigned i) { return "box" + std::to_string(i); }
    wire::BoxIdentity identity(unsigned i) const { return places_[i].identity; }
    /// For whatever it is told: it knows the time by then.
    raid::VolumeManager& manager();
    const raid::Layout& layout() const { return layout_; }
    std::uint64_t epoch() const { return epoch_; }

    // What happens to boxes.
    void drop(unsigned i);
    void bring(unsigned i);
    void cut_power(unsigned i);
    /// True: it had to be.
    bool restart_if_failed(unsigned i);
    /// It takes nothing any more, whether or not somebody has noticed.
    bool has_lost_its_journal(unsigned i) const;
    // Machines that stand still, as after SIGSTOP, and go on by themselves. A box that says nothing
    // for as long as the controller is patient loses its session, and stays without one.
    void pause_box(unsigned i, Duration duration);
    void resume_box(unsigned i);
    bool is_paused(unsigned i) const { return places_[i].pauses_until.has_value(); }
    bool is_any_paused() const;
    void pause_controller(Duration duration);
    void pause_host(unsigned number, Duration duration);
    /// What a box is sending does not arrive, until it is let go.
    void hold_transfers(unsigned i, bool held);
    bool holds_transfers(unsigned i) const { return !places_[i].held_links.empty(); }
    /// Another takes office. The one before goes on sending, if `old_goes_on`.
    void take_over(bool old_goes_on);
    /// Its disk is another, and empty.
    void wipe(unsigned i);
    /// Its disk is as it was once.
    void put_back(unsigned i, std::span<const std::byte> image);
    /// The file system under its disk is full, for so many of the blocks; at home alone, or for
    /// whatever is written.
    void become_full(unsigned i, bool at_home_alone, unsigned percent, std::uint64_t draw);
    void make_room(unsigned i);
    bool lacks_room(unsigned i) const { return places_[i].disk && places_[i].disk->lacks_room(); }
    bool anybody_lacks_room() const;
    /// A box that is up and has no part takes a place, as people or needs_spare() want it.
    Result<void> replace(std::uint8_t place);

    // What happens to links: one box reaches another no more, or a host. Its transfers fail; what
    // the others begin does not, unless they are cut off too.
    void cut_link(unsigned from, unsigned to);
    void cut_host_link(unsigned from, unsigned host);
    void mend_links();
    bool has_cut_links() const { return !cut_off_.empty(); }

    // Hosts. They are made when they are first asked for.
    RaidHost& host(unsigned number);
    /// Says hello to the controller in office, if it has not, and asks as who it is there.
    void attach(unsigned number, raid::HostRequest& request);
    void submit(raid::HostRequest& request) { submit_to(*offices_.back(), request); }
    /// What the controller in office tells a host with an answer it gives now, and how it hears it.
    std::vector<wire::HostNews> news_for(unsigned number);
    void hear(unsigned number, const std::vector<wire::HostNews>& news);
    void restart_host(unsigned number);

    // What happens to disks at rest. Homes are octets of a part's data.
    void rot_home(unsigned i, std::uint64_t home, unsigned bit);
    void rot_checksum_of(unsigned i, std::uint64_t home, unsigned bit);
    void rot_superblock(unsigned i, unsigned copy, std::uint64_t octet, unsigned bit);
    std::uint64_t home_bytes() const { return habits_.stripes * layout_.chunk_bytes(); }
    /// Where on the disk of a part something lies, and back: none if it is not data.
    std::uint64_t offset_of(unsigned i, std::uint64_t home) const;
    std::optional<std::uint64_t> home_at(unsigned i, std::uint64_t offset) const;

    /// To the next moment something is due; false if nothing is.
    bool pass_time();

    // For scripts. What may not pass stays where it is, until it is let go.
    std::function<bool(const RaidMessage&)> may_pass;
    bool store_is_away = false;  ///< nothing that it is asked is answered
    std::size_t parked() const { return parked_.size(); }
    void let_go();
    /// The volume as the store has it.
    std::optional<wire::ArrayVolume> stored_volume() const;
    /// And how far it knows a place to be rebuilt, in stripes.
    std::uint64_t rebuild_mark(unsigned place) const;
    /// And whether it knows that nothing a place has is of any use.
    bool is_noted_to_lack_all(std::uint8_t place) const;

    // S14, S5, S7, S17.
    void check_quiet();
    void check_parity();
    void check_epochs();
    void check_assembly();
    /// S8: what the controller goes by is lasting. When a request has just been answered.
    void check_membership();
    /// S9, S15: what absent members and rebuilt ones lack is noted in the store. When nothing is
    /// being written.
    void check_dirty();

    unsigned store_errors = 0;       ///< so many of the next changes fail
    unsigned parts_refused = 0;      ///< so many of the next are not made: a disk is full
    bool gives_spares = true;        ///< when the manager needs one
    std::uint64_t back_pressed = 0;  ///< orders that were answered by "no room"
    unsigned damages = 0;  ///< so many of the next transfers between boxes, of hosts' writes
    /// What becomes of what is written to a machine's disk.
    std::function<RaidDisk::Fate(unsigned i, std::uint64_t offset, std::size_t size)> write_fate;
    std::function<void(const raid::VolumeEvent&)> on_event;
    /// Of a box's or a controller's connections for transfers.
    std::function<void(const std::string& machine, const node::ArrayLinks::Event&)> on_link;
    std::function<void(unsigned i)> on_silence;  ///< a box has lost its session so
    // What was done to whom, for RaidBlameRule: since when it is over, or `now` if it is not.
    std::optional<Instant> gone_at(unsigned i, Instant now) const;
    std::optional<Instant> cut_at(unsigned i, Instant now) const;
    std::optional<Instant> cut_between(unsigned one, unsigned other, Instant now) const;
    std::optional<Instant> host_cut_at(unsigned i, Instant now) const;
    unsigned index_of(const wire::BoxIdentity& box) const;

    /// By all controllers.
    std::uint64_t hedged_reads() const;
    /// Windows that could not be opened, by all who are there.
    std::uint64_t windows_refused() const;
    /// Octets moved by all who are there, since they began.
    std::uint64_t transferred() const;

private:
    struct Office;
    struct Place {
        wire::BoxIdentity identity{};
        std::unique_ptr<RaidDisk> disk;
        std::unique_ptr<RaidMachine> machine;
        std::uint64_t session = 0;  ///< of the controller in office; 0: none
        std::optional<Instant> pauses_until;
        std::set<LinkId> held_links;  ///< whose octets do not arrive
        bool waits_for_room = false;  ///< to obey who is in office
        std::uint64_t boot = 1;       ///< another after every loss of power
        wire::Epoch obeyed{};
        std::optional<Instant> gone_at;  ///< when it was last without a session, or cut off
    };
    struct Guest {
        std::unique_ptr<RaidHost> host;
        std::uint64_t epoch = 0;  ///< of the controller that has welcomed it last; 0: none
        node::ArraySecret secret{};
        std::uint32_t heard = 0;  ///< the number of the last news
    };
    struct Carried {
        std::uint64_t session;
        raid::CommandTicket ticket;
        bool is_late;  ///< when it came there, the box obeyed another controller already
        RaidMessage message;
    };
    /// An order; or another box that this one is to forget.
    struct Command {
        raid::CommandTicket ticket;
        raid::EncodedOrder order;
        std::optional<unsigned> forgets = std::nullopt;
    };
    struct Session {
        unsigned place;
        Office* office;
        std::deque<Command> queue;
    };

    void start_machine(unsigned i);
    void announce(unsigned i);
    bool obeys(unsigned i);
    void carry(Office& office, const wire::BoxIdentity& box, raid::CommandTicket ticket,
               const raid::EncodedOrder& command);
    void deliver(std::uint64_t session);
    void answered(const Carried& carried, const wire::ArrayAnswer& answer,
                  std::vector<std::byte> data);
    void submit_to(Office& office, raid::HostRequest& request);
    // Who knows whom, and by which secrets: raid_cluster_links.cpp.
    static node::ArraySecret secret_between(unsigned one, unsigned other, std::uint64_t epoch);
    static node::ArraySecret secret_of_controller(std::uint64_t epoch);
    static node::ArraySecret secret_of_host(wire::HostSession session);
    void introduce(unsigned i);
    void forget(unsigned i);
    void forget_at(unsigned i, unsigned other);
    void admit(unsigned i, const Guest& guest);
    void welcome(unsigned number, Guest& guest);
    void writers_gone(wire::HostSession session, std::uint64_t command);
    bool is_host_here(wire::HostSession session) const;
    void fall_silent(unsigned i);
    bool passes(const RaidMessage& message) const { return !may_pass || may_pass(message); }
    bool is_audited(const wire::ArrayOrderHeader& header) const;
    void heard(raid::CommandTicket ticket, const wire::ArrayAnswer& answer, ConstBuffer data);
    void create_part(Office& office, const wire::BoxIdentity& box, raid::CommandTicket ticket,
                     const wire::ArraySuperblock& superblock);
    void store(Office& office, std::vector<raid::MetadataChange> changes);
    void start_office();
    void listen_to(RaidStation& station, RaidTransfers& transfers);
    void bury(unsigned i);
    void made_part(unsigned i, wire::ArraySuperblock superblock);
    std::optional<unsigned> free_spare() const;
    wire::ArraySuperblock laid_out(wire::ArraySuperblock superblock) const;
    Buffer chunk_of(std::uint8_t place, std::uint64_t stripe) const;
    /// Which column is not what the code says of the others.
    std::optional<raid::Column> odd_column(std::uint64_t stripe) const;
    bool is_damaged(std::uint64_t stripe) const;
    struct Noted;
    Noted noted() const;
    void check_checkpoints();
    void check_stable(std::uint8_t place, std::uint64_t stripes, const Noted& noted);

    // What is broken on purpose: raid_cluster_mutations.cpp.
    bool is_swallowed(unsigned i, const raid::EncodedOrder& order) const;
    void forget_epoch(unsigned i);
    void tamper_with(unsigned i, const Office& office, raid::EncodedOrder& order);
    void tamper_with(const Carried& carried, wire::ArrayAnswer& answer,
                     std::vector<std::byte>& data) const;
    bool is_dropped(const raid::MetadataChange& change) const;
    bool is_passed_by(Office& office, const raid::HostRequest& request);
    void stop_rebuilds();
    void fence(const Carried& carried);

    static std::string name_of(unsigned i) { return machine_name(i); }

    RaidAgenda& agenda_;
    Complaints& complaints_;
    const RaidHabits& habits_;
    RaidMutation mutation_;
    raid::Layout layout_;
    raid::VolumeManagerOptions options_;
    std::vector<Place> places_;
    std::map<std::uint64_t, Session> sessions_;  ///< those of old controllers too
    std::uint64_t last_session_ = 0;
    /// Tickets of commands on their way to boxes: whose they are.
    std::map<std::uint64_t, Carried> carried_;
    std::vector<std::function<void()>> parked_;
    std::uint64_t last_carried_ = 0;
    std::map<std::string, std::vector<std::byte>> records_;
    std::vector<std::unique_ptr<Office>> offices_;
    std::vector<std::unique_ptr<RaidMachine>> graves_;
    std::vector<std::unique_ptr<RaidDisk>> old_disks_;
    wire::Generation carried_generation_{};           ///< the newest that orders were sent under
    std::map<unsigned, Guest> guests_;                ///< by number
    using Way = std::pair<std::string, std::string>;  ///< from one machine to another
    std::set<Way> cut_off_;
    std::map<Way, Instant> mended_;
    template <class Which>
    std::optional<Instant> last_cut(Which which, Instant now) const;
    raid::VolumeManager* manager_ = nullptr;
    wire::ClusterIdentity cluster_{};
    std::uint64_t epoch_ = 1;
    bool stops_rebuilds_ = false;
};

}  // namespace weft::sim
