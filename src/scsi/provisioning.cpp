// SPDX-License-Identifier: Apache-2.0
// UNMAP and GET LBA STATUS: which blocks take space. Only for devices that can give it back.
#include "base/bytes.hpp"
#include "scsi/block_command.hpp"
#include "scsi/report_writer.hpp"
#include "wire/scsi_capacity.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

std::uint32_t descriptors_in(const Task& task) {
    const auto header = *decode<UnmapListHeader>(task.work.memory);
    return static_cast<std::uint32_t>(header.descriptors_length / wire_size<UnmapDescriptor>());
}

UnmapDescriptor descriptor_at(const Task& task, std::uint32_t index) {
    return *decode<UnmapDescriptor>(task.work.memory.subspan(wire_size<UnmapListHeader>() +
                                                             index * wire_size<UnmapDescriptor>()));
}

/// The next descriptor that names blocks; zeroed where the device can, so that they read as zero.
void unmap_next(LogicalUnit& unit, Task& task) {
    auto& work = task.work;
    if (!work.outcome) return unit.refuse_outcome(task, true);
    const auto count = descriptors_in(task);
    while (work.index < count) {
        const auto descriptor = descriptor_at(task, work.index++);
        if (descriptor.block_count == 0) continue;
        const auto operation =
            unit.unmapped_reads_zero() ? BlockOperation::write_zeroes : BlockOperation::trim;
        return unit.ask_device(task, operation, descriptor.first_block * unit.block_bytes(),
                               std::uint64_t{descriptor.block_count} * unit.block_bytes(),
                               unmap_next);
    }
    unit.good(task);
}

/// All are looked at before any is carried out; and held together, from first to last.
void unmap_check(LogicalUnit& unit, Task& task) {
    auto& work = task.work;
    if (task.offered_out < task.answer.length_out)
        return unit.refuse(task, parameter_length_error());
    auto header = *decode<UnmapListHeader>(work.memory);
    const auto length = task.answer.length_out;
    if (header.descriptors_length + wire_size<UnmapListHeader>() > length)
        return unit.refuse(task, parameter_length_error());
    const auto count = descriptors_in(task);
    if (count > unmap_descriptors_max) return unit.refuse(task, bad_parameter(2));
    std::uint64_t first = unit.block_count();
    std::uint64_t end = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto one = descriptor_at(task, i);
        if (!within(one.first_block, one.block_count, unit.block_count()))
            return unit.refuse(task, out_of_range(one.first_block));
        if (one.block_count == 0) continue;
        first = std::min(first, one.first_block);
        end = std::max(end, one.first_block + one.block_count);
    }
    if (end <= first) return unit.good(task);
    work.range = {first, end - first};
    work.durable = !unit.state().mode.write_cache;
    work.outcome = {};
    unit.hold_blocks(task, Hold::shared, unmap_next);
}

void unmap_collect(LogicalUnit& unit, Task& task) {
    unit.want_data(task, unmap_check);
}

// --- GET LBA STATUS

constexpr std::size_t extents_bytes = extents_max * sizeof(Extent);

/// Runs of blocks of one kind, as descriptors. A block is unmapped only if all of it is.
class RunWriter {
public:
    RunWriter(ReportWriter& report, std::uint64_t first) : report_(report), next_(first) {}

    void add(std::uint64_t end, Provisioning kind) {
        if (end <= next_) return;
        if (kind != kind_) flush();
        kind_ = kind;
        count_ += end - next_;
        next_ = end;
    }
    void flush() {
        while (count_ > 0) {
            const auto part = std::min<std::uint64_t>(count_, 0xffffffff);
            report_.put(LbaStatusDescriptor{.first_block = next_ - count_,
                                            .block_count = static_cast<std::uint32_t>(part),
                                            .provisioning = kind_});
            count_ -= part;
        }
    }

private:
    ReportWriter& report_;
    std::uint64_t next_;
    std::uint64_t count_ = 0;
    Provisioning kind_{};
};

void write_status(LogicalUnit& unit, Task& task) {
    const auto command = parse<GetLbaStatus>(task);
    auto& work = task.work;
    auto extents =
        std::span(reinterpret_cast<const Extent*>(work.memory.data()), work.device.extent_count);
    ReportWriter report(work.memory.subspan(extents_bytes));
    report.put(LbaStatusHeader{});
    RunWriter runs(report, command.first_block);
    const auto block = unit.block_bytes();
    auto at = command.first_block * block;
    for (const auto& extent : extents) {
        const auto end = at + extent.length;
        if (extent.hole) {
            runs.add(round_up(at, block) / block, Provisioning::mapped);
            runs.add(end / block, Provisioning::deallocated);
        } else {
            runs.add(round_up(end, block) / block, Provisioning::mapped);
        }
        at = end;
    }
    runs.flush();
    report.put_at(0,
                  LbaStatusHeader{.length_after = static_cast<std::uint32_t>(report.size() - 4)});
    const auto told = std::min<std::uint64_t>(
        {report.size(), command.allocation_length, work.memory.size() - extents_bytes});
    unit.answer_memory(task, work.memory.subspan(extents_bytes, static_cast<std::size_t>(told)));
}

void status_came(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, false);
    write_status(unit, task);
}

void ask_status(LogicalUnit& unit, Task& task) {
    auto& work = task.work;
    auto* extents = reinterpret_cast<Extent*>(work.memory.data());
    const auto rest = (unit.block_count() - work.range.first) * unit.block_bytes();
    if (!unit.traits().can_report_status) {
        extents[0] = {.length = rest};
        work.device.extent_count = 1;
        return write_status(unit, task);
    }
    work.device.extents = {extents, extents_max};
    work.device.extent_count = 0;
    unit.ask_device(task, BlockOperation::status, offset_of(unit, task), rest, status_came);
}

}  // namespace

void unmap(LogicalUnit& unit, Task& task) {
    const auto command = parse<Unmap>(task);
    if (command.anchor) return unit.refuse(task, bad_field(1, 0));
    if (command.parameter_length == 0) return unit.good(task);
    if (command.parameter_length < wire_size<UnmapListHeader>())
        return unit.refuse(task, parameter_length_error());
    if (command.parameter_length > parameter_bytes) return unit.refuse(task, bad_field(7));
    task.answer.length_out = command.parameter_length;
    unit.take_memory(task, parameter_bytes, unmap_collect);
}

void get_lba_status(LogicalUnit& unit, Task& task) {
    const auto command = parse<GetLbaStatus>(task);
    if (command.first_block >= unit.block_count())
        return unit.refuse(task, out_of_range(command.first_block));
    if (command.report_type != 0) return unit.refuse(task, bad_field(14));
    task.work.range = {command.first_block, 1};
    const auto room =
        wire_size<LbaStatusHeader>() + (2 * extents_max + 2) * wire_size<LbaStatusDescriptor>();
    unit.take_memory(task, extents_bytes + room, ask_status);
}

}  // namespace weft::scsi
