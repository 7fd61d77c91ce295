// SPDX-License-Identifier: Apache-2.0
#include "iscsi/unit_probe.hpp"

#include <algorithm>
#include <bit>

#include "base/bytes.hpp"
#include "iscsi/command_fate.hpp"
#include "wire/scsi_mode.hpp"
#include "wire/scsi_primary_commands.hpp"

namespace weft::iscsi {

namespace {

/// Text without what fills its field up: spaces, as SCSI has it, or zeros, as some targets do.
std::string trimmed(std::string text) {
    using namespace std::string_view_literals;
    text.erase(text.find_last_not_of(" \0"sv) + 1);
    text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
    return text;
}

template <std::size_t Count>
std::string trimmed(const Octets<Count>& field) {
    return trimmed(std::string(field.begin(), field.end()));
}

bool is_a_size(const UnitFacts& facts) {
    return std::has_single_bit(facts.block_bytes) && facts.block_bytes >= block_bytes_min &&
           facts.block_bytes <= block_bytes_max && facts.block_count > 0 &&
           facts.block_count <= ~std::uint64_t{0} / facts.block_bytes;
}

/// Of the designators on page 83h those that name the logical unit: others name the port they were
/// asked for at, or the whole target. Where there is none such, the page must do.
std::vector<std::byte> names_of_unit(ConstBuffer page) {
    std::vector<std::byte> names;
    wire::Designators designators(page);
    for (auto each = designators.next(); each && *each; each = designators.next()) {
        const auto& [start, value] = **each;
        if (start.association != wire::DesignatorAssociation::logical_unit) continue;
        names.push_back(static_cast<std::byte>(start.type));
        names.insert(names.end(), value.begin(), value.end());
    }
    if (names.empty()) names.assign(page.begin(), page.end());
    return names;
}

}  // namespace

UnitProbe::UnitProbe(InitiatorSession& session, wire::LogicalUnit unit)
    : session_(session), unit_(unit) {}

void UnitProbe::leave(std::unique_ptr<UnitProbe> probe) {
    if (!probe->busy()) return;
    probe->left_ = true;
    probe.release()->told_ = nullptr;
}

void UnitProbe::explore(Told told) {
    WEFT_CHECK(!busy());
    told_ = std::move(told);
    again_ = false;
    facts_ = {};
    run(Step::ready);
}

void UnitProbe::look_again(Told told) {
    WEFT_CHECK(!busy());
    told_ = std::move(told);
    again_ = true;
    known_identity_ = facts_.identity;
    known_block_bytes_ = facts_.block_bytes;
    facts_.identity.clear();
    run(Step::ready);
}

void UnitProbe::run(Step step) {
    step_ = step;
    attempts_ = 0;
    if (step == Step::over) return finish({});
    ask();
}

bool UnitProbe::has_page(wire::VitalProductPage page) const {
    return std::ranges::find(facts_.pages, static_cast<std::uint8_t>(page)) != facts_.pages.end();
}

UnitProbe::Step UnitProbe::after(Step step) const {
    using wire::VitalProductPage;
    switch (step) {
        case Step::ready:
            if (again_) return Step::capacity_16;
            return Step::inquiry;
        case Step::inquiry:
            return Step::capacity_16;
        case Step::capacity_16:
        case Step::capacity_10:
            if (again_ && known_identity_.empty()) return Step::over;
            return again_ ? Step::identity : Step::pages;
        case Step::pages:
            if (has_page(VitalProductPage::unit_serial_number)) return Step::serial;
            [[fallthrough]];
        case Step::serial:
            if (has_page(VitalProductPage::device_identification)) return Step::identity;
            [[fallthrough]];
        case Step::identity:
            if (again_) return Step::over;
            if (has_page(VitalProductPage::block_limits)) return Step::limits;
            [[fallthrough]];
        case Step::limits:
            if (has_page(VitalProductPage::logical_block_provisioning)) return Step::provisioning;
            [[fallthrough]];
        case Step::provisioning:
            if (has_page(VitalProductPage::block_device_characteristics))
                return Step::characteristics;
            [[fallthrough]];
        case Step::characteristics:
            return Step::mode;
        case Step::mode:
        case Step::over:
            return Step::over;
    }
    return Step::over;
}

template <class Block>
void UnitProbe::ask_with(const Block& block, std::uint32_t size) {
    std::array<std::byte, wire_size<Block>()> octets{};
    encode(block, octets);
    prepare(unit_, octets, Effect::reads);
    piece_ = Buffer(answer_).first(size);
    set_data_in({&piece_, 1}, size);
    if (again_)
        session_.submit_first(*this);
    else
        session_.submit(*this);
}

void UnitProbe::ask_for_page(wire::VitalProductPage page) {
    constexpr std::uint16_t room = 255;
    ask_with(wire::Inquiry{.vital_product_data = true,
                           .page_code = static_cast<std::uint8_t>(page),
                           .allocation_length = room},
             room);
}

void UnitProbe::ask() {
    using wire::VitalProductPage;
    switch (step_) {
        case Step::ready:
            return ask_with(wire::TestUnitReady{}, 0);
        case Step::inquiry:
            return ask_with(wire::Inquiry{.allocation_length = 96}, 96);
        case Step::capacity_16:
            return ask_with(wire::ReadCapacity16{.allocation_length = 32}, 32);
        case Step::capacity_10:
            return ask_with(wire::ReadCapacity10{}, 8);
        case Step::pages:
            return ask_for_page(VitalProductPage::supported_pages);
        case Step::serial:
            return ask_for_page(VitalProductPage::unit_serial_number);
        case Step::identity:
            return ask_for_page(VitalProductPage::device_identification);
        case Step::limits:
            return ask_for_page(VitalProductPage::block_limits);
        case Step::provisioning:
            return ask_for_page(VitalProductPage::logical_block_provisioning);
        case Step::characteristics:
            return ask_for_page(VitalProductPage::block_device_characteristics);
        case Step::mode:
            return ask_with(wire::ModeSense6{.no_block_descriptors = true,
                                             .page = wire::ModePageCode::caching,
                                             .allocation_length = 64},
                            64);
        case Step::over:
            return;
    }
}

void UnitProbe::ended(const CommandEnd& end) {
    if (left_) {
        delete this;
        return;
    }
    if (!end.delivered) return finish(end.delivered);
    const Fate fate = fate_of(end);
    if (fate.kind != FateKind::done) return retry_or_skip(end);
    const auto placed = static_cast<std::size_t>(end.placed);
    if (!read(ConstBuffer(answer_).first(placed))) return finish(Error{.code = Code::malformed});
    if (step_ == Step::inquiry && facts_.qualifier != wire::PeripheralQualifier::connected)
        return finish(Error{.code = Code::disconnected});
    run(after(step_));
}

void UnitProbe::retry_or_skip(const CommandEnd& end) {
    const Fate fate = fate_of(end);
    const bool passing = fate.kind == FateKind::again || fate.kind == FateKind::later;
    const bool later = fate.kind == FateKind::later;
    if (passing && ++attempts_ < (later ? busy_attempts_max : command_attempts_max)) {
        if (later) return session_.submit_later(*this);
        return ask();
    }
    switch (step_) {
        case Step::ready:
            // Not ready for another reason: what it says to the rest will tell.
            return run(after(step_));
        case Step::inquiry:
        case Step::capacity_10:
            return finish(fate.error);
        case Step::capacity_16:
            if (fate.error.code == Code::unsupported || fate.error.code == Code::malformed)
                return run(Step::capacity_10);
            return finish(fate.error);
        case Step::identity:
            // Who was known by it must show it again.
            if (again_) return finish(fate.error);
            return run(after(step_));
        default:
            // A page that is listed and not given, or a mode page an old device lacks.
            return run(after(step_));
    }
}

bool UnitProbe::read(ConstBuffer data) {
    using wire::VitalProductPage;
    switch (step_) {
        case Step::inquiry: {
            const auto inquiry = decode<wire::StandardInquiryData>(data);
            if (!inquiry) return false;
            facts_.qualifier = inquiry->qualifier;
            facts_.type = inquiry->type;
            facts_.vendor = trimmed(inquiry->vendor);
            facts_.product = trimmed(inquiry->product);
            facts_.revision = trimmed(inquiry->revision);
            return true;
        }
        case Step::capacity_16: {
            const auto capacity = decode<wire::Capacity16>(data);
            if (!capacity || capacity->last_block == ~std::uint64_t{0}) return false;
            facts_.block_count = capacity->last_block + 1;
            facts_.block_bytes = capacity->block_bytes;
            facts_.blocks_per_physical_exponent = capacity->blocks_per_physical_exponent;
            facts_.provisioning_management = capacity->provisioning_management;
            facts_.unmapped_reads_zero = capacity->unmapped_reads_zero;
            return is_a_size(facts_);
        }
        case Step::capacity_10: {
            const auto capacity = decode<wire::Capacity10>(data);
            if (!capacity) return false;
            facts_.block_count = std::uint64_t{capacity->last_block} + 1;
            facts_.block_bytes = capacity->block_bytes;
            return is_a_size(facts_);
        }
        case Step::pages:
            return read_page(data, VitalProductPage::supported_pages);
        case Step::serial:
            return read_page(data, VitalProductPage::unit_serial_number);
        case Step::identity:
            return read_page(data, VitalProductPage::device_identification);
        case Step::limits:
            return read_page(data, VitalProductPage::block_limits);
        case Step::provisioning:
            return read_page(data, VitalProductPage::logical_block_provisioning);
        case Step::characteristics:
            return read_page(data, VitalProductPage::block_device_characteristics);
        case Step::mode: {
            const auto header = decode<wire::ModeHeader6>(data);
            if (!header) return true;
            facts_.write_protected = header->device.write_protected;
            facts_.can_force_unit_access = header->device.cache_control;
            return true;
        }
        case Step::ready:
        case Step::over:
            break;
    }
    return true;
}

bool UnitProbe::read_page(ConstBuffer data, wire::VitalProductPage page) {
    using wire::VitalProductPage;
    const auto start = decode<wire::VitalProductPageStart>(data);
    if (!start || start->page != page) return true;  // a page that is not there is not known
    data = data.subspan(wire_size<wire::VitalProductPageStart>());
    data = data.first(std::min<std::size_t>(data.size(), start->length));
    switch (page) {
        case VitalProductPage::supported_pages:
            for (std::byte code : data) facts_.pages.push_back(std::to_integer<std::uint8_t>(code));
            break;
        case VitalProductPage::unit_serial_number:
            facts_.serial = trimmed(std::string(text_of(data)));
            break;
        case VitalProductPage::device_identification:
            facts_.identity = names_of_unit(data);
            break;
        case VitalProductPage::block_limits: {
            // Older devices know less of it; what they do not say is zero, which says nothing.
            std::array<std::byte, wire_size<wire::BlockLimits>()> whole{};
            std::ranges::copy(data.first(std::min(data.size(), whole.size())), whole.begin());
            if (auto limits = decode<wire::BlockLimits>(whole)) facts_.limits = *limits;
            break;
        }
        case VitalProductPage::logical_block_provisioning:
            if (auto provisioning = decode<wire::LogicalBlockProvisioning>(data))
                facts_.provisioning = *provisioning;
            break;
        case VitalProductPage::block_device_characteristics:
            if (auto nature = decode<wire::BlockDeviceCharacteristics>(data))
                facts_.rotation_rate = nature->rotation_rate;
            break;
        default:
            break;
    }
    return true;
}

void UnitProbe::finish(Result<void> outcome) {
    step_ = Step::over;
    if (outcome && again_ &&
        (facts_.identity != known_identity_ || facts_.block_bytes != known_block_bytes_))
        outcome = Error{.code = Code::access_denied};
    std::exchange(told_, nullptr)(outcome);
}

}  // namespace weft::iscsi
