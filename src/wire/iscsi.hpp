// SPDX-License-Identifier: Apache-2.0
// All of iSCSI's wire formats (RFC 7143, with the additions of RFC 7144).
#pragma once

#include "wire/iscsi_command.hpp"
#include "wire/iscsi_header.hpp"
#include "wire/iscsi_login.hpp"
#include "wire/iscsi_notice.hpp"
#include "wire/iscsi_segments.hpp"
#include "wire/iscsi_task_management.hpp"
#include "wire/iscsi_text.hpp"
