// SPDX-License-Identifier: Apache-2.0
// SANITIZE and FORMAT UNIT: the whole medium is erased, by an Erasure that outlives the command.
// What is told to be a cryptographic erasure is one of blocks: there is no key to throw away.
#include "scsi/block_command.hpp"
#include "scsi/target.hpp"
#include "wire/scsi_medium_commands.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

/// The task holds all blocks: whoever was writing has finished, and whoever waits for blocks will
/// be refused when this one lets go of them.
void start_erasure(LogicalUnit& unit, Task& task, Erasure::Plan plan, bool immediate,
                   ErasureFailure if_it_fails) {
    auto& state = unit.state();
    plan.block_bytes = unit.block_bytes();
    plan.least_time = unit.options().erasure_time;
    state.erasing_task = immediate ? nullptr : &task;
    if (!immediate) unit.wait(task, Waiting::erasure, end_change);
    state.erasure = std::make_unique<Erasure>(
        unit.device(), unit.target().surroundings(), std::move(plan),
        [&unit, if_it_fails](Result<void> outcome) {
            unit.state().erasure_failure.reset();
            if (!outcome) unit.state().erasure_failure = if_it_fails;
            // The Erasure that calls is gone after this.
            auto finished = std::exchange(unit.state().erasure, nullptr);
            auto* waiting = std::exchange(unit.state().erasing_task, nullptr);
            auto& target = unit.target();
            if (waiting != nullptr) {
                waiting->work.outcome = outcome;
                unit.resume(*waiting);
            }
            target.progressed();
        });
    state.erasure->start();
    if (immediate) unit.good(task);
}

void hold_all(LogicalUnit& unit, Task& task, Step then) {
    task.work.range = {0, unit.block_count()};
    unit.hold_blocks(task, Hold::exclusive, then);
}

void start_sanitizing(LogicalUnit& unit, Task& task, Erasure::Plan plan) {
    const auto command = parse<Sanitize>(task);
    plan.in_progress = AdditionalSense::sanitize_in_progress;
    start_erasure(unit, task, std::move(plan), command.immediate,
                  {.what = AdditionalSense::sanitize_command_failed,
                   .may_be_left = command.allow_unrestricted_exit});
}

void overwrite(LogicalUnit& unit, Task& task) {
    const auto list = task.work.memory.first(static_cast<std::size_t>(task.answer.length_out));
    const auto header = *decode<SanitizeOverwrite>(list);
    const auto pattern = list.subspan(wire_size<SanitizeOverwrite>());
    start_sanitizing(unit, task,
                     {.pattern = {pattern.begin(), pattern.end()},
                      .passes = header.overwrite_count,
                      .invert = header.invert});
}

void overwrite_check(LogicalUnit& unit, Task& task) {
    if (task.offered_out < task.answer.length_out)
        return unit.refuse(task, parameter_length_error());
    const auto list = task.work.memory.first(static_cast<std::size_t>(task.answer.length_out));
    const auto header = decode<SanitizeOverwrite>(list);
    WEFT_CHECK(header.has_value());
    const auto pattern = list.subspan(wire_size<SanitizeOverwrite>());
    if (header->overwrite_count == 0) return unit.refuse(task, bad_parameter(0));
    if (header->pattern_length == 0 || header->pattern_length > unit.block_bytes() ||
        header->pattern_length != pattern.size())
        return unit.refuse(task, bad_parameter(2));
    hold_all(unit, task, overwrite);
}

void collect_overwrite(LogicalUnit& unit, Task& task) {
    unit.want_data(task, overwrite_check);
}

/// The start of FORMAT UNIT's parameter list, short or long: only what we must not ignore.
struct FormatHeader {
    std::uint8_t protection_usage = 0;
    bool options_valid = false;
    bool immediate = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<5>, bits<3>("protection usage", h.protection_usage),
               bits<1>("options valid", h.options_valid), reserved<5>,
               bits<1>("immediate", h.immediate), reserved<1>);
    }
};

void format(LogicalUnit& unit, Task& task) {
    start_erasure(unit, task, {.in_progress = AdditionalSense::format_in_progress},
                  task.work.option != 0, {.what = AdditionalSense::medium_format_corrupted});
}

void erase_blocks(LogicalUnit& unit, Task& task) {
    start_sanitizing(unit, task, {});
}

void format_collected(LogicalUnit& unit, Task& task) {
    if (task.offered_out < task.answer.length_out)
        return unit.refuse(task, parameter_length_error());
    const auto header = decode<FormatHeader>(task.work.memory);
    WEFT_CHECK(header.has_value());
    if (header->protection_usage != 0) return unit.refuse(task, bad_parameter(0));
    task.work.option = header->immediate ? 1 : 0;
    hold_all(unit, task, format);
}

void collect_format(LogicalUnit& unit, Task& task) {
    unit.want_data(task, format_collected);
}

/// Who erased must have allowed it; where nothing of this kind failed there is nothing to do.
void exit_failure_mode(LogicalUnit& unit, Task& task) {
    auto& failure = unit.state().erasure_failure;
    if (failure && failure->what == AdditionalSense::sanitize_command_failed) {
        if (!failure->may_be_left) return unit.refuse(task, bad_field(1));
        failure.reset();
    }
    unit.good(task);
}

}  // namespace

void sanitize(LogicalUnit& unit, Task& task) {
    const auto command = parse<Sanitize>(task);
    switch (command.action) {
        case SanitizeAction::overwrite:
            if (command.parameter_length <= wire_size<SanitizeOverwrite>() ||
                command.parameter_length > wire_size<SanitizeOverwrite>() + unit.block_bytes())
                return unit.refuse(task, bad_field(7));
            task.answer.length_out = command.parameter_length;
            return unit.take_memory(task, command.parameter_length, collect_overwrite);
        case SanitizeAction::block_erase:
        case SanitizeAction::cryptographic_erase:
            if (command.parameter_length != 0) return unit.refuse(task, bad_field(7));
            return hold_all(unit, task, erase_blocks);
        case SanitizeAction::exit_failure_mode:
            if (command.parameter_length != 0) return unit.refuse(task, bad_field(7));
            return exit_failure_mode(unit, task);
    }
    unit.refuse(task, bad_field(1));
}

void format_unit(LogicalUnit& unit, Task& task) {
    const auto command = parse<FormatUnit>(task);
    if (command.protection_information != 0) return unit.refuse(task, bad_field(1, 7));
    if (command.complete_list && !command.format_data) return unit.refuse(task, bad_field(1, 3));
    if (!command.format_data) return hold_all(unit, task, format);
    task.answer.length_out = command.long_list ? 8 : 4;
    unit.take_memory(task, parameter_bytes, collect_format);
}

}  // namespace weft::scsi
