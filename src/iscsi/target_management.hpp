// SPDX-License-Identifier: Apache-2.0
// A task management function under way on a connection. Part of target_requests.cpp.
#pragma once

#include "iscsi/target_connection.hpp"
#include "wire/iscsi_task_management.hpp"

namespace weft::iscsi {

class TargetConnection::Management final : public scsi::Management {
public:
    Management(TargetConnection& owner, wire::InitiatorTaskTag its_tag)
        : connection(&owner), tag(its_tag) {}

    TargetConnection* connection;  ///< none: it was lost meanwhile, and nobody waits
    wire::InitiatorTaskTag tag;

    void done(wire::TaskManagementResult result) override;
};

}  // namespace weft::iscsi
