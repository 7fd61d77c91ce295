// SPDX-License-Identifier: Apache-2.0
// A box of a simulated volume as a machine, from one start to its end: a production box over a
// production journal, windows and links. Its disk outlives it.
#pragma once

#include <functional>
#include <memory>

#include "raid/box.hpp"
#include "raid/journaled_disk.hpp"
#include "sim/raid_disk.hpp"
#include "sim/raid_wire.hpp"

namespace weft::sim {

/// How much memory a window has here.
constexpr std::uint32_t raid_window_bytes = 512 << 10;

class RaidMachine final : private raid::BoxOwner {
public:
    using Heard =
        std::function<void(raid::CommandTicket, const wire::ArrayAnswer&, ConstBuffer data)>;
    RaidMachine(RaidAgenda& agenda, Complaints& complaints, const std::string& name, RaidDisk& disk,
                const wire::ArraySuperblock& superblock, unsigned copy, Heard heard);
    ~RaidMachine();

    /// With a journal, before any order: on a disk that is new, or after its power went.
    void format() { begin(&raid::JournaledDisk::format); }
    void recover() { begin(&raid::JournaledDisk::recover); }

    /// The power is gone: it says nothing any more, and nobody reaches its memory.
    void vanish();

    RaidStation station;
    RaidWindows windows;
    RaidTransfers transfers;
    std::unique_ptr<raid::JournaledDisk> journaled;
    std::unique_ptr<raid::Box> the_box;
    raid::Box& box;

private:
    void answer(raid::CommandTicket ticket, const wire::ArrayAnswer& answer) override {
        if (heard_) heard_(ticket, answer, {});
    }
    void answer_with_data(raid::CommandTicket ticket, const wire::ArrayAnswer& answer,
                          ConstBuffer data) override {
        if (heard_) heard_(ticket, answer, data);
    }
    void begin(void (raid::JournaledDisk::*how)(raid::Told));
    std::unique_ptr<raid::JournaledDisk> open_journal(RaidDisk& disk,
                                                      const wire::ArraySuperblock& superblock);
    std::unique_ptr<raid::Box> make_box(RaidDisk& disk, const wire::ArraySuperblock& superblock,
                                        unsigned copy);
    void meet(std::span<const wire::ArrayPeer>) override {}
    void admit(const wire::ArrayHostAdmission&) override {}
    void dismiss(wire::HostSession) override {}
    bool disk_is_full() const override { return disk_.is_full(); }

    RaidDisk& disk_;
    Heard heard_;
    Complaints& complaints_;
    RaidAgenda& agenda_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::sim
