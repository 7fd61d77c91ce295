// SPDX-License-Identifier: Apache-2.0
#include "scsi/target.hpp"

#include <algorithm>
#include <bit>

#include "scsi/logical_unit.hpp"

namespace weft::scsi {

using namespace wire;

Target::Target(TargetOptions options) : options_(std::move(options)), places_(units_max) {
    WEFT_CHECK(options_.pool != nullptr);
    no_unit_ = std::make_unique<LogicalUnit>(*this, 0, 0, nullptr, UnitOptions{});
}

Target::~Target() {
    WEFT_CHECK(nexuses_.empty() && managements_.empty() && retired_.empty());
}

Result<LogicalUnit*> Target::add_unit(std::uint32_t number, BlockDevice& device,
                                      UnitOptions options) {
    const auto traits = device.traits();
    if (number > unit_number_max || units_.contains(number))
        return Error{.code = Code::malformed, .where = number};
    const auto block = options.block_bytes;
    if (!std::has_single_bit(block) || block < 512 || block > 65536 ||
        block % traits.minimum_block != 0 || traits.size < block ||
        options.transfer_bytes > transfer_bytes_max || options.transfer_bytes < block)
        return Error{.code = Code::malformed, .where = block};
    const auto physical = options.physical_block_bytes;
    if (physical != 0 && (!std::has_single_bit(physical) || physical < block))
        return Error{.code = Code::malformed, .where = physical};
    const auto place = std::ranges::find(places_, false);
    if (place == places_.end()) return Error{.code = Code::exhausted};
    *place = true;
    const auto which = static_cast<std::size_t>(place - places_.begin());
    for (auto& nexus : nexuses_) nexus->at(which) = {};
    auto unit = std::make_unique<LogicalUnit>(*this, number, which, &device, std::move(options));
    auto* added = unit.get();
    units_.emplace(number, std::move(unit));
    tell_units_changed();
    return added;
}

Result<void> Target::remove_unit(std::uint32_t number, std::function<void()> gone) {
    auto found = units_.find(number);
    if (found == units_.end()) return Error{.code = Code::not_found, .where = number};
    auto unit = std::move(found->second);
    units_.erase(found);
    auto& leaving = *unit;
    retired_.push_back({std::move(unit), std::move(gone)});
    {
        Pause pause(*this);
        leaving.stop();
        leaving.abort_tasks(LogicalUnit::Whose::of_all, nullptr);
        tell_units_changed();
    }
    progressed();
    return {};
}

LogicalUnit* Target::find(std::uint32_t number) const {
    auto found = units_.find(number);
    return found == units_.end() ? nullptr : found->second.get();
}

std::vector<std::uint32_t> Target::numbers() const {
    std::vector<std::uint32_t> numbers;
    for (const auto& [number, unit] : units_) numbers.push_back(number);
    return numbers;
}

void Target::add_port(std::uint16_t relative_port, std::uint16_t portal_group) {
    for (const auto& port : ports_)
        if (port.relative == relative_port) return;
    if (ports_.size() < ports_max) ports_.push_back({relative_port, portal_group});
}

void Target::tell_units_changed() {
    for (auto& [number, unit] : units_)
        unit->tell_others(nullptr, AdditionalSense::reported_luns_data_has_changed);
}

// --- who is connected

Result<Nexus*> Target::join(NexusName name) {
    if (nexuses_.size() == nexuses_max) return Error{.code = Code::exhausted};
    nexuses_.push_back(std::make_unique<Nexus>(*this, std::move(name), *options_.pool));
    auto& nexus = *nexuses_.back();
    // To whoever comes anew, everything before is unknown.
    for (auto& [number, unit] : units_)
        unit->tell(nexus, AdditionalSense::power_on_or_reset_occurred);
    return &nexus;
}

void Target::leave(Nexus& nexus, std::function<void()> gone) {
    {
        Pause pause(*this);
        for (auto& [number, unit] : units_) unit->nexus_lost(nexus);
        for (auto& retired : retired_) retired.unit->nexus_lost(nexus);
        no_unit_->abort_tasks(LogicalUnit::Whose::of_nexus, &nexus);
        ++leaving_;
        nexus.leave(gone ? std::move(gone) : [] {});
    }
    progressed();
}

Nexus* Target::connected(const NexusName& name) const {
    for (const auto& nexus : nexuses_)
        if (nexus->name() == name && !nexus->leaving()) return nexus.get();
    return nullptr;
}

// --- tasks

LogicalUnit* Target::unit_of(wire::LogicalUnit spelled) const {
    const auto number = number_of(spelled);
    return number ? find(*number) : nullptr;
}

void Target::execute(Task& task) {
    auto* unit = unit_of(task.logical_unit);
    (unit == nullptr ? *no_unit_ : *unit).execute(task);
}

void Target::abort(Task& task) {
    if (task.work.unit != nullptr) task.work.unit->abort(task);
}

void Target::reset_all(AdditionalSense why) {
    for (auto& [number, unit] : units_) unit->reset(why);
}

void Target::manage(Management& management) {
    {
        Pause pause(*this);
        management.result = begin(management);
        managements_.push_back(&management);
    }
    progressed();
}

/// Does what can be done at once, and says how it will end.
TaskManagementResult Target::begin(Management& management) {
    auto* unit = unit_of(management.logical_unit);
    auto* task = management.task;
    const bool active = task != nullptr && task->work.unit != nullptr && !task->work.finished;
    switch (management.function) {
        case TaskManagementFunction::abort_task:
            if (!active) return TaskManagementResult::task_does_not_exist;
            abort(*task);
            return TaskManagementResult::complete;
        case TaskManagementFunction::query_task:
            return active ? TaskManagementResult::succeeded : TaskManagementResult::complete;
        case TaskManagementFunction::target_warm_reset:
        case TaskManagementFunction::target_cold_reset:
            reset_all(AdditionalSense::power_on_or_reset_occurred);
            return TaskManagementResult::complete;
        case TaskManagementFunction::nexus_reset:
            for (auto& [number, each] : units_) {
                each->nexus_lost(*management.nexus);
                each->tell(*management.nexus, AdditionalSense::nexus_loss_occurred);
            }
            return TaskManagementResult::complete;
        case TaskManagementFunction::task_reassign:
            return TaskManagementResult::reassignment_not_supported;
        case TaskManagementFunction::clear_auto_contingent_allegiance:
            return TaskManagementResult::function_not_supported;
        default:
            break;
    }
    if (unit == nullptr) return TaskManagementResult::logical_unit_does_not_exist;
    switch (management.function) {
        case TaskManagementFunction::abort_task_set:
            unit->abort_tasks(LogicalUnit::Whose::of_nexus, management.nexus);
            return TaskManagementResult::complete;
        case TaskManagementFunction::clear_task_set:
            for (auto& nexus : nexuses_)
                if (nexus.get() != management.nexus && unit->has_tasks(*nexus))
                    unit->tell(*nexus, AdditionalSense::commands_cleared_by_another_initiator);
            unit->abort_tasks(LogicalUnit::Whose::of_all, nullptr);
            return TaskManagementResult::complete;
        case TaskManagementFunction::logical_unit_reset:
            unit->reset(AdditionalSense::bus_device_reset_occurred);
            return TaskManagementResult::complete;
        case TaskManagementFunction::query_task_set:
            return unit->has_tasks(*management.nexus) ? TaskManagementResult::succeeded
                                                      : TaskManagementResult::complete;
        case TaskManagementFunction::query_asynchronous_event:
            return unit->at(*management.nexus).attentions.empty() ? TaskManagementResult::complete
                                                                  : TaskManagementResult::succeeded;
        default:
            return TaskManagementResult::function_not_supported;
    }
}

/// Whether every task it ended has finished.
bool Target::settled(const Management& management) const {
    auto none_left = [&](LogicalUnit::Whose whose) {
        for (const auto& [number, unit] : units_)
            if (unit->has_aborted(whose, management.nexus)) return false;
        return true;
    };
    switch (management.function) {
        case TaskManagementFunction::abort_task: {
            const auto* task = management.task;
            return task == nullptr || !task->work.aborted || task->work.finished;
        }
        case TaskManagementFunction::abort_task_set:
        case TaskManagementFunction::nexus_reset:
            return none_left(LogicalUnit::Whose::of_nexus);
        case TaskManagementFunction::clear_task_set:
        case TaskManagementFunction::logical_unit_reset: {
            const auto* unit = unit_of(management.logical_unit);
            return unit == nullptr ||
                   !unit->has_aborted(LogicalUnit::Whose::of_all, management.nexus);
        }
        case TaskManagementFunction::target_warm_reset:
        case TaskManagementFunction::target_cold_reset:
            return none_left(LogicalUnit::Whose::of_all);
        default:
            return true;
    }
}

// --- what waits for the end of something

void Target::drain(std::function<void()> quiet) {
    {
        Pause pause(*this);
        for (auto& [number, unit] : units_) unit->stop();
        drained_ = std::move(quiet);
    }
    progressed();
}

void Target::progressed() {
    if (managements_.empty() && retired_.empty() && leaving_ == 0 && !drained_) return;
    settle_again_ = true;
    if (std::exchange(settling_, true)) return;  // called by somebody who is told just now
    while (std::exchange(settle_again_, false))
        while (settle_one()) {
        }
    settling_ = false;
}

/// Tells one of those who wait, if it is time; whom it tells may change everything.
bool Target::settle_one() {
    for (auto*& management : managements_) {
        if (!settled(*management)) continue;
        auto* done = management;
        std::erase(managements_, done);
        done->done(done->result);
        return true;
    }
    for (auto& retired : retired_) {
        if (!retired.unit->quiet()) continue;
        places_[retired.unit->place()] = false;
        auto gone = std::move(retired.gone);
        retired.unit.reset();
        std::erase_if(retired_, [](const Retired& one) { return one.unit == nullptr; });
        if (gone) gone();
        return true;
    }
    for (auto& nexus : nexuses_) {
        if (!nexus->leaving() || nexus->tasks() > 0) continue;
        auto gone = nexus->take_gone();
        --leaving_;
        const auto* left = nexus.get();
        std::erase_if(nexuses_, [&](const auto& one) { return one.get() == left; });
        gone();
        return true;
    }
    if (!drained_ || !retired_.empty()) return false;
    for (const auto& [number, unit] : units_)
        if (!unit->quiet()) return false;
    std::exchange(drained_, nullptr)();
    return false;
}

}  // namespace weft::scsi
