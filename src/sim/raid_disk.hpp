// SPDX-License-Identifier: Apache-2.0
// A box's disk in a simulated volume: flat bytes, and the writes that are not stable yet. It keeps
// of them what it likes when the power goes, and may lie, rot and fail.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "sim/raid_agenda.hpp"
#include "weft/block_device.hpp"

namespace weft::sim {

/// Octets aligned as parity wants them.
class RaidMemory {
public:
    explicit RaidMemory(std::size_t size);
    Buffer all() const { return {octets_.get(), size_}; }

private:
    static constexpr std::align_val_t alignment{64};
    struct Free {
        void operator()(std::byte* octets) const { ::operator delete(octets, alignment); }
    };
    std::size_t size_;
    std::unique_ptr<std::byte[], Free> octets_;
};

class RaidDisk final : public BlockDevice {
public:
    RaidDisk(RaidAgenda& agenda, std::size_t size);

    BlockTraits traits() const override;
    void submit(BlockRequest& request) override;

    /// What a reader would find now.
    Buffer octets() const { return octets_.all(); }
    /// And if the power went, at the worst.
    Buffer stable() const { return stable_.all(); }
    /// Each write that is not stable is kept, lost or torn: as it is drawn, or all in one way.
    enum class Unstable : std::uint8_t { lost, kept, torn };
    void power_cut();
    std::optional<Unstable> when_power_goes;
    /// Nobody waits for anything it was asked before.
    void forget() {
        *alive_ = false, alive_ = std::make_shared<bool>(true);
        waiting_.clear();
    }
    /// All of it that outlives the power, and what was so once: as people copy folders.
    std::vector<std::byte> image() const { return {stable().begin(), stable().end()}; }
    void put_back(std::span<const std::byte> image);
    /// As it is now it stays.
    void make_stable();
    void grow(std::uint64_t size);
    void flip_bit(std::uint64_t octet, unsigned bit);
    /// Some octets change at rest, wherever they are kept.
    void damage(std::uint64_t offset, ConstBuffer by);
    /// Of these is to be thought so from now on.
    void note_damage(std::uint64_t offset, std::size_t size);
    /// Blocks of 4 KiB, by where they begin, that are not what was written there last: now, or if
    /// the power went.
    std::set<std::uint64_t> damaged() const;
    bool is_sound() const { return damaged_.empty() && damaged_at_rest_.empty(); }

    /// The file system it is on is full: some of its blocks never got room, or get other room with
    /// every write. As of block::PatientFilter: whoever writes to `home` is told so, and what is
    /// written elsewhere waits.
    struct Lack {
        std::uint64_t from = 0;  ///< what lies before has its room
        std::uint64_t home = 0;  ///< to the end
        unsigned percent = 100;  ///< of the blocks
        std::uint64_t draw = 0;  ///< which
    };
    void become_full(const Lack& lack) { lack_ = lack; }
    void make_room();
    bool lacks_room() const { return lack_.has_value(); }
    /// Something waits for room, or was refused and has not been done since.
    bool is_full() const { return !waiting_.empty() || refused_at_; }

    /// What becomes of a write that says it is done.
    struct Fate {
        bool is_lost = false;
        std::optional<std::uint64_t> strays_to;  ///< where it goes instead
    };
    /// Asked of every write, if anybody wants to be.
    std::function<Fate(std::uint64_t offset, std::size_t size)> fate;

    Host* machine = nullptr;  ///< it hears of nothing while that stands still
    unsigned slowness = 1;    ///< how many times as long everything takes
    bool broken = false;
    bool lies = false;             ///< its flushes do nothing
    bool answers_at_once = false;  ///< nobody else is there yet
    unsigned errors = 0;           ///< so many of the next requests fail
    unsigned failures = 0;         ///< so many have
    unsigned lost_writes = 0;      ///< so many of the next writes say they are done, and are not
    /// So many of the next writes go here instead.
    unsigned misdirected = 0;
    std::uint64_t misdirection = 0;

private:
    struct Write {
        std::uint64_t number, offset;
        std::vector<std::byte> octets;
    };

    void later(std::function<void()> what);
    Result<void> perform(const BlockRequest& request, std::uint64_t before);
    void write(const BlockRequest& request, std::size_t most);
    bool has_room(std::uint64_t offset) const;
    std::size_t room_for(const BlockRequest& request) const;
    bool waits_for_room(BlockRequest& request);
    void flush(std::uint64_t before);
    void make_one_stable_later(BlockRequest& request, std::uint64_t number);
    void make_one_stable(std::uint64_t number);
    void settle(const Write& write);

    RaidAgenda& agenda_;
    RaidMemory octets_, stable_;
    std::deque<Write> unstable_;
    std::set<std::uint64_t> damaged_, damaged_at_rest_;
    std::uint64_t writes_ = 0;
    std::optional<Lack> lack_;
    std::vector<BlockRequest*> waiting_;  ///< for room
    std::optional<std::uint64_t> refused_at_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::sim
