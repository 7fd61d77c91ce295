// SPDX-License-Identifier: Apache-2.0
// What a plan costs, counted as the paper counts: octets at both ends of every transfer, and
// operations, which are PDUs sent and RDMA operations begun. Runs of pieces of one order that
// follow each other in one peer's memory are one operation.
#pragma once

#include "raid/order.hpp"

namespace weft::raid {

struct RoleTally {
    std::uint64_t octets = 0;      ///< sent or received
    std::uint64_t operations = 0;  ///< PDUs sent and RDMA operations begun

    bool operator==(const RoleTally&) const = default;
};

struct Tally {
    RoleTally host, controller, boxes;
    std::uint64_t wire_octets = 0;                  ///< every transfer counted once
    std::uint64_t disk_reads = 0, disk_writes = 0;  ///< octets

    RoleTally total() const {
        return {host.octets + controller.octets + boxes.octets,
                host.operations + controller.operations + boxes.operations};
    }
    bool operator==(const Tally&) const = default;
};

/// A host's request: its command and the answer to it are counted too.
Tally tally_of_request(const Plan& plan);
/// Upkeep that nobody asked for by a command.
Tally tally_of_upkeep(const Plan& plan);

}  // namespace weft::raid
