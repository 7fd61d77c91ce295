// SPDX-License-Identifier: Apache-2.0
// Why a command is refused, and the sense data that says so.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fixed_vector.hpp"
#include "scsi/limits.hpp"
#include "weft/buffer.hpp"
#include "weft/result.hpp"
#include "wire/scsi_sense.hpp"

namespace weft::scsi {

struct Sense {
    wire::SenseKey key{};
    wire::AdditionalSense additional{};
    std::optional<std::uint64_t> information{};  ///< an address, an offset
    std::optional<wire::SenseKeySpecific> specific{};

    bool operator==(const Sense&) const = default;
};

using SenseOctets = FixedVector<std::byte, sense_max>;

/// Fixed format has room for 32 bits of information; what does not fit is left out.
SenseOctets encode_sense(const Sense& sense, bool descriptor_format);

/// Ready descriptors, under this key; those that do not fit are cut off, and that is said.
SenseOctets encode_descriptors(wire::SenseKey key, ConstBuffer descriptors);

/// 5/2400: an octet of the command block, and its bit if one is to blame, is wrong.
Sense bad_field(std::uint16_t octet);
Sense bad_field(std::uint16_t octet, std::uint8_t bit);
/// 5/2600: the same in the parameter list.
Sense bad_parameter(std::uint16_t octet);
Sense parameter_length_error();
Sense out_of_range(std::uint64_t block);
Sense illegal(wire::AdditionalSense additional);
Sense not_ready(wire::AdditionalSense additional);
/// With how far it has come, in 65536ths.
Sense in_progress(wire::AdditionalSense additional, std::uint16_t progress);
Sense miscompare(std::uint64_t offset);

/// What a device's refusal is to an initiator. `changing`: it was to change data.
Sense sense_of(Error error, bool changing, std::uint64_t block);

}  // namespace weft::scsi
