// SPDX-License-Identifier: Apache-2.0
// How an initiator's port is named in persistent reservations: its iSCSI name and its session
// identifier, as text.
#pragma once

#include <optional>
#include <vector>

#include "scsi/nexus.hpp"
#include "weft/buffer.hpp"

namespace weft::scsi {

std::vector<std::byte> transport_identifier(const NexusName& name);
/// The initiator's part of a name; none if it is not an iSCSI port's.
std::optional<NexusName> named_by(ConstBuffer identifier);

}  // namespace weft::scsi
