// SPDX-License-Identifier: Apache-2.0
// A logical unit: the way of a task through it, from its turn to its answer. What the commands do
// is in the files named after them (commands.hpp); here is what they do it with.
//
// A step that begins something (takes memory, wants data, asks the device) returns right after it.
// Answering (good, refuse, ...) is the last a step does.
#pragma once

#include <functional>
#include <string>

#include "base/intrusive_queue.hpp"
#include "scsi/command.hpp"
#include "scsi/nexus.hpp"
#include "scsi/range_holds.hpp"
#include "scsi/sense.hpp"
#include "scsi/task.hpp"
#include "scsi/unit_options.hpp"
#include "scsi/unit_state.hpp"

namespace weft::scsi {

class Target;

class LogicalUnit final : private SizeWatcher {
public:
    /// Without a device it answers where there is no unit.
    LogicalUnit(Target& target, std::uint32_t number, std::size_t place, BlockDevice* device,
                UnitOptions options);
    LogicalUnit(const LogicalUnit&) = delete;
    LogicalUnit& operator=(const LogicalUnit&) = delete;
    ~LogicalUnit();

    // What it is.
    Target& target() { return target_; }
    std::uint32_t number() const { return number_; }
    std::size_t place() const { return place_; }
    bool exists() const { return device_ != nullptr; }
    BlockDevice& device() { return *device_; }
    const UnitOptions& options() const { return options_; }
    const UnitIdentity& identity() const { return identity_; }
    BlockTraits traits() const { return device_->traits(); }
    std::uint32_t block_bytes() const { return options_.block_bytes; }
    std::uint64_t block_count() const { return traits().size / options_.block_bytes; }
    std::uint64_t transfer_blocks() const;
    bool thin() const;
    bool unmapped_reads_zero() const;
    bool write_protected() const;
    bool offers(const Command& command) const;
    UnitState& state() { return state_; }
    /// What an erasure that goes on or has failed forbids; null: any command but the exceptions.
    std::optional<Sense> erasure_refusal(const Command* command) const;
    Nexus::AtUnit& at(Nexus& nexus) { return nexus.at(place_); }

    // For the target.
    void execute(Task& task);
    void abort(Task& task);
    /// Which of its tasks a management function means.
    enum class Whose : std::uint8_t { of_nexus, of_others, of_all };
    void abort_tasks(Whose whose, const Nexus* nexus);
    bool has_aborted(Whose whose, const Nexus* nexus) const;
    bool has_tasks(const Nexus& nexus) const;
    void reset(wire::AdditionalSense why);
    void nexus_lost(Nexus& nexus);
    /// No task is left, and it does nothing on its own account.
    bool quiet() const;
    /// Ends what it does on its own account.
    void stop();

    // For the carrier, by way of Task.
    void data_came(Task& task);
    void data_failed(Task& task, Sense why);
    void release(Task& task);
    void device_completed(Task& task, Result<void> outcome);
    /// What a task waited for has come.
    void resume(Task& task);

    // For the commands: to begin something.
    /// Pooled memory of so many bytes; all the task needs, at once.
    void take_memory(Task& task, std::size_t bytes, Step then);
    /// What the carrier brings of answer.length_out goes to the front of the task's memory.
    void want_data(Task& task, Step then);
    void hold_blocks(Task& task, Hold hold, Step then);
    /// Holds blocks of any unit of the target, with others, and works on that unit until
    /// leave_blocks(). The step must look whether it still may: the unit may have been removed.
    void visit_blocks(LogicalUnit& other, Task& task, BlockRange range, Step then);
    void leave_blocks(Task& task);
    void transfer(Task& task, BlockOperation operation, std::uint64_t offset, Buffer memory,
                  Step then);
    /// work.remaining bytes from work.position on, as many at a time as the task's memory holds;
    /// each time from or to its front. Then the task is answered, one way or the other.
    void transfer_pieces(Task& task, BlockOperation operation);
    void ask_device(Task& task, BlockOperation operation, std::uint64_t offset,
                    std::uint64_t length, Step then);
    /// The task's step runs when somebody calls resume().
    void wait(Task& task, Waiting what, Step then);
    /// The memory of the task becomes what the device lends; false if it lends none.
    bool lend(Task& task, BlockOperation operation, std::uint64_t offset, std::uint64_t bytes);

    // For commands of ours: the order in which those of a nexus are handed over.
    void await_delivery(Task& task);
    void delivered(Task& task);
    Task* first_undelivered(const Nexus& nexus) const;
    void deliver_next(Nexus& nexus);

    // For the commands: to answer.
    void good(Task& task);
    void end(Task& task, wire::ScsiStatus status);
    void refuse(Task& task, const Sense& sense);
    void refuse_outcome(Task& task, bool changing);
    /// `bytes` at the front of the task's memory, as far as is asked for.
    void answer(Task& task, std::size_t bytes, std::uint64_t allocation_length);
    void answer_memory(Task& task, Buffer memory);

    // For the commands: to tell others.
    void tell(Nexus& nexus, wire::AdditionalSense what) { at(nexus).attentions.raise(what); }
    void tell_others(const Nexus* except, wire::AdditionalSense what);

    std::uint64_t commands_seen() const { return commands_seen_; }

private:
    void size_changed(std::uint64_t size) override;
    bool must_wait_for_turn(const Task& task) const;
    void take_turn(Task& task);
    void give_turns();
    static void begin(LogicalUnit& unit, Task& task);
    std::optional<Sense> refusal(Task& task, const Command& command);
    std::optional<Sense> strict_refusal(const Task& task, const Command& command) const;
    bool in_conflict(Task& task, const Command& command);
    void refuse_busy(Task& task);
    static void transfer_more(LogicalUnit& unit, Task& task);
    static void next_piece(LogicalUnit& unit, Task& task);
    void finish(Task& task);
    void link(Task& task);
    void unlink(Task& task);
    void give_up_blocks(Task& task);
    void stop_waiting_for_blocks(Task& task);
    void resume_granted();
    void refuse_if_erasing(Task& task);

    Target& target_;
    std::uint32_t number_;
    std::size_t place_;
    BlockDevice* device_;
    UnitOptions options_;
    UnitIdentity identity_;
    UnitState state_;
    RangeHolds holds_;
    IntrusiveQueue<Task> granted_;  ///< have got the blocks they waited for, and go on soon
    Task* first_ = nullptr;
    std::size_t task_count_ = 0;  ///< until they are released
    std::size_t running_ = 0;     ///< that have had their turn and have not finished
    bool ordered_runs_ = false;
    IntrusiveQueue<Task> line_;    ///< for their turn
    std::size_t visits_ = 0;       ///< of other units' tasks
    std::size_t entered_ = 0;      ///< how many calls of finish() are under way
    bool exclusive_seen_ = false;  ///< some command had blocks alone: nothing is lent any more
    std::uint64_t commands_seen_ = 0;
};

}  // namespace weft::scsi
