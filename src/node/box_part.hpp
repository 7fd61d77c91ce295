// SPDX-License-Identifier: Apache-2.0
// One part of a box: what it has of one volume. A disk of its own, windows of its own, and the
// engine that carries out the controller's orders on them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "block/hang_filter.hpp"
#include "block/patient_filter.hpp"
#include "node/box_windows.hpp"
#include "node/growing_disk.hpp"
#include "raid/box.hpp"
#include "weft/world.hpp"

namespace weft::node {

class BoxPart;

class BoxPartOwner {
public:
    virtual void part_answered(BoxPart& part, raid::CommandTicket ticket,
                               const wire::ArrayAnswer& answer, ConstBuffer data) = 0;
    virtual void meet(std::span<const wire::ArrayPeer> boxes) = 0;
    virtual void admit(const wire::ArrayHostAdmission& host) = 0;
    virtual void dismiss(wire::HostSession host) = 0;

protected:
    ~BoxPartOwner() = default;
};

class BoxPart final : private raid::BoxOwner, private BlockRequest {
public:
    /// From load() or create(): later, or from inside. May destroy the part if it has failed.
    using Told = std::function<void(Result<void>)>;

    struct Options {
        /// Off: every record of a journal is written alone. To measure what that costs.
        bool group_commit = true;
        /// A disk that leaves a request unanswered for so long has failed.
        Duration disk_patience = std::chrono::seconds(30);
    };

    BoxPart(BoxPartOwner& owner, World& world, std::unique_ptr<BlockDevice> disk,
            const Options& options);
    BoxPart(const BoxPart&) = delete;
    BoxPart& operator=(const BoxPart&) = delete;

    /// Reads what the disk says it is, and recovers what its journal has. `not_found`: no
    /// superblock on it is whole. `unsupported`: one is, and is not understood. A journal that is
    /// damaged is no error here, since what the superblock says may be another's: see below. Nor is
    /// one that cannot be used: orders are refused then, and the controller learns that this part
    /// has failed.
    void load(Told told);
    /// Writes what it shall be, and an empty journal if it shall have one.
    void create(const wire::ArraySuperblock& superblock, Told told);
    /// Takes orders from now on. After load() or create().
    void start(std::unique_ptr<BoxWindows> windows, raid::PeerTransfers& peers);
    /// Of one that is idle: it takes none any more, and its windows serve another.
    std::unique_ptr<BoxWindows> stop();

    /// Of one that has started. While its disk hangs every command is answered with `disk_failed`.
    void receive(raid::CommandTicket ticket, const wire::ArrayCommandBlock& block,
                 ConstBuffer parameters);
    raid::Box& box() { return *box_; }
    const BoxWindows& windows() const { return *windows_; }
    const wire::ArraySuperblock& superblock() const {
        return box_ ? box_->superblock() : superblock_;
    }
    const wire::VolumeIdentity& volume() const { return superblock().volume.volume; }
    std::uint64_t size() const { return disk_->traits().size; }
    /// What its disk must have for this to be its volume; none: no disk has that much.
    std::optional<std::uint64_t> room_for(const wire::ArrayVolume& volume) const;
    /// When there is no room on the disk for what is written, and when there is again.
    void on_full(std::function<void(bool full)> hear) { disk_->on_change(std::move(hear)); }
    /// When its disk hangs, and when it answers again.
    void on_hang(std::function<void(bool hangs)> hear) { hear_hang_ = std::move(hear); }
    /// What waits for room fails: the box is to stop.
    void give_up_waiting() { disk_->give_up(); }
    /// The same disk, larger.
    void use(std::unique_ptr<BlockDevice> disk) { file_->use(std::move(disk)); }
    bool idle() const { return !told_ && (!box_ || box_->idle()); }
    /// It was read when loading, and has lost what was lasting: as good as no part.
    bool has_damaged_journal() const { return journaled_ && journaled_->is_damaged(); }
    /// It cannot be used, now: it could not be read, or what it has could not be brought home.
    bool has_lost_its_journal() const { return journaled_ && journaled_->has_failed(); }

private:
    // raid::BoxOwner
    void answer(raid::CommandTicket ticket, const wire::ArrayAnswer& answer) override {
        answer_with_data(ticket, answer, {});
    }
    void answer_with_data(raid::CommandTicket ticket, const wire::ArrayAnswer& answer,
                          ConstBuffer data) override {
        if (is_awaited(ticket)) owner_.part_answered(*this, ticket, answer, data);
    }
    void meet(std::span<const wire::ArrayPeer> boxes) override { owner_.meet(boxes); }
    void admit(const wire::ArrayHostAdmission& host) override { owner_.admit(host); }
    void dismiss(wire::HostSession host) override { owner_.dismiss(host); }
    Result<void> make_room(std::uint64_t octets) override;
    bool disk_is_full() const override { return disk_->is_full(); }
    // BlockRequest
    void completed(Result<void> outcome) override;

    enum class Stage : std::uint8_t { reading, mending, creating };

    void move(Stage stage, BlockOperation what, std::uint64_t at, Buffer octets);
    Result<void> take_superblocks();
    bool copies_differ() const;
    void mend_superblocks();
    void open_journal();

    /// A command that is not answered yet.
    struct Open {
        raid::CommandTicket ticket{};
        wire::TransactionNumber transaction{};
    };
    bool is_failing() const { return disk_watch_->hangs() || !answered_early_.empty(); }
    bool is_awaited(raid::CommandTicket ticket);
    void disk_hangs(bool hangs);
    void refuse(const Open& command);

    BoxPartOwner& owner_;
    World& world_;
    std::unique_ptr<GrowingDisk> file_;
    std::unique_ptr<block::HangFilter> disk_watch_;
    std::unique_ptr<block::PatientFilter> disk_;
    bool group_commit_;
    std::vector<Open> open_;
    /// Commands that were answered when the disk hung. The box answers them too when it can, which
    /// nobody hears; until then nothing new is begun.
    std::vector<raid::CommandTicket> answered_early_;
    std::function<void(bool)> hear_hang_;
    std::unique_ptr<raid::JournaledDisk> journaled_;
    std::unique_ptr<Timer> marks_timer_;
    std::unique_ptr<BoxWindows> windows_;
    std::unique_ptr<raid::Box> box_;
    std::array<std::byte, 2 * wire::superblock_size> image_{};
    Buffer memory_{};
    Stage stage_{};
    wire::ArraySuperblock superblock_{};
    unsigned copy_ = 0;  ///< which of the two on the disk this is
    Told told_;
};

}  // namespace weft::node
