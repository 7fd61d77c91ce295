// SPDX-License-Identifier: Apache-2.0
// What a unit remembers about a task while it works on it. It lives in the Task, so that a command
// costs no memory of its own; carriers leave it alone.
//
// A command is a chain of steps, each a plain function that begins something and names the step to
// come when that is done. The unit runs them one after another, never one inside another, however
// soon a device answers.
#pragma once

#include <array>
#include <cstdint>

#include "scsi/vendor_commands.hpp"
#include "weft/block_device.hpp"

namespace weft::scsi {

class Task;
class LogicalUnit;
struct Command;

using Step = void (*)(LogicalUnit& unit, Task& task);

/// What a task has of a range of blocks: nothing, with others, or alone.
enum class Hold : std::uint8_t { none, shared, exclusive };

struct BlockRange {
    std::uint64_t first = 0;
    std::uint64_t count = 0;

    constexpr bool overlaps(const BlockRange& other) const {
        return first < other.first + other.count && other.first < first + count;
    }
    bool operator==(const BlockRange&) const = default;
};

/// What a task waits for. One thing at a time.
enum class Waiting : std::uint8_t {
    nothing,
    turn,
    memory,
    data,
    blocks,
    device,
    reservers,  ///< others who change reservations
    store,
    erasure,
    order,  ///< commands of ours that came before
    vendor
};

struct TaskWork {
    explicit TaskWork(Task& owner) : device(owner), call(owner) {}

    /// The one request to the device a task has at a time.
    struct DeviceRequest final : BlockRequest {
        explicit DeviceRequest(Task& owner) : task(owner) {}
        void completed(Result<void> how) override;
        Task& task;
    };
    DeviceRequest device;
    VendorCall call;

    LogicalUnit* unit = nullptr;  ///< null: not executed, or released
    LogicalUnit* at = nullptr;    ///< whose blocks and device it uses: a copy works on two units
    const Command* command = nullptr;
    Step step = nullptr;  ///< what comes when the present wait is over
    Step then = nullptr;  ///< what comes when a transfer is complete
    Waiting waiting = Waiting::nothing;
    bool running = false;  ///< a step is: what it began and was done at once goes on afterwards
    bool ready = false;
    bool ending = false;  ///< the answer is there
    bool finished = false;
    bool failed = false;  ///< the answer is a refusal, and must wait for a write nevertheless
    bool aborted = false;
    bool ordered = false;      ///< it is the one ordered task that runs
    bool has_turn = false;     ///< it counts among those that run
    bool undelivered = false;  ///< a command of ours, not yet handed over
    Result<void> outcome{};    ///< of the last thing waited for

    BlockRange range{};           ///< the blocks the command names
    std::uint64_t bytes = 0;      ///< what of them is moved
    std::uint64_t position = 0;   ///< of a walk over the medium
    std::uint64_t remaining = 0;  ///< of the same walk
    std::uint32_t index = 0;      ///< in a list of descriptors
    bool durable = false;         ///< FUA, or no cache
    bool keep_space = false;      ///< of zeroing
    std::uint8_t option = 0;      ///< a flag of the command that a later step needs

    Buffer memory{};  ///< all the task has: lent or pooled
    bool pooled = false;
    bool data_in_device = false;  ///< lent, and bytes may have come: the write must follow
    std::size_t memory_wanted = 0;
    Buffer piece{};               ///< of the present request to the device
    Buffer rest{};                ///< of the same transfer
    std::array<Buffer, 1> in{};   ///< what answer.data_in shows
    std::array<Buffer, 1> out{};  ///< what data_wanted() was told

    Hold hold = Hold::none;
    std::size_t hold_place = 0;  ///< in the list of holds of the unit it is at
    bool visits = false;         ///< its command looks itself whether it may use those blocks
    Task* before = nullptr;      ///< in the unit's list of tasks
    Task* after = nullptr;
};

}  // namespace weft::scsi
