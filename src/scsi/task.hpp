// SPDX-License-Identifier: Apache-2.0
// A command on its way through a target: what its carrier (iSCSI) brought, and what became of it.
//
// The carrier derives from Task, keeps a pool of them, and owns each until released. It fills in
// the first part, calls Target::execute(), and then hears, in this order and each from inside any
// call:
//
//     data_wanted(places)   once at the most: bring the first of the bytes it offered there, then
//                           call data_came() or data_failed()
//     finished()            exactly once: `answer` is complete
//
// after which the memory of places and of answer.data_in stays as it is until the carrier calls
// release(). Then the Task can be used again. Nothing is allocated for a command: what a unit needs
// to remember while it works is in `work`.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/check.hpp"
#include "base/fixed_vector.hpp"
#include "scsi/limits.hpp"
#include "scsi/task_work.hpp"
#include "weft/block_device.hpp"
#include "wire/scsi_lun.hpp"
#include "wire/scsi_sense.hpp"
#include "wire/scsi_status.hpp"

namespace weft::scsi {

class Nexus;

/// How a task ended as far as its initiator may know.
enum class TaskEnd : std::uint8_t {
    answered,  ///< send status and sense
    aborted,   ///< a management function or a lost nexus ended it: send nothing
};

struct TaskAnswer {
    TaskEnd end = TaskEnd::answered;
    wire::ScsiStatus status{};
    FixedVector<std::byte, sense_max> sense{};
    /// What is to be sent: at most as much as is accepted. Lent or pooled memory.
    std::span<const Buffer> data_in{};
    /// What the command itself asked for, whatever was offered or accepted: the carrier's residual
    /// counts come from the difference. Zero for a direction a command does not use.
    std::uint64_t length_in = 0;
    std::uint64_t length_out = 0;
};

class Task {
public:
    // What the carrier says, before execute().
    Nexus* nexus = nullptr;
    wire::LogicalUnit logical_unit{};
    wire::TaskAttribute attribute = wire::TaskAttribute::simple;
    std::uint64_t offered_out = 0;  ///< bytes the initiator has for us
    std::uint64_t accepted_in = 0;  ///< bytes the initiator has room for
    /// It must not wait for memory: others' data stands behind its own in the stream. If there is
    /// none now, it ends with TASK SET FULL or BUSY.
    bool impatient = false;
    /// What is read must not change until release(): the carrier computes checksums of it before it
    /// leaves. Otherwise it may lie in the device's own memory, which others write to meanwhile.
    bool stable_data_in = false;

    void set_command_block(ConstBuffer octets) {
        command_size_ = std::min(octets.size(), command_block_.size());
        std::copy_n(octets.begin(), command_size_, command_block_.begin());
    }
    ConstBuffer command_block() const { return ConstBuffer(command_block_).first(command_size_); }

    // What the carrier does, once data_wanted() or finished() was called.
    /// All bytes are in their places.
    void data_came();
    /// Some will never come. The sense says why, in the carrier's words; it is not sent if the task
    /// is aborted anyway.
    void data_failed(wire::SenseKey key, wire::AdditionalSense additional);
    /// The answer has left, or will not. May be called from inside finished().
    void release();

    TaskAnswer answer{};  ///< the unit's, complete when finished() is called

    /// For the unit that works on it.
    TaskWork work{*this};
    /// For the unit's lines of waiting tasks.
    Task* next = nullptr;

    /// The first min(offered_out, answer.length_out) bytes belong here; never none. Not called if
    /// there are no bytes to bring.
    virtual void data_wanted(std::span<const Buffer> places) = 0;
    /// It was aborted, and its data is still wanted: data_came() or data_failed() should be called
    /// soon, since others wait for that.
    virtual void data_unwanted() {}
    virtual void finished() = 0;

    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

protected:
    Task() = default;
    ~Task() = default;

private:
    std::array<std::byte, command_block_max> command_block_{};
    std::size_t command_size_ = 0;
};

}  // namespace weft::scsi
