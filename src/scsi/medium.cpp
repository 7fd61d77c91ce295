// SPDX-License-Identifier: Apache-2.0
// START STOP UNIT and PREVENT ALLOW MEDIUM REMOVAL. A medium that is ejected is only out of reach:
// nothing happens to the device, and loading brings it back.
#include "scsi/block_command.hpp"
#include "scsi/target.hpp"
#include "wire/scsi_medium_commands.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

bool is_prevented(LogicalUnit& unit) {
    for (auto& nexus : unit.target().nexuses())
        if (unit.at(*nexus).prevents_removal) return true;
    return false;
}

void eject(LogicalUnit& unit, Task& task) {
    if (task.work.outcome) unit.state().medium_present = false;
    end_change(unit, task);
}

}  // namespace

void start_stop_unit(LogicalUnit& unit, Task& task) {
    const auto command = parse<StartStopUnit>(task);
    // We have no power conditions, and going into one never moves the medium.
    if (command.power_condition != 0) return unit.good(task);
    task.work.outcome = {};
    auto& state = unit.state();
    if (command.load_eject) {
        if (!unit.options().removable) return unit.refuse(task, bad_field(4, 1));
        if (is_prevented(unit))
            return unit.refuse(task, illegal(AdditionalSense::medium_removal_prevented));
        if (command.start) {
            if (!state.medium_present)
                unit.tell_others(task.nexus, AdditionalSense::medium_may_have_changed);
            state.medium_present = true;
            return unit.good(task);
        }
        if (!state.medium_present) return unit.good(task);
    }
    const bool flushes = !command.start && !command.no_flush && state.medium_present;
    if (flushes)
        return unit.ask_device(task, BlockOperation::flush, 0, 0,
                               command.load_eject ? eject : end_change);
    if (command.load_eject) return eject(unit, task);
    unit.good(task);
}

void prevent_allow_removal(LogicalUnit& unit, Task& task) {
    unit.at(*task.nexus).prevents_removal = parse<PreventAllowMediumRemoval>(task).prevent;
    unit.good(task);
}

}  // namespace weft::scsi
