// SPDX-License-Identifier: Apache-2.0
// A SCSI target device: its logical units, who is connected to them, and the way of a command to
// its unit.
//
// Units come and go while it runs; those who are connected are told by unit attentions. The
// carrier (iSCSI) joins a nexus per session, executes tasks in the order their commands are to
// begin, and leaves.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "block/buffer_pool.hpp"
#include "scsi/nexus.hpp"
#include "scsi/surroundings.hpp"
#include "scsi/task.hpp"
#include "scsi/unit_options.hpp"
#include "wire/iscsi_task_management.hpp"

namespace weft::scsi {

class LogicalUnit;

struct TargetOptions {
    std::string name;  ///< its iSCSI name: what its units' pages of identification show
    block::BufferPool* pool = nullptr;
    Surroundings surroundings;
};

/// A task management function under way. The carrier owns it until done() is called.
class Management {
public:
    wire::TaskManagementFunction function{};
    Nexus* nexus = nullptr;
    wire::LogicalUnit logical_unit{};
    Task* task = nullptr;  ///< abort_task, query_task: which; null says: there is none such

    /// Every task it ended has finished(). A cold reset's carrier then ends all sessions. May come
    /// from inside Target::manage().
    virtual void done(wire::TaskManagementResult result) = 0;

    wire::TaskManagementResult result{};  ///< the target's

protected:
    Management() = default;
    Management(const Management&) = default;
    Management& operator=(const Management&) = default;
    ~Management() = default;
};

class Target {
public:
    explicit Target(TargetOptions options);
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;
    /// Every nexus must have left and every unit be quiet (see drain()).
    ~Target();

    const std::string& name() const { return options_.name; }

    /// `exhausted`: too many; `malformed`: the number is taken or too large, or the options do not
    /// fit the device. The device must outlive its unit.
    Result<LogicalUnit*> add_unit(std::uint32_t number, BlockDevice& device, UnitOptions options);
    /// Ends the unit's tasks, then calls `gone`: from then on the device is not used. The number is
    /// free at once. `not_found`: there is none such.
    Result<void> remove_unit(std::uint32_t number, std::function<void()> gone);
    LogicalUnit* find(std::uint32_t number) const;
    std::vector<std::uint32_t> numbers() const;

    /// A port through which the target can be reached; its units report all of them.
    void add_port(std::uint16_t relative_port, std::uint16_t portal_group);

    /// `exhausted`: nexuses_max. One of the same name must have left before.
    Result<Nexus*> join(NexusName name);
    /// The nexus is lost: its tasks are aborted. `gone` is called when all of them were released;
    /// the nexus does not exist from then on.
    void leave(Nexus& nexus, std::function<void()> gone);

    void execute(Task& task);
    /// finished() will come, if it has not, with TaskEnd::aborted.
    void abort(Task& task);
    void manage(Management& management);

    /// Ends what units do on their own account, then calls `quiet`.
    void drain(std::function<void()> quiet);

    // The rest is for the units.
    const TargetOptions& options() const { return options_; }
    const Surroundings& surroundings() const { return options_.surroundings; }
    struct Port {
        std::uint16_t relative = 1;
        std::uint16_t group = 1;
    };
    const std::vector<Port>& ports() const { return ports_; }
    std::vector<std::unique_ptr<Nexus>>& nexuses() { return nexuses_; }
    const std::map<std::uint32_t, std::unique_ptr<LogicalUnit>>& units() const { return units_; }
    Nexus* connected(const NexusName& name) const;
    /// An aborted task has finished, or a unit has become quiet.
    void progressed();
    /// While there is one, nobody is told anything and nothing goes away: for those who are in the
    /// middle of a list.
    class Pause {
    public:
        explicit Pause(Target& target)
            : target_(target), outer_(std::exchange(target.settling_, true)) {}
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;
        ~Pause() {
            target_.settling_ = outer_;
            if (!outer_ && target_.settle_again_) target_.progressed();
        }

    private:
        Target& target_;
        bool outer_;
    };

private:
    void tell_units_changed();
    wire::TaskManagementResult begin(Management& management);
    bool settled(const Management& management) const;
    LogicalUnit* unit_of(wire::LogicalUnit spelled) const;
    void reset_all(wire::AdditionalSense why);
    bool settle_one();

    TargetOptions options_;
    std::vector<Port> ports_;
    std::map<std::uint32_t, std::unique_ptr<LogicalUnit>> units_;
    std::vector<std::unique_ptr<Nexus>> nexuses_;
    std::vector<bool> places_;              ///< taken, by place of a unit in a nexus
    std::unique_ptr<LogicalUnit> no_unit_;  ///< answers for numbers without a unit
    struct Retired {
        std::unique_ptr<LogicalUnit> unit;
        std::function<void()> gone;
    };
    std::vector<Retired> retired_;
    std::vector<Management*> managements_;
    std::size_t leaving_ = 0;
    std::function<void()> drained_;
    bool settling_ = false;
    bool settle_again_ = false;
};

}  // namespace weft::scsi
