// SPDX-License-Identifier: Apache-2.0
#include "scsi/sense.hpp"

#include "base/wire_format.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

template <class Header>
void append(SenseOctets& octets, const Header& header) {
    for (auto octet : encoded(header)) octets.push_back(octet);
}

SenseOctets encode_fixed(const Sense& sense) {
    FixedSense fixed_sense{.key = sense.key, .additional = sense.additional};
    if (sense.information && *sense.information <= 0xffffffff) {
        fixed_sense.information_valid = true;
        fixed_sense.information = static_cast<std::uint32_t>(*sense.information);
    }
    if (sense.specific) fixed_sense.specific = *sense.specific;
    SenseOctets octets;
    append(octets, fixed_sense);
    return octets;
}

SenseOctets encode_descriptors(const Sense& sense) {
    DescriptorSense header{.key = sense.key, .additional = sense.additional};
    std::size_t length = 0;
    if (sense.information) length += wire_size<SenseInformation>();
    if (sense.specific) length += wire_size<SenseKeySpecificDescriptor>();
    header.additional_length = static_cast<std::uint8_t>(length);
    SenseOctets octets;
    append(octets, header);
    if (sense.information) append(octets, SenseInformation{.number = *sense.information});
    if (sense.specific) append(octets, SenseKeySpecificDescriptor{*sense.specific});
    return octets;
}

SenseKeySpecific pointer_to(bool in_command_block, std::uint16_t octet) {
    return {.valid = true, .in_command_block = in_command_block, .pointer = octet};
}

}  // namespace

SenseOctets encode_sense(const Sense& sense, bool descriptor_format) {
    return descriptor_format ? encode_descriptors(sense) : encode_fixed(sense);
}

SenseOctets encode_descriptors(SenseKey key, ConstBuffer descriptors) {
    constexpr std::size_t room = sense_max - wire_size<DescriptorSense>();
    const auto whole = descriptors.first(std::min(descriptors.size(), room));
    SenseOctets octets;
    if (whole.empty() && key == SenseKey::no_sense) return octets;
    append(octets, DescriptorSense{.key = key,
                                   .sense_data_overflow = descriptors.size() > room,
                                   .additional_length = static_cast<std::uint8_t>(whole.size())});
    for (auto octet : whole) octets.push_back(octet);
    return octets;
}

Sense bad_field(std::uint16_t octet) {
    return {.key = SenseKey::illegal_request,
            .additional = AdditionalSense::invalid_field_in_command_block,
            .specific = pointer_to(true, octet)};
}

Sense bad_field(std::uint16_t octet, std::uint8_t bit) {
    auto sense = bad_field(octet);
    sense.specific->bit_valid = true;
    sense.specific->bit = bit;
    return sense;
}

Sense bad_parameter(std::uint16_t octet) {
    return {.key = SenseKey::illegal_request,
            .additional = AdditionalSense::invalid_field_in_parameter_list,
            .specific = pointer_to(false, octet)};
}

Sense parameter_length_error() {
    return illegal(AdditionalSense::parameter_list_length_error);
}

Sense out_of_range(std::uint64_t block) {
    auto sense = illegal(AdditionalSense::block_address_out_of_range);
    sense.information = block;
    return sense;
}

Sense illegal(AdditionalSense additional) {
    return {.key = SenseKey::illegal_request, .additional = additional};
}

Sense not_ready(AdditionalSense additional) {
    return {.key = SenseKey::not_ready, .additional = additional};
}

Sense in_progress(AdditionalSense additional, std::uint16_t progress) {
    auto sense = not_ready(additional);
    sense.specific = SenseKeySpecific{.valid = true, .pointer = progress};
    return sense;
}

Sense miscompare(std::uint64_t offset) {
    return {.key = SenseKey::miscompare,
            .additional = AdditionalSense::miscompare_during_verify,
            .information = offset};
}

Sense sense_of(Error error, bool changing, std::uint64_t block) {
    switch (error.code) {
        case Code::access_denied:
            return {.key = SenseKey::data_protect, .additional = AdditionalSense::write_protected};
        case Code::exhausted:
            return {.key = SenseKey::data_protect,
                    .additional = AdditionalSense::space_allocation_failed};
        case Code::out_of_range:
            return out_of_range(block);
        case Code::disconnected:
        case Code::timed_out:
            return not_ready(AdditionalSense::becoming_ready);
        case Code::io_failed:
            return {.key = SenseKey::medium_error,
                    .additional = changing ? AdditionalSense::write_error
                                           : AdditionalSense::unrecovered_read_error,
                    .information = block};
        default:
            return {.key = SenseKey::hardware_error,
                    .additional = AdditionalSense::internal_target_failure};
    }
}

}  // namespace weft::scsi
