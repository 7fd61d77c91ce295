// SPDX-License-Identifier: Apache-2.0
// A volume of real boxes and a real manager, with a store, sessions and time between them that are
// queues: what is asked waits in one list, and a draw decides what happens next. Boxes lose their
// session, their power, their disk's honesty; controllers follow each other, and the one before
// goes on sending.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>

#include "raid/box.hpp"
#include "raid/journaled_disk.hpp"
#include "raid/records.hpp"
#include "raid/volume_manager.hpp"
#include "sim/raid_habits.hpp"
#include "sim/raid_message.hpp"
#include "sim/raid_mutation.hpp"
#include "sim/raid_transfers.hpp"

namespace weft::sim {

/// A box as a machine: its disk outlives it.
class RaidMachine final : private raid::BoxOwner {
public:
    using Heard =
        std::function<void(raid::CommandTicket, const wire::ArrayAnswer&, ConstBuffer data)>;
    RaidMachine(RaidAgenda& agenda, RaidTags& tags, Complaints& complaints, RaidDisk& disk,
                const wire::ArraySuperblock& superblock, unsigned copy, Heard heard)
        : transfers(agenda, tags),
          windows(tags, complaints, RaidWindows::count),
          journaled(raid::has_journal(superblock)
                        ? std::make_unique<raid::JournaledDisk>(disk, superblock,
                                                                raid::JournaledDisk::Options{})
                        : nullptr),
          box(*this, disk, windows, transfers, superblock, copy, journaled.get()),
          disk_(disk),
          heard_(std::move(heard)),
          complaints_(complaints) {}

    /// With a journal, before any order: on a disk that is new, or after its power went.
    void format() { begin(&raid::JournaledDisk::format); }
    void recover() { begin(&raid::JournaledDisk::recover); }

    /// The power is gone: it says nothing any more, and nobody reaches its memory.
    void vanish() {
        heard_ = nullptr;
        windows.vanish();
        transfers.vanish();
    }

    RaidTransfers transfers;
    RaidWindows windows;
    std::unique_ptr<raid::JournaledDisk> journaled;
    raid::Box box;

private:
    void answer(raid::CommandTicket ticket, const wire::ArrayAnswer& answer) override {
        if (heard_) heard_(ticket, answer, {});
    }
    void answer_with_data(raid::CommandTicket ticket, const wire::ArrayAnswer& answer,
                          ConstBuffer data) override {
        if (heard_) heard_(ticket, answer, data);
    }
    void begin(void (raid::JournaledDisk::*how)(raid::Told)) {
        if (!journaled) return;
        disk_.answers_at_once = true;
        bool well = false;
        ((*journaled).*how)([&](Result<void> outcome) { well = outcome.has_value(); });
        if (!well) complaints_.add("S1: a box's journal cannot be read after its power went");
        disk_.answers_at_once = false;
    }
    void meet(std::span<const wire::ArrayPeer>) override {}
    void admit(const wire::ArrayHostAdmission&) override {}
    void dismiss(wire::HostSession) override {}
    bool disk_is_full() const override { return disk_.is_full(); }

    RaidDisk& disk_;
    Heard heard_;
    Complaints& complaints_;
};

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
    wire::BoxIdentity identity(unsigned i) const { return places_[i].identity; }
    raid::VolumeManager& manager() { return *manager_; }
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
    /// It answers nothing for a while, and then all.
    void hold(unsigned i, bool held);
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
    bool has_cut_links() const;
    /// What a host's memory says whose it is.
    static wire::BoxIdentity host_memory_of(unsigned host);

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
    /// The same while messages are on their way, if it is soon: answers are late.
    void pass_a_moment();
    /// The shortest of all waits: until marks go to a disk that nothing else has taken along.
    bool write_marks();

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

    RaidTags tags;
    unsigned store_errors = 0;       ///< so many of the next changes fail
    unsigned parts_refused = 0;      ///< so many of the next are not made: a disk is full
    bool gives_spares = true;        ///< when the manager needs one
    std::uint64_t back_pressed = 0;  ///< orders that were answered by "no room"
    unsigned damages = 0;  ///< so many of the next transfers between boxes, of hosts' writes
    /// What becomes of what is written to a machine's disk.
    std::function<RaidDisk::Fate(unsigned i, std::uint64_t offset, std::size_t size)> write_fate;
    std::function<void(const raid::VolumeEvent&)> on_event;
    /// By all controllers.
    std::uint64_t hedged_reads() const;
    /// Octets moved by all who are there, since they began.
    std::uint64_t transferred() const;

private:
    struct Office;
    struct Place {
        wire::BoxIdentity identity{};
        std::unique_ptr<RaidDisk> disk;
        std::unique_ptr<RaidMachine> machine;
        std::uint64_t session = 0;  ///< of the controller in office; 0: none
        bool held = false;
        bool waits_for_room = false;  ///< to obey who is in office
        std::uint64_t boot = 1;       ///< another after every loss of power
        wire::Epoch obeyed{};
        std::set<wire::BoxIdentity> cut_off;  ///< whom it does not reach
    };
    struct Carried {
        std::uint64_t session;
        raid::CommandTicket ticket;
        bool is_late;  ///< when it came there, the box obeyed another controller already
        RaidMessage message;
    };
    struct Command {
        raid::CommandTicket ticket;
        raid::EncodedOrder order;
    };
    struct Session {
        unsigned place;
        Office* office;
        std::deque<Command> queue;
    };

    void start_machine(unsigned i);
    void announce(unsigned i);
    bool obeys(unsigned i);
    unsigned index_of(const wire::BoxIdentity& box) const;
    void carry(Office& office, const wire::BoxIdentity& box, raid::CommandTicket ticket,
               const raid::EncodedOrder& command);
    void deliver(std::uint64_t session);
    bool passes(const RaidMessage& message) const { return !may_pass || may_pass(message); }
    bool is_audited(const wire::ArrayOrderHeader& header) const;
    void heard(raid::CommandTicket ticket, const wire::ArrayAnswer& answer, ConstBuffer data);
    void create_part(Office& office, const wire::BoxIdentity& box, raid::CommandTicket ticket,
                     const wire::ArraySuperblock& superblock);
    void store(Office& office, std::vector<raid::MetadataChange> changes);
    void start_office();
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
    wire::Generation carried_generation_{};  ///< the newest that orders were sent under
    raid::VolumeManager* manager_ = nullptr;
    wire::ClusterIdentity cluster_{};
    std::uint64_t epoch_ = 1;
    Instant now_{};
};

}  // namespace weft::sim
