// SPDX-License-Identifier: Apache-2.0
// MODE SENSE and MODE SELECT: the settings of a unit. Three can be changed: write protection, the
// format of sense data, and whether writes may stay in the cache. All initiators share them.
#include "base/bytes.hpp"
#include "scsi/commands.hpp"
#include "scsi/report_writer.hpp"
#include "wire/scsi_mode_pages.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

constexpr std::uint16_t no_busy_limit = 0xffff;

CachingPage caching_page(const ModeSettings& settings) {
    return {.write_cache = settings.write_cache};
}

ControlPage control_page(const ModeSettings& settings) {
    return {.descriptor_sense = settings.descriptor_sense,
            .global_logging = true,
            .queue_algorithm = 1,
            .software_write_protect = settings.software_write_protect,
            .busy_timeout_period = no_busy_limit};
}

/// What MODE SENSE tells: values, or which bits of them can be changed.
void put_pages(LogicalUnit& unit, ReportWriter& report, ModePageControl control,
               ModePageCode page) {
    auto asked = [&](ModePageCode code) { return page == ModePageCode::all_pages || page == code; };
    const bool mask = control == ModePageControl::changeable;
    const auto settings = control == ModePageControl::current ? unit.state().mode : ModeSettings{};
    if (asked(ModePageCode::caching))
        report.put(mask ? CachingPage{.write_cache = true} : caching_page(settings));
    if (asked(ModePageCode::control))
        report.put(mask ? ControlPage{.descriptor_sense = true, .software_write_protect = true}
                        : control_page(settings));
    if (asked(ModePageCode::informational_exceptions))
        report.put(mask ? InformationalExceptionsPage{}
                        : InformationalExceptionsPage{.exceptions_disabled = true});
}

template <class CommandBlock>
struct Shape;
template <>
struct Shape<ModeSense6> {
    using Header = ModeHeader6;
    static constexpr std::size_t length_field = 1;
};
template <>
struct Shape<ModeSense10> {
    using Header = ModeHeader10;
    static constexpr std::size_t length_field = 2;
};

template <class CommandBlock>
void write_mode(LogicalUnit& unit, Task& task) {
    const auto command = parse<CommandBlock>(task);
    using Header = typename Shape<CommandBlock>::Header;
    ReportWriter report(task.work.memory);
    Header header{.device = {.write_protected = unit.write_protected(),
                             .cache_control = unit.options().cache_control}};
    report.put(header);
    if (!command.no_block_descriptors && unit.state().medium_present) {
        const auto count = unit.block_count();
        bool is_long = false;
        if constexpr (requires { command.long_addresses_accepted; })
            is_long = command.long_addresses_accepted;
        if (is_long)
            report.put(LongBlockDescriptor{count, unit.block_bytes()});
        else
            report.put(ShortBlockDescriptor{
                static_cast<std::uint32_t>(std::min<std::uint64_t>(count, 0xffffffff)),
                unit.block_bytes()});
        if constexpr (requires { header.long_block_descriptors; })
            header.long_block_descriptors = is_long;
        header.block_descriptors_length =
            is_long ? wire_size<LongBlockDescriptor>() : wire_size<ShortBlockDescriptor>();
    }
    put_pages(unit, report, command.page_control, command.page);
    header.data_length = static_cast<decltype(header.data_length)>(
        report.size() - Shape<CommandBlock>::length_field);
    report.put_at(0, header);
    unit.answer(task, report.size(), command.allocation_length);
}

template <class CommandBlock>
void mode_sense(LogicalUnit& unit, Task& task) {
    const auto command = parse<CommandBlock>(task);
    if (command.page_control == ModePageControl::saved)
        return unit.refuse(task, illegal(AdditionalSense::saving_parameters_not_supported));
    switch (command.page) {
        case ModePageCode::caching:
        case ModePageCode::control:
        case ModePageCode::informational_exceptions:
            if (command.subpage != 0) return unit.refuse(task, bad_field(3));
            break;
        case ModePageCode::all_pages:
            if (command.subpage != 0 && command.subpage != 0xff)
                return unit.refuse(task, bad_field(3));
            break;
        default:
            return unit.refuse(task, bad_field(2));
    }
    unit.take_memory(task, parameter_bytes, write_mode<CommandBlock>);
}

// --- MODE SELECT

