// SPDX-License-Identifier: Apache-2.0
// The 32 octet forms of read, write, verify and write same (SBC-4): a variable length command block
// whose point is to name the protection information it expects. iSCSI carries the second half of it
// in an additional header.
#pragma once

#include "wire/scsi_block_commands.hpp"

namespace weft::wire {

/// The start of every variable length command block: enough to know what it is.
struct VariableLengthStart {
    ControlOctet control{};
    std::uint8_t additional_length = 0;  ///< octets beyond the eighth
    VariableLengthAction action{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::variable_length>(v);
        v.nested("control", h.control);
        v.pack(reserved<40>);
        v("additional length", h.additional_length);
        v("action", h.action);
    }
    bool operator==(const VariableLengthStart&) const = default;
};
static_assert(wire_size<VariableLengthStart>() == 10);

template <VariableLengthAction action, class Flags>
struct Transfer32 {
    ControlOctet control{};
    std::uint8_t group_number = 0;
    Flags flags{};
    std::uint64_t block_address = 0;
    std::uint32_t expected_reference_tag = 0;
    std::uint16_t expected_application_tag = 0;
    std::uint16_t application_tag_mask = 0;
    std::uint32_t block_count = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::variable_length>(v);
        v.nested("control", h.control);
        v.pack(reserved<35>, bits<5>("group number", h.group_number),
               fixed<8>("additional length", 24),
               fixed<16>("action", static_cast<std::uint64_t>(action)));
        v.nested("flags", h.flags);
        v.pack(reserved<8>);
        v("block address", h.block_address);
        v("expected reference tag", h.expected_reference_tag);
        v("expected application tag", h.expected_application_tag);
        v("application tag mask", h.application_tag_mask);
        v("block count", h.block_count);
    }
    bool operator==(const Transfer32&) const = default;
};
using Read32 = Transfer32<VariableLengthAction::read_32, TransferFlags>;
using Write32 = Transfer32<VariableLengthAction::write_32, TransferFlags>;
using Verify32 = Transfer32<VariableLengthAction::verify_32, VerifyFlags>;
using WriteAndVerify32 = Transfer32<VariableLengthAction::write_and_verify_32, VerifyFlags>;
using WriteSame32 = Transfer32<VariableLengthAction::write_same_32, WriteSameFlags>;
using XorWriteRead32 = Transfer32<VariableLengthAction::xor_write_read_32, XorFlags>;
using XorParityWrite32 = Transfer32<VariableLengthAction::xor_parity_write_32, XorFlags>;
static_assert(wire_size<Read32>() == 32);

}  // namespace weft::wire
