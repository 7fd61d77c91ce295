// SPDX-License-Identifier: Apache-2.0
// All of SCSI's wire formats a disk needs (SAM-5, SPC-4, SBC-4).
#pragma once

#include "wire/scsi_block_commands.hpp"
#include "wire/scsi_block_commands_32.hpp"
#include "wire/scsi_capacity.hpp"
#include "wire/scsi_copy.hpp"
#include "wire/scsi_inquiry.hpp"
#include "wire/scsi_lun.hpp"
#include "wire/scsi_medium_commands.hpp"
#include "wire/scsi_mode.hpp"
#include "wire/scsi_mode_pages.hpp"
#include "wire/scsi_operation.hpp"
#include "wire/scsi_port_groups.hpp"
#include "wire/scsi_primary_commands.hpp"
#include "wire/scsi_report.hpp"
#include "wire/scsi_reservation.hpp"
#include "wire/scsi_sense.hpp"
#include "wire/scsi_status.hpp"
#include "wire/scsi_stored_reservations.hpp"
#include "wire/scsi_third_party_copy.hpp"
#include "wire/scsi_timestamp.hpp"
#include "wire/scsi_vital_product_data.hpp"
