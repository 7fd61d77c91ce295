// SPDX-License-Identifier: Apache-2.0
// A volume of real boxes and a real manager, with a store, sessions and time between them that are
// queues: what is asked waits in one list, and a draw decides what happens next. Boxes lose their
// session, their power, their disk's honesty; controllers follow each other, and the one before
// goes on sending.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "raid/box.hpp"
#include "raid/journaled_disk.hpp"
#include "raid/records.hpp"
#include "raid/volume_manager.hpp"
#include "sim/raid_habits.hpp"
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
          windows(tags, complaints),
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

    RaidDisk& disk_;
    Heard heard_;
    Complaints& complaints_;
};

/// What is broken on purpose, so that it is known that the checkers would see it. All of it is done
/// to messages, disks and the store: production code has no such switch.
enum class RaidMutation : std::uint8_t {
    none,
    flushes_do_nothing,     ///< what was prepared does not last
    membership_is_lost,     ///< the store says it has kept what it has not
    epoch_is_forgotten,     ///< by a box that loses power: it obeys the old controller again
    recall_finds_nothing,   ///< a new controller believes that nothing is in doubt
    aborts_are_lost,        ///< and are answered as if they were not
    commits_are_lost,       ///< and are answered as if they were not
    hosts_are_strangers,    ///< a write sent again is not known by its number
    transfers_are_damaged,  ///< and nobody adds up what was prepared
};

class RaidCluster {
public:
    RaidCluster(RaidAgenda& agenda, Complaints& complaints, const RaidHabits& habits,
                RaidMutation mutation);
    ~RaidCluster();

    unsigned boxes() const { return static_cast<unsigned>(places_.size()); }
    bool is_up(unsigned i) const { return places_[i].session != 0; }
    raid::Box& box(unsigned i) { return places_[i].machine->box; }
    RaidMachine& machine(unsigned i) { return *places_[i].machine; }
    RaidDisk& disk(unsigned i) { return *places_[i].disk; }
    bool has_part(unsigned i) const { return places_[i].machine != nullptr; }
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

    /// To the next moment something is due; false if nothing is.
    bool pass_time();

    // S14, S5, S7, S17.
    void check_quiet();
    void check_parity();
    void check_epochs();
    void check_assembly();

    RaidTags tags;
    unsigned store_errors = 0;  ///< so many of the next changes fail
    std::function<void(const raid::VolumeEvent&)> on_event;

private:
    struct Office;
    struct Place {
        wire::BoxIdentity identity{};
        std::unique_ptr<RaidDisk> disk;
        std::unique_ptr<RaidMachine> machine;
        std::uint64_t session = 0;  ///< of the controller in office; 0: none
        bool held = false;
        std::uint64_t boot = 1;  ///< another after every loss of power
        wire::Epoch obeyed{};
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
    void heard(raid::CommandTicket ticket, const wire::ArrayAnswer& answer, ConstBuffer data);
    void create_part(Office& office, const wire::BoxIdentity& box, raid::CommandTicket ticket,
                     const wire::ArraySuperblock& superblock);
    void store(Office& office, std::vector<raid::MetadataChange> changes);
    void start_office();
    bool write_marks();
    bool is_swallowed(const raid::EncodedOrder& order) const;
    void forget_epoch(unsigned i);

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
    std::map<std::uint64_t, std::pair<std::uint64_t, raid::CommandTicket>> carried_;
    std::uint64_t last_carried_ = 0;
    std::map<std::string, std::vector<std::byte>> records_;
    std::vector<std::unique_ptr<Office>> offices_;
    std::vector<std::unique_ptr<RaidMachine>> graves_;
    raid::VolumeManager* manager_ = nullptr;
    wire::ClusterIdentity cluster_{};
    std::uint64_t epoch_ = 1;
    Instant now_{};
};

}  // namespace weft::sim
