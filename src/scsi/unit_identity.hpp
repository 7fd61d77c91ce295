// SPDX-License-Identifier: Apache-2.0
// Serial number and identifier of a unit, derived from a seed: the same ones each time the same
// disk is exported, so that initiators know it again.
#pragma once

#include <string_view>

#include "scsi/unit_options.hpp"
#include "scsi/unit_state.hpp"

namespace weft::scsi {

UnitIdentity derive_identity(const UnitOptions& options, std::string_view target,
                             std::uint32_t number);

}  // namespace weft::scsi
