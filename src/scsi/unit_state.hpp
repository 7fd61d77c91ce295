// SPDX-License-Identifier: Apache-2.0
// What a unit remembers from one command to the next.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/intrusive_queue.hpp"
#include "scsi/copy_results.hpp"
#include "scsi/erasure.hpp"
#include "scsi/reservations.hpp"
#include "scsi/retained_difference.hpp"
#include "weft/instant.hpp"
#include "wire/scsi_port_groups.hpp"

namespace weft::scsi {

class Nexus;
class Task;

/// By what it is known everywhere and for ever.
struct UnitIdentity {
    std::uint64_t network_address = 0;  ///< NAA, "locally assigned"
    std::string serial;
};

/// What MODE SELECT can change.
struct ModeSettings {
    bool software_write_protect = false;
    bool descriptor_sense = false;
    bool write_cache = true;

    bool operator==(const ModeSettings&) const = default;
};

struct Timestamp {
    std::uint64_t milliseconds = 0;
    Instant at{};
    bool set = false;
};

struct GroupState {
    std::uint16_t group = 0;
    wire::AccessState state = wire::AccessState::active_optimized;
    bool set = false;
};

/// An erasure left the medium half erased: only another one, or one who may, ends that.
struct ErasureFailure {
    wire::AdditionalSense what{};  ///< sanitize_command_failed or medium_format_corrupted
    bool may_be_left = false;      ///< by EXIT FAILURE MODE
};

struct UnitState {
    ModeSettings mode{};
    bool medium_present = true;
    Nexus* reserved_by = nullptr;  ///< RESERVE
    Reservations reservations{};
    bool saving_reservations = false;          ///< a changed state is on its way to the store
    IntrusiveQueue<Task> waiting_reservers{};  ///< who change them next
    std::unique_ptr<Erasure> erasure{};
    Task* erasing_task = nullptr;  ///< it waits for the erasure's end
    std::optional<ErasureFailure> erasure_failure{};
    CopyResults copies{};
    RetainedDifferences differences{};
    Timestamp timestamp{};
    std::vector<GroupState> groups{};  ///< those that are not active and optimized
};

}  // namespace weft::scsi
