// SPDX-License-Identifier: Apache-2.0
// Persistent reservations of one unit (SPC-4 section 5.13): who is registered, who holds it, and
// what that leaves to others. No tasks here: what is asked is decided, and what others must be told
// is returned.
#pragma once

#include <optional>
#include <vector>

#include "scsi/command.hpp"
#include "scsi/limits.hpp"
#include "scsi/nexus.hpp"
#include "weft/result.hpp"
#include "wire/scsi_reservation.hpp"
#include "wire/scsi_sense.hpp"

namespace weft::scsi {

struct Registration {
    NexusName name{};
    wire::ReservationKey key{};
    bool all_target_ports = false;

    bool covers(const NexusName& other) const;
    bool operator==(const Registration&) const = default;
};

/// Somebody is to hear of it.
struct Notice {
    NexusName who{};
    wire::AdditionalSense what{};
    bool abort_tasks = false;  ///< and his tasks are ended
};

enum class ReserveOutcome : std::uint8_t {
    done,
    conflict,
    invalid_field,      ///< of the command block
    invalid_parameter,  ///< of the parameter list
    invalid_release,    ///< 5/2604
    no_room,            ///< 5/5504
};

class Reservations {
public:
    using Notices = std::vector<Notice>;

    bool empty() const { return registrations_.empty(); }
    const std::vector<Registration>& registrations() const { return registrations_; }
    std::uint32_t generation() const { return generation_; }
    wire::ReservationType type() const { return type_; }
    bool reserved() const { return type_ != wire::ReservationType::none; }
    bool persists() const { return persists_; }
    const Registration* of(const NexusName& name) const;
    bool holds(const NexusName& name) const;
    /// What READ RESERVATION tells: none if all registrants hold it.
    wire::ReservationKey holder_key() const;
    bool allows(const NexusName& name, Reach reach) const;

    /// All but REGISTER AND MOVE.
    ReserveOutcome perform(wire::ReserveOutAction action, wire::ReservationType type,
                           const wire::ReserveOutParameters& parameters, const NexusName& who,
                           Notices& notices);
    ReserveOutcome move(const wire::RegisterAndMoveParameters& parameters, const NexusName& who,
                        const NexusName& to);

    /// The whole state for storage: empty registrations if it is not to outlive the target.
    std::vector<std::byte> stored() const;
    /// What stored() gave; `malformed` leaves everything as it was.
    Result<void> restore(ConstBuffer octets);

private:
    ReserveOutcome enroll(const wire::ReserveOutParameters& parameters, const NexusName& who,
                          bool ignore_old, Notices& notices);
    ReserveOutcome reserve(wire::ReservationType type, const NexusName& who);
    ReserveOutcome release(wire::ReservationType type, const NexusName& who, Notices& notices);
    ReserveOutcome preempt(wire::ReserveOutAction action, wire::ReservationType type,
                           const wire::ReserveOutParameters& parameters, const NexusName& who,
                           Notices& notices);
    void unregister(const NexusName& who, Notices& notices);
    void free_reservation();
    Registration* find(const NexusName& name);

    std::vector<Registration> registrations_;
    std::uint32_t generation_ = 0;
    wire::ReservationType type_{};
    std::optional<NexusName> holder_;
    bool persists_ = false;
};

bool is_all_registrants(wire::ReservationType type);
bool is_registrants_only(wire::ReservationType type);

}  // namespace weft::scsi
