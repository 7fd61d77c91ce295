// SPDX-License-Identifier: Apache-2.0
// The names of a unit, its target and the target's ports, as pages 83h and 88h and copies use them.
#pragma once

#include "scsi/logical_unit.hpp"
#include "scsi/report_writer.hpp"
#include "wire/scsi_copy.hpp"

namespace weft::scsi {

/// Page 83h, after its start, as the initiator of this nexus reads it.
void write_designators(LogicalUnit& unit, Nexus& nexus, ReportWriter& report);
/// Page 88h, after its start.
void write_ports(LogicalUnit& unit, ReportWriter& report);

/// Whether a copy's target descriptor means this unit.
bool is_named_by(LogicalUnit& unit, const wire::CopyTargetByIdentification& descriptor);

}  // namespace weft::scsi
