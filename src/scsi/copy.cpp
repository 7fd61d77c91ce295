// SPDX-License-Identifier: Apache-2.0
// EXTENDED COPY (LID1) from blocks to blocks, between units of this target. Segments are copied one
// after another, each in pieces through one pooled buffer.
#include "base/bytes.hpp"
#include "scsi/commands.hpp"
#include "scsi/designators.hpp"
#include "scsi/target.hpp"
#include "wire/scsi_copy.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

// The task's memory: the parameter list in front, the piece that is copied behind.
constexpr std::size_t target_bytes = wire_size<CopyTargetByIdentification>();
constexpr std::size_t segment_bytes = wire_size<CopyBlocksToBlocks>();
constexpr std::size_t list_room = parameter_bytes;
constexpr std::size_t block_count_at = 10;  ///< in a segment

Sense copy_aborted(AdditionalSense additional) {
    return {.key = SenseKey::copy_aborted, .additional = additional};
}

CopyListHeader header_of(const Task& task) {
    return *decode<CopyListHeader>(task.work.memory);
}

CopyBlocksToBlocks segment_of(const Task& task, std::uint32_t index) {
    const auto at = wire_size<CopyListHeader>() + header_of(task).target_descriptors_length +
                    index * segment_bytes;
    return *decode<CopyBlocksToBlocks>(task.work.memory.subspan(at));
}

/// The unit a segment's index means; null if there is none such here.
LogicalUnit* unit_of(LogicalUnit& unit, const Task& task, std::size_t index) {
    const auto count = header_of(task).target_descriptors_length / target_bytes;
    if (index >= count) return nullptr;
    const auto descriptor = decode<CopyTargetByIdentification>(
        task.work.memory.subspan(wire_size<CopyListHeader>() + index * target_bytes));
    if (!descriptor) return nullptr;
    if (is_named_by(unit, *descriptor)) return &unit;
    for (const auto& [number, other] : unit.target().units())
        if (is_named_by(*other, *descriptor)) return other.get();
    return nullptr;
}

void finish(LogicalUnit& unit, Task& task, const std::optional<Sense>& sense) {
    const auto header = header_of(task);
    // "Discard" says that nobody will ask.
    constexpr std::uint8_t discard = 2;
    constexpr std::uint8_t none = 3;
    if (header.list_identifier_usage != discard && header.list_identifier_usage != none)
        unit.state().copies.keep(
            *task.nexus, header.list_identifier,
            {.progress = sense ? CopyProgress::failed : CopyProgress::completed,
             .segments_processed = static_cast<std::uint16_t>(task.work.index)},
            unit.commands_seen());
    if (sense) return unit.refuse(task, *sense);
    unit.good(task);
}

/// What a segment moves; nothing if there is no such unit.
std::uint64_t length_of(LogicalUnit& unit, const Task& task, const CopyBlocksToBlocks& segment) {
    const auto* counted = unit_of(
        unit, task, segment.destination_count ? segment.destination_target : segment.source_target);
    return counted == nullptr ? 0 : std::uint64_t{segment.block_count} * counted->block_bytes();
}

/// Whether this initiator could read or write the unit itself.
bool usable(LogicalUnit& unit, Task& task, Reach reach) {
    const auto& state = unit.state();
    const bool reserved = state.reserved_by != nullptr && state.reserved_by != task.nexus;
    return state.medium_present && !unit.erasure_refusal(nullptr) && !reserved &&
           state.reservations.allows(task.nexus->name(), reach) &&
           !access_refusal(unit, *task.nexus) &&
           !(reach == Reach::writes && unit.write_protected());
}

/// Why a segment cannot be copied, or not any more.
std::optional<Sense> segment_refusal(LogicalUnit& unit, Task& task, std::uint32_t index) {
    const auto segment = segment_of(task, index);
    auto* source = unit_of(unit, task, segment.source_target);
    auto* destination = unit_of(unit, task, segment.destination_target);
    if (source == nullptr || destination == nullptr)
        return copy_aborted(AdditionalSense::unreachable_copy_target);
    const auto bytes = length_of(unit, task, segment);
    const bool fits =
        within(segment.source_block, bytes / source->block_bytes(), source->block_count()) &&
        within(segment.destination_block, bytes / destination->block_bytes(),
               destination->block_count()) &&
        bytes % source->block_bytes() == 0 && bytes % destination->block_bytes() == 0;
    if (!fits) return copy_aborted(AdditionalSense::none);
    if (!usable(*source, task, Reach::reads) || !usable(*destination, task, Reach::writes))
        return copy_aborted(AdditionalSense::copy_target_not_reachable);
    return std::nullopt;
}

// --- A piece is read and written as an initiator would do it: its blocks are held while they are
// read, then those it goes to while they are written. So nobody waits for a copy longer than for a
// piece, and a copy that waits for blocks of one unit holds none of the other.

void copy_next(LogicalUnit& unit, Task& task);

Buffer piece_memory(Task& task) {
    const auto bytes = std::min<std::uint64_t>(task.work.remaining, piece_bytes);
    return task.work.memory.subspan(list_room, static_cast<std::size_t>(bytes));
}

/// Where the present segment comes from, or goes to.
struct Place {
    LogicalUnit* unit = nullptr;
    std::uint64_t first_block = 0;
};

Place source_of(LogicalUnit& unit, const Task& task) {
    const auto segment = segment_of(task, task.work.index);
    return {unit_of(unit, task, segment.source_target), segment.source_block};
}

