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
    switch (command.offered) {
        case Offered::if_thin:
            return thin();
        case Offered::if_removable:
            return options_.removable;
        case Offered::if_long:
            return options_.long_commands;
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
    work.keep_space = false;
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

// --- what a carrier calls

void LogicalUnit::data_came(Task& task) {
    WEFT_CHECK(task.work.waiting == Waiting::data);
    task.work.waiting = Waiting::nothing;
    resume(task);
}

void LogicalUnit::data_failed(Task& task, Sense why) {
    WEFT_CHECK(task.work.waiting == Waiting::data);
    task.work.waiting = Waiting::nothing;
    task.answer.status = ScsiStatus::check_condition;
    task.answer.sense = encode_sense(why, state_.mode.descriptor_sense);
    // What has come is in the device already: it must be told, and then the task has failed.
    if (task.work.data_in_device)
        task.work.failed = true;
    else
        task.work.ending = true;
    resume(task);
}

void LogicalUnit::release(Task& task) {
    auto& work = task.work;
    WEFT_CHECK(work.finished);
    ++entered_;
    Nexus& nexus = *task.nexus;
    const bool served = work.pooled;
    if (work.pooled) nexus.share().give_back(work.memory);
    work.memory = {};
    work.pooled = false;
    give_up_blocks(task);
    resume_granted();
    unlink(task);
    work.unit = nullptr;
    nexus.task_gone();
    auto& pool = *target_.options().pool;
    if (served) pool.serve_waiting();
    --entered_;
    target_.progressed();
}

void LogicalUnit::device_completed(Task& task, Result<void> outcome) {
    auto& work = task.work;
    WEFT_CHECK(work.waiting == Waiting::device);
    work.waiting = Waiting::nothing;
    work.outcome = outcome;
    resume(task);
}

/// Steps run one after another: what one began and was done at once goes on when it has returned.
void LogicalUnit::resume(Task& task) {
    auto& work = task.work;
    if (work.running) {
        work.ready = true;
        return;
    }
    work.running = true;
    do {
        work.ready = false;
        work.waiting = Waiting::nothing;
        if (work.aborted && !work.data_in_device) work.ending = true;
        if (work.ending) break;
        auto step = std::exchange(work.step, nullptr);
        WEFT_CHECK(step != nullptr);
        step(*this, task);
    } while (work.ready && !work.ending);
    work.running = false;
    if (work.ending) finish(task);
}

/// Those who waited for them stand in line from now on, until resume_granted().
void LogicalUnit::give_up_blocks(Task& task) {
    holds_.release(task, [this](Task& other) { granted_.push_back(other); });
}

void LogicalUnit::stop_waiting_for_blocks(Task& task) {
    if (task.work.hold != Hold::none)
        granted_.remove(task);
    else
        holds_.forget(task, [this](Task& other) { granted_.push_back(other); });
}

void LogicalUnit::resume_granted() {
    while (!granted_.empty()) {
        Task& task = granted_.pop_front();
        auto& unit = *task.work.unit;
        if (!task.work.visits) unit.refuse_if_erasing(task);
        unit.resume(task);
    }
}

/// What was accepted before an erasure began, and comes to its blocks after that, would undo it.
void LogicalUnit::refuse_if_erasing(Task& task) {
    if (auto sense = erasure_refusal(task.work.command)) refuse(task, *sense);
}

void LogicalUnit::finish(Task& task) {
    auto& work = task.work;
    WEFT_CHECK(!work.finished && work.waiting != Waiting::device);
    if (work.visits) leave_blocks(task);
    work.finished = true;
    if (work.aborted) {
        task.answer.end = TaskEnd::aborted;
        task.answer.data_in = {};
    }
    ++entered_;
    if (work.has_turn) {
        --running_;
        if (work.ordered) ordered_runs_ = false;
    }
    // What is sent out of the device's own memory stays held until it has left.
    const bool keeps_blocks = !task.answer.data_in.empty() && !work.pooled;
    if (!keeps_blocks) give_up_blocks(task);
    // Others that waited go on only when this one's answer has been given.
    task.finished();
    resume_granted();
    give_turns();
    --entered_;
    target_.progressed();
}

// --- the end of tasks

void LogicalUnit::abort(Task& task) {
    auto& work = task.work;
    if (work.finished || work.aborted) return;
    work.aborted = true;
    switch (work.waiting) {
        case Waiting::turn:
            line_.remove(task);
            work.has_turn = false;
            break;
        case Waiting::memory:
            task.nexus->stop_waiting(task);
            break;
        case Waiting::blocks:
            work.at->stop_waiting_for_blocks(task);
            break;
        case Waiting::reservers:
            state_.waiting_reservers.remove(task);
            break;
        case Waiting::erasure:
            state_.erasing_task = nullptr;
            break;
        case Waiting::data:
            return task.data_unwanted();
        case Waiting::device:
        case Waiting::store:
        case Waiting::nothing:
            return;
    }
    work.ending = true;
    resume(task);
}

namespace {

bool meant(LogicalUnit::Whose whose, const Nexus* nexus, const Task& task) {
    switch (whose) {
        case LogicalUnit::Whose::of_nexus:
            return task.nexus == nexus;
        case LogicalUnit::Whose::of_others:
            return task.nexus != nexus;
        case LogicalUnit::Whose::of_all:
            break;
    }
    return true;
}

}  // namespace

void LogicalUnit::abort_tasks(Whose whose, const Nexus* nexus) {
    // One that ends may let others go on and end: begin again from the front each time.
    ++entered_;
    for (bool again = true; again;) {
        again = false;
        for (Task* task = first_; task != nullptr && !again; task = task->work.after) {
            if (task->work.aborted || task->work.finished || !meant(whose, nexus, *task)) continue;
            abort(*task);
            again = true;
        }
    }
    --entered_;
}

bool LogicalUnit::has_aborted(Whose whose, const Nexus* nexus) const {
    for (const Task* task = first_; task != nullptr; task = task->work.after)
        if (task->work.aborted && !task->work.finished && meant(whose, nexus, *task)) return true;
    return false;
}

bool LogicalUnit::has_tasks(const Nexus& nexus) const {
    for (const Task* task = first_; task != nullptr; task = task->work.after)
        if (!task->work.finished && task->nexus == &nexus) return true;
    return false;
}

void LogicalUnit::reset(AdditionalSense why) {
    abort_tasks(Whose::of_all, nullptr);
    state_.reserved_by = nullptr;
    state_.mode = {};
    state_.copies.clear();
    state_.differences.clear();
    for (auto& nexus : target_.nexuses()) {
        at(*nexus).prevents_removal = false;
        tell(*nexus, why);
    }
}

void LogicalUnit::nexus_lost(Nexus& nexus) {
    abort_tasks(Whose::of_nexus, &nexus);
    if (state_.reserved_by == &nexus) state_.reserved_by = nullptr;
    state_.copies.forget(nexus);
    state_.differences.forget(nexus);
    at(nexus).prevents_removal = false;
}

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

// --- Task and its request to the device, as carrier and device call them

void TaskWork::DeviceRequest::completed(Result<void> how) {
    task.work.unit->device_completed(task, how);
}

void Task::data_came() {
    work.unit->data_came(*this);
}

void Task::data_failed(SenseKey key, AdditionalSense additional) {
    work.unit->data_failed(*this, {.key = key, .additional = additional});
}

void Task::release() {
    work.unit->release(*this);
}

}  // namespace weft::scsi
