// SPDX-License-Identifier: Apache-2.0
#include "scsi/logical_unit.hpp"

#include <bit>

#include "scsi/commands.hpp"
#include "scsi/reservation_store.hpp"
#include "scsi/target.hpp"
#include "scsi/unit_identity.hpp"

namespace weft::scsi {

using namespace wire;

LogicalUnit::LogicalUnit(Target& target, std::uint32_t number, std::size_t place,
                         BlockDevice* device, UnitOptions options)
    : target_(target),
      number_(number),
      place_(place),
      device_(device),
      options_(std::move(options)),
      identity_(derive_identity(options_, target.name(), number)) {
    if (device_ != nullptr) device_->watch_size(*this);
    if (options_.reservations == nullptr) return;
    // What cannot be read back is as if it had never been: refusing to serve would help nobody.
    if (auto stored = options_.reservations->load(identity_.serial)) {
        auto restored = state_.reservations.restore(*stored);
        static_cast<void>(restored);
    }
}

LogicalUnit::~LogicalUnit() {
    WEFT_CHECK(task_count_ == 0);
    if (device_ != nullptr) device_->unwatch_size(*this);
}

std::uint64_t LogicalUnit::transfer_blocks() const {
    return std::max<std::uint64_t>(1, options_.transfer_bytes / options_.block_bytes);
}

bool LogicalUnit::thin() const {
    return options_.thin && exists() && traits().can_trim && !traits().read_only;
}

bool LogicalUnit::unmapped_reads_zero() const {
    return thin() && traits().can_write_zeroes;
}

bool LogicalUnit::write_protected() const {
    return options_.read_only || state_.mode.software_write_protect || traits().read_only;
}

bool LogicalUnit::offers(const Command& command) const {
    if (!options_.has_medium && !command.is(Trait::without_medium)) return false;
    switch (command.offered) {
        case Offered::if_thin:
            return thin();
        case Offered::if_removable:
            return options_.removable;
        case Offered::if_long:
            return options_.long_commands;
        case Offered::if_vendor:
            return options_.vendor_commands != nullptr;
        case Offered::always:
            break;
    }
    return true;
}

void LogicalUnit::size_changed(std::uint64_t /*size*/) {
    tell_others(nullptr, AdditionalSense::capacity_data_has_changed);
}

void LogicalUnit::tell_others(const Nexus* except, AdditionalSense what) {
    for (auto& nexus : target_.nexuses())
        if (nexus.get() != except) tell(*nexus, what);
}

// --- from arrival to the first step

void LogicalUnit::execute(Task& task) {
    auto& work = task.work;
    WEFT_CHECK(work.unit == nullptr);
    work.unit = work.at = this;
    work.command = nullptr;
    work.waiting = Waiting::nothing;
    work.running = work.ready = work.ending = work.finished = false;
    work.failed = work.aborted = work.ordered = work.has_turn = false;
    work.durable = work.pooled = work.data_in_device = false;
    work.keep_space = work.undelivered = false;
    work.option = 0;
    work.bytes = work.position = work.remaining = 0;
    work.index = 0;
    work.memory = {};
    work.range = {};
    task.answer.end = TaskEnd::answered;
    task.answer.status = ScsiStatus::good;
    task.answer.sense.clear();
    task.answer.data_in = {};
    task.answer.length_in = task.answer.length_out = 0;
    ++commands_seen_;
    link(task);
    task.nexus->task_began();
    work.step = begin;
    if (!must_wait_for_turn(task)) {
        take_turn(task);
        return resume(task);
    }
    if (task.impatient) {
        refuse_busy(task);
        return finish(task);
    }
    work.waiting = Waiting::turn;
    line_.push_back(task);
}

bool LogicalUnit::must_wait_for_turn(const Task& task) const {
    switch (task.attribute) {
        case TaskAttribute::head_of_queue:
            return false;
        case TaskAttribute::ordered:
            return running_ > 0 || !line_.empty();
        default:
            return ordered_runs_ || !line_.empty();
    }
}

void LogicalUnit::take_turn(Task& task) {
    ++running_;
    task.work.has_turn = true;
    task.work.ordered = task.attribute == TaskAttribute::ordered;
    ordered_runs_ |= task.work.ordered;
}

/// Those at the front of the line whose turn it is now.
void LogicalUnit::give_turns() {
    while (!line_.empty() && !ordered_runs_) {
        Task& task = line_.front();
        if (task.attribute == TaskAttribute::ordered && running_ > 0) return;
        line_.pop_front();
        take_turn(task);
        resume(task);
    }
}

void LogicalUnit::begin(LogicalUnit& unit, Task& task) {
    const auto found = find_command(task.command_block());
    const auto* command = found.command;
    if (command != nullptr && !unit.offers(*command)) command = nullptr;
    task.work.command = command;
    const bool unattended = command != nullptr && command->is(Trait::unattended);
    if (!unit.exists() && !(command != nullptr && command->is(Trait::without_unit)))
        return unit.refuse(task, illegal(AdditionalSense::logical_unit_not_supported));
    if (unit.exists() && !unattended) {
        auto& attentions = unit.at(*task.nexus).attentions;
        if (auto first = attentions.first()) {
            attentions.forget(*first);
            return unit.refuse(task, {.key = SenseKey::unit_attention, .additional = *first});
        }
    }
    if (command == nullptr)
        return unit.refuse(task, found.command == nullptr && found.why == Unknown::service_action
                                     ? bad_field(1)
                                     : illegal(AdditionalSense::invalid_operation_code));
    if (unit.exists()) {
        if (unit.in_conflict(task, *command))
            return unit.end(task, ScsiStatus::reservation_conflict);
        if (auto sense = unit.refusal(task, *command)) return unit.refuse(task, *sense);
    }
    command->begin(unit, task);
}

bool LogicalUnit::in_conflict(Task& task, const Command& command) {
    if (command.reach == Reach::own || command.reach == Reach::anything) return false;
    if (state_.reserved_by != nullptr && state_.reserved_by != task.nexus) return true;
    return !state_.reservations.allows(task.nexus->name(), command.reach);
}

std::optional<Sense> LogicalUnit::refusal(Task& task, const Command& command) {
    if (auto sense = strict_refusal(task, command)) return sense;
    if (!command.is(Trait::any_access))
        if (auto sense = access_refusal(*this, *task.nexus)) return sense;
    if (auto sense = erasure_refusal(&command)) return sense;
    if (!state_.medium_present && command.is(Trait::needs_medium))
        return not_ready(AdditionalSense::medium_not_present_tray_open);
    if (write_protected() && command.is(Trait::changes))
        return Sense{.key = SenseKey::data_protect, .additional = AdditionalSense::write_protected};
    return std::nullopt;
}

std::optional<Sense> LogicalUnit::erasure_refusal(const Command* command) const {
    if (command != nullptr && command->is(Trait::while_erasing)) return std::nullopt;
    if (state_.erasure != nullptr)
        return in_progress(state_.erasure->in_progress(), state_.erasure->progress());
    if (!state_.erasure_failure) return std::nullopt;
    const auto what = state_.erasure_failure->what;
    const bool mends = command != nullptr && (command->operation == ScsiOperation::sanitize ||
                                              (command->operation == ScsiOperation::format_unit &&
                                               what == AdditionalSense::medium_format_corrupted));
    if (mends) return std::nullopt;
    return Sense{.key = SenseKey::medium_error, .additional = what};
}

/// NACA is for nobody; reserved bits only matter where a mistake destroys data.
std::optional<Sense> LogicalUnit::strict_refusal(const Task& task, const Command& command) const {
    const auto block = task.command_block();
    const std::size_t control =
        command.operation == ScsiOperation::variable_length ? 1 : command.size - 1u;
    if ((block[control] & std::byte{0x04}) != std::byte{0})
        return bad_field(static_cast<std::uint16_t>(control), 2);
    if (!command.is(Trait::strict)) return std::nullopt;
    for (std::size_t i = 1; i < command.size; ++i) {
        auto extra = std::to_integer<unsigned>(block[i]) & ~unsigned{command.usage_of(i)} & 0xff;
        if (extra != 0)
            return bad_field(static_cast<std::uint16_t>(i),
                             static_cast<std::uint8_t>(std::bit_width(extra) - 1));
    }
    return std::nullopt;
}

// --- what it has to do

bool LogicalUnit::quiet() const {
    return task_count_ == 0 && visits_ == 0 && entered_ == 0 && state_.erasure == nullptr;
}

void LogicalUnit::stop() {
    if (state_.erasure != nullptr) state_.erasure->stop();
}

void LogicalUnit::link(Task& task) {
    task.work.before = nullptr;
    task.work.after = first_;
    if (first_ != nullptr) first_->work.before = &task;
    first_ = &task;
    ++task_count_;
}

void LogicalUnit::unlink(Task& task) {
    auto& work = task.work;
    (work.before == nullptr ? first_ : work.before->work.after) = work.after;
    if (work.after != nullptr) work.after->work.before = work.before;
    --task_count_;
}

}  // namespace weft::scsi