Place destination_of(LogicalUnit& unit, const Task& task) {
    const auto segment = segment_of(task, task.work.index);
    return {unit_of(unit, task, segment.destination_target), segment.destination_block};
}

void visit_piece(LogicalUnit& unit, Task& task, Place place, Step then) {
    if (auto sense = segment_refusal(unit, task, task.work.index)) return finish(unit, task, sense);
    const auto block = place.unit->block_bytes();
    unit.visit_blocks(
        *place.unit, task,
        {place.first_block + task.work.position / block, piece_memory(task).size() / block}, then);
}

/// It may have waited for its blocks, and everything be different since.
void move_piece(LogicalUnit& unit, Task& task, Place place, BlockOperation operation, Step then) {
    if (auto sense = segment_refusal(unit, task, task.work.index)) return finish(unit, task, sense);
    if (place.unit != task.work.at)
        return finish(unit, task, copy_aborted(AdditionalSense::unreachable_copy_target));
    const auto at = place.first_block * place.unit->block_bytes() + task.work.position;
    unit.transfer(task, operation, at, piece_memory(task), then);
}

/// Whether the device did its part.
bool leave_piece(LogicalUnit& unit, Task& task) {
    unit.leave_blocks(task);
    if (task.work.outcome) return true;
    finish(unit, task, copy_aborted(AdditionalSense::copy_target_not_reachable));
    return false;
}

void piece_written(LogicalUnit& unit, Task& task) {
    if (!leave_piece(unit, task)) return;
    const auto bytes = piece_memory(task).size();
    task.work.position += bytes;
    task.work.remaining -= bytes;
    copy_next(unit, task);
}

void write_piece(LogicalUnit& unit, Task& task) {
    move_piece(unit, task, destination_of(unit, task), BlockOperation::write, piece_written);
}

void piece_read(LogicalUnit& unit, Task& task) {
    if (leave_piece(unit, task)) visit_piece(unit, task, destination_of(unit, task), write_piece);
}

void read_piece(LogicalUnit& unit, Task& task) {
    move_piece(unit, task, source_of(unit, task), BlockOperation::read, piece_read);
}

void copy_next(LogicalUnit& unit, Task& task) {
    auto& work = task.work;
    const auto count = header_of(task).segment_descriptors_length / segment_bytes;
    if (work.position > 0 && work.remaining == 0) {
        ++work.index;
        work.position = 0;
    }
    while (work.remaining == 0) {
        if (work.index >= count) return finish(unit, task, std::nullopt);
        if (auto sense = segment_refusal(unit, task, work.index)) return finish(unit, task, sense);
        work.remaining = length_of(unit, task, segment_of(task, work.index));
        work.position = 0;
        if (work.remaining == 0) ++work.index;
    }
    visit_piece(unit, task, source_of(unit, task), read_piece);
}

/// Descriptors of kinds we do not know, and more of them or longer ones than we said.
std::optional<Sense> list_refusal(LogicalUnit& unit, const Task& task, std::uint64_t length) {
    const auto header = header_of(task);
    const std::uint64_t targets = header.target_descriptors_length;
    const std::uint64_t segments = header.segment_descriptors_length;
    if (wire_size<CopyListHeader>() + targets + segments + header.inline_data_length > length ||
        targets + segments > copy_list_bytes_max)
        return parameter_length_error();
    if (header.inline_data_length > 0) return illegal(AdditionalSense::inline_data_length_exceeded);
    if (targets / target_bytes > copy_targets_max)
        return illegal(AdditionalSense::too_many_target_descriptors);
    const auto list = task.work.memory.subspan(wire_size<CopyListHeader>());
    for (std::size_t at = 0; at < targets; at += target_bytes)
        if (static_cast<CopyTargetType>(list[at]) != CopyTargetType::identification)
            return illegal(AdditionalSense::unsupported_target_descriptor);
    if (targets % target_bytes != 0) return bad_parameter(2);
    for (std::size_t at = 0; at < segments; at += segment_bytes) {
        const auto one = list.subspan(static_cast<std::size_t>(targets) + at);
        if (static_cast<CopySegmentType>(one[0]) != CopySegmentType::block_to_block)
            return illegal(AdditionalSense::unsupported_segment_descriptor);
        const auto segment = decode<CopyBlocksToBlocks>(one);
        if (!segment) return bad_parameter(8);
        if (length_of(unit, task, *segment) > copy_segment_bytes_max)
            return bad_parameter(static_cast<std::uint16_t>(wire_size<CopyListHeader>() + targets +
                                                            at + block_count_at));
    }
    if (segments / segment_bytes > copy_segments_max)
        return illegal(AdditionalSense::too_many_segment_descriptors);
    return std::nullopt;
}

void copy_collected(LogicalUnit& unit, Task& task) {
    if (task.offered_out < task.answer.length_out)
        return unit.refuse(task, parameter_length_error());
    if (auto sense = list_refusal(unit, task, task.answer.length_out))
        return unit.refuse(task, *sense);
    copy_next(unit, task);
}

void collect_list(LogicalUnit& unit, Task& task) {
    unit.want_data(task, copy_collected);
}

}  // namespace

void extended_copy(LogicalUnit& unit, Task& task) {
    const auto command = parse<ExtendedCopy>(task);
    if (command.parameter_length == 0) return unit.good(task);
    if (command.parameter_length < wire_size<CopyListHeader>() ||
        command.parameter_length > list_room)
        return unit.refuse(task, parameter_length_error());
    task.work.durable = false;
    task.answer.length_out = command.parameter_length;
    unit.take_memory(task, list_room + piece_bytes, collect_list);
}

}  // namespace weft::scsi
