// SPDX-License-Identifier: Apache-2.0
// A request inside the engine, from its submission until nothing of it is left at any box: what was
// asked for, which does not change, how much of it is done, and what it waits for. While it is
// being carried out it has an attempt.
#pragma once

#include <memory>

#include "raid/admission.hpp"
#include "raid/attempt.hpp"
#include "raid/row_repairs.hpp"
#include "raid/scrub_step.hpp"
#include "raid/volume_requests.hpp"
#include "raid/volume_view.hpp"

namespace weft::raid {

/// What keeps a request without an attempt from competing for a window.
enum class Hold : std::uint8_t {
    none,
    membership,  ///< until the volume is set, or tried again
    permission,  ///< until what must be durable before a write is
    window,      ///< until a window is free at all the boxes it needs
};

struct Request {
    // What was asked for.
    Arrival arrival = 0;
    Admission::Kind kind{};
    RowOrder::Use use{};
    wire::HostSession session{};
    wire::HostIdentity host_identity{};
    std::uint64_t host_command = 0;
    std::vector<Band> bands;
    std::uint64_t length = 0;  ///< octets; of upkeep: of the chunk

    // To be answered: one of both, and none once it is.
    HostRequest* host = nullptr;
    UpkeepRequest* upkeep = nullptr;

    // How far it is.
    std::uint64_t done = 0;
    std::uint64_t part = 0;  ///< that the next attempt is about, or the one there is
    Hold hold = Hold::none;
    bool is_counted = true;  ///< among the requests its session may have
    bool is_begun = false;   ///< it has been planned before: what it writes may be half written
    std::unique_ptr<Attempt> attempt;
    /// Since when no attempt has gone through; none: the last one has.
    std::optional<Instant> failing_since;

    // What earlier attempts leave to the next.
    Mask uncommitted = 0;  ///< places that were to write and did not say that they had
    bool recomputes_parity = false;
    bool has_disagreed = false;  ///< what was prepared once did not add up
    Mask late = 0;               ///< boxes it no longer waits for: it is served by the others
    Instant late_since{};
    bool waits_for_late = false;  ///< nobody else can serve it
    std::uint64_t brought = 0;    ///< octets that a box that was late has brought after all
    RowRepairs repairs;
    ScrubStep scrub;

    bool is_host() const { return kind != Admission::Kind::upkeep; }
    bool is_answered() const { return !host && !upkeep; }
    bool is(UpkeepKind what) const { return upkeep && upkeep->kind == what; }
    bool is_host_read() const { return host && host->operation == HostOperation::read; }
};

/// What is asked for, of a volume as it is now.
Request request_of(HostRequest& asked, const VolumeView& view);
Request request_of(UpkeepRequest& asked, const VolumeView& view);

}  // namespace weft::raid