/// Takes what a page asks for. Bits that cannot be changed must be as they are.
std::optional<Sense> apply_page(const ModePage& page, std::uint16_t at, ModeSettings& settings) {
    if (page.subpage != 0) return bad_parameter(at);
    switch (page.code) {
        case ModePageCode::caching: {
            auto wanted = decode<CachingPage>(page.whole);
            if (!wanted) return bad_parameter(at);
            settings.write_cache = wanted->write_cache;
            wanted->savable = false;
            if (*wanted != caching_page(settings)) return bad_parameter(at);
            return std::nullopt;
        }
        case ModePageCode::control: {
            auto wanted = decode<ControlPage>(page.whole);
            if (!wanted) return bad_parameter(at);
            settings.software_write_protect = wanted->software_write_protect;
            settings.descriptor_sense = wanted->descriptor_sense;
            wanted->savable = false;
            if (*wanted != control_page(settings)) return bad_parameter(at);
            return std::nullopt;
        }
        case ModePageCode::informational_exceptions: {
            auto wanted = decode<InformationalExceptionsPage>(page.whole);
            if (!wanted) return bad_parameter(at);
            wanted->savable = false;
            if (*wanted != InformationalExceptionsPage{.exceptions_disabled = true})
                return bad_parameter(at);
            return std::nullopt;
        }
        default:
            return bad_parameter(at);
    }
}

std::optional<Sense> apply_block_descriptor(LogicalUnit& unit, ConstBuffer list, bool is_long) {
    if (list.empty()) return std::nullopt;
    std::uint64_t block_bytes = 0;
    if (is_long) {
        auto one = decode<LongBlockDescriptor>(list);
        if (!one) return parameter_length_error();
        block_bytes = one->block_bytes;
    } else {
        auto one = decode<ShortBlockDescriptor>(list);
        if (!one) return parameter_length_error();
        block_bytes = one->block_bytes;
    }
    if (block_bytes != 0 && block_bytes != unit.block_bytes()) return bad_parameter(0);
    return std::nullopt;
}

template <class Header>
void apply(LogicalUnit& unit, Task& task) {
    if (task.offered_out < task.answer.length_out)
        return unit.refuse(task, parameter_length_error());
    const ConstBuffer list =
        task.work.memory.first(static_cast<std::size_t>(task.answer.length_out));
    const auto header = decode<Header>(list);
    if (!header) return unit.refuse(task, parameter_length_error());
    auto rest = list.subspan(wire_size<Header>());
    if (header->block_descriptors_length > rest.size())
        return unit.refuse(task, parameter_length_error());
    bool is_long = false;
    if constexpr (requires { header->long_block_descriptors; })
        is_long = header->long_block_descriptors;
    if (auto sense =
            apply_block_descriptor(unit, rest.first(header->block_descriptors_length), is_long))
        return unit.refuse(task, *sense);
    rest = rest.subspan(header->block_descriptors_length);
    auto settings = unit.state().mode;
    ModePages pages(rest);
    for (;;) {
        const auto page = pages.next();
        if (!page) return unit.refuse(task, parameter_length_error());
        if (!*page) break;
        const auto at = static_cast<std::uint16_t>((*page)->whole.data() - list.data());
        if (auto sense = apply_page(**page, at, settings)) return unit.refuse(task, *sense);
    }
    if (settings != unit.state().mode) {
        unit.state().mode = settings;
        unit.tell_others(task.nexus, AdditionalSense::mode_parameters_changed);
    }
    unit.good(task);
}

template <class Header>
void collect(LogicalUnit& unit, Task& task) {
    unit.want_data(task, apply<Header>);
}

template <class CommandBlock, class Header>
void mode_select(LogicalUnit& unit, Task& task) {
    const auto command = parse<CommandBlock>(task);
    if (!command.page_format) return unit.refuse(task, bad_field(1, 4));
    if (command.save_pages) return unit.refuse(task, bad_field(1, 0));
    if (command.parameter_length == 0) return unit.good(task);
    if (command.parameter_length > parameter_bytes)
        return unit.refuse(task, parameter_length_error());
    task.answer.length_out = command.parameter_length;
    unit.take_memory(task, parameter_bytes, collect<Header>);
}

}  // namespace

void mode_sense_6(LogicalUnit& unit, Task& task) {
    mode_sense<ModeSense6>(unit, task);
}
void mode_sense_10(LogicalUnit& unit, Task& task) {
    mode_sense<ModeSense10>(unit, task);
}
void mode_select_6(LogicalUnit& unit, Task& task) {
    mode_select<ModeSelect6, ModeHeader6>(unit, task);
}
void mode_select_10(LogicalUnit& unit, Task& task) {
    mode_select<ModeSelect10, ModeHeader10>(unit, task);
}

}  // namespace weft::scsi
