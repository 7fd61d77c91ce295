// SPDX-License-Identifier: Apache-2.0
// The relation of one initiator port with one port of a target: in iSCSI, a session.
//
// What a unit keeps about a nexus, it keeps here, at the unit's place: attentions it has not told
// yet and whether the nexus holds the medium in. Pooled memory is borrowed per nexus, so that none
// takes all of it. Persistent registrations outlive a nexus and are the unit's; they know it by its
// name.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/intrusive_queue.hpp"
#include "block/buffer_pool.hpp"
#include "scsi/limits.hpp"
#include "scsi/unit_attentions.hpp"

namespace weft::scsi {

class Task;
class Target;

/// By what an initiator port and a target port are known, also when they are not connected.
struct NexusName {
    std::string initiator;                             ///< its iSCSI name
    std::array<std::uint8_t, 6> session_identifier{};  ///< ISID
    std::uint16_t portal_group = 1;                    ///< the target port group it came to
    std::uint16_t relative_port = 1;                   ///< of the target, from 1

    bool operator==(const NexusName&) const = default;
};

class Nexus {
public:
    Nexus(Target& target, NexusName name, block::BufferPool& pool);
    Nexus(const Nexus&) = delete;
    Nexus& operator=(const Nexus&) = delete;
    ~Nexus();

    const NexusName& name() const { return name_; }
    /// Tasks that were executed and are not yet released.
    std::size_t tasks() const { return tasks_; }

    // The rest is for the units.
    struct AtUnit {
        UnitAttentions attentions{};
        bool prevents_removal = false;
        std::size_t undelivered = 0;  ///< commands of ours that are not handed over yet
        bool delivering = false;
    };
    AtUnit& at(std::size_t place) { return at_units_[place]; }
    Target& target() { return target_; }
    block::BufferPool& pool() { return pool_; }
    block::BufferShare& share() { return share_; }

    /// What the task's work wants, now; or, in line with others, later: then its unit resumes it.
    bool take_memory(Task& task);
    void stop_waiting(Task& task);

    void task_began() { ++tasks_; }
    void task_gone();
    /// The target calls `gone`, when no task is left.
    void leave(std::function<void()> gone);
    bool leaving() const { return static_cast<bool>(gone_); }
    std::function<void()> take_gone() { return std::exchange(gone_, nullptr); }

private:
    bool give_to(Task& task);
    void memory_came();

    Target& target_;
    NexusName name_;
    block::BufferPool& pool_;
    std::vector<AtUnit> at_units_;
    std::size_t tasks_ = 0;
    IntrusiveQueue<Task> waiting_;
    block::BufferShare share_;
    std::function<void()> gone_;
};

}  // namespace weft::scsi
