// SPDX-License-Identifier: Apache-2.0
// How wishes become terms (RFC 5044 section 7.1, RFC 6581 section 9): what an initiator asks, what
// a responder makes of it, what the initiator makes of the answer. Functions of their arguments
// alone; startup.hpp has the stream around them.
//
// The initiator lowers its own reads to what the responder serves, and each side raises what it
// serves to what the other wants, up to a limit: as Linux and the hardware do, and more often of
// one mind than the RFC's plain "insufficient".
#pragma once

#include <optional>

#include "iwarp/terms.hpp"
#include "weft/result.hpp"
#include "wire/mpa.hpp"

namespace weft::iwarp {

/// Either frame, but for the application's octets. terms.private_data_size is not looked at.
struct StartupFrame {
    wire::MpaTerms terms;
    std::optional<wire::EnhancedTerms> enhanced;

    bool operator==(const StartupFrame&) const = default;
};

/// Refuses what cannot be put in a frame: Code::out_of_range for a number of reads,
/// Code::unsupported for a revision, or for readiness to be shown in no way at all.
Result<void> check_wishes(Role role, const Wishes& wishes);

/// Whether the frame is of a revision we speak: 0 (before the RFC), 1 or 2.
Result<void> check_revision(const wire::MpaTerms& terms);

// All below: wishes that were checked, frames of a revision that was.

StartupFrame request_for(const Wishes& wishes);

struct Answer {
    StartupFrame reply;
    Terms terms;
};
/// Any request can be answered: where the two sides differ, it is the initiator who gives up.
Answer answer_to(const StartupFrame& request, const Wishes& wishes);
StartupFrame rejection_of(const StartupFrame& request, const Wishes& wishes);

/// The part of the terms that says how FPDUs look and who the peer is. It holds whatever else goes
/// wrong, so that a Terminate can be sent.
Terms framing_terms(Role role, const StartupFrame& from_peer, const Wishes& wishes);

/// What the initiator makes of an accepting reply. Error::detail is as in fault.hpp.
Result<Terms> conclude(const StartupFrame& reply, const Wishes& wishes);

}  // namespace weft::iwarp
