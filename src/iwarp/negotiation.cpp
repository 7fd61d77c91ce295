// SPDX-License-Identifier: Apache-2.0
#include "iwarp/negotiation.hpp"

#include <algorithm>

#include "iwarp/fault.hpp"

namespace weft::iwarp {
namespace {

using wire::EnhancedTerms;
using wire::MpaError;
using wire::MpaTerms;
using wire::reads_not_negotiated;

// Four flags of the header have no meaning in the RFCs, and receivers do not look at them. siw
// gives the first one its meaning, and echoes all of them in its reply without a look.
constexpr std::uint8_t takes_any_size = 0x8;  ///< FPDUs larger than a TCP segment
constexpr std::uint8_t asks_as_weft = 0x4;
constexpr std::uint8_t answers_as_weft = 0x2;
constexpr std::uint8_t request_flags = takes_any_size | asks_as_weft;
constexpr std::uint8_t reply_flags = request_flags | answers_as_weft;

// Where in a frame an error was found.
constexpr std::uint32_t at_flags = 16;
constexpr std::uint32_t at_revision = 17;
constexpr std::uint32_t at_enhanced_terms = 20;

Error refusal(Code code, MpaError why, std::uint32_t where) {
    return {.code = code, .detail = fault(why).detail, .where = where};
}
Error broken_rule(std::uint32_t where) {
    return refusal(Code::malformed, MpaError::invalid_startup_frame, where);
}

bool can_send(const Wishes& wishes, ReadyMessage ready) {
    switch (ready) {
        case ReadyMessage::send:
            return wishes.ready_by_send;
        case ReadyMessage::write:
            return wishes.ready_by_write;
        case ReadyMessage::read:
            return wishes.ready_by_read;
        case ReadyMessage::none:
            break;
    }
    return false;
}
bool allows(const EnhancedTerms& terms, ReadyMessage ready) {
    switch (ready) {
        case ReadyMessage::send:
            return terms.ready_by_send;
        case ReadyMessage::write:
            return terms.ready_by_write;
        case ReadyMessage::read:
            return terms.ready_by_read;
        case ReadyMessage::none:
            break;
    }
    return false;
}
/// An empty write costs nobody anything; a read is answered; a send takes a receive.
constexpr ReadyMessage by_preference[] = {ReadyMessage::write, ReadyMessage::read,
                                          ReadyMessage::send};

ReadyMessage choose_among(const EnhancedTerms& offered) {
    for (auto ready : by_preference)
        if (allows(offered, ready)) return ready;
    return ReadyMessage::write;
}

/// What we serve, raised to what the peer wants as far as that may be.
std::uint16_t inbound_reads(const Wishes& wishes, std::uint16_t wanted) {
    return std::max(wishes.inbound_reads, std::min(wanted, wishes.inbound_reads_max));
}

/// The flags of siw as distributed: no checksum, no markers, client and server. No hardware asks
/// like that: it wants a checksum, or peer to peer.
bool looks_like_plain_siw(const StartupFrame& request) {
    const auto& terms = request.terms;
    return terms.revision == 2 && !terms.markers && !terms.checksum && !terms.rejected &&
           terms.unassigned_flags == 0 && request.enhanced && !request.enhanced->peer_to_peer;
}

Peer who_asks(const StartupFrame& request, const Wishes& wishes) {
    auto flags = request.terms.unassigned_flags;
    // If we hide, it will take us for a stranger, from whom it wants nothing of RFC 7306.
    if (flags & asks_as_weft) return wishes.show_ourselves ? Peer::weft : Peer::unknown;
    if (flags & takes_any_size) return Peer::siw;
    return wishes.trust_plain_siw && looks_like_plain_siw(request) ? Peer::siw : Peer::unknown;
}

Peer who_answers(const StartupFrame& reply, const Wishes& wishes) {
    if (!wishes.show_ourselves) return Peer::unknown;
    auto flags = reply.terms.unassigned_flags & reply_flags;
    if (flags == reply_flags) return Peer::weft;
    return flags == request_flags ? Peer::siw : Peer::unknown;
}

std::uint8_t flags_in_reply(const MpaTerms& request, const Wishes& wishes) {
    if (!wishes.show_ourselves) return 0;
    if (request.unassigned_flags & asks_as_weft) return reply_flags;
    return request.unassigned_flags & takes_any_size;
}

/// Chooses the ready message and the reads, and says so in `reply`.
void answer_enhanced(const EnhancedTerms& request, const Wishes& wishes, EnhancedTerms& reply,
                     Terms& terms) {
    if (request.peer_to_peer) {
        terms.ready = choose_among(request);
        reply.peer_to_peer = true;
        reply.ready_by_send = terms.ready == ReadyMessage::send;
        reply.ready_by_write = terms.ready == ReadyMessage::write;
        reply.ready_by_read = terms.ready == ReadyMessage::read;
    }
    bool inbound_left_alone = request.outbound_reads == reads_not_negotiated;
    bool outbound_left_alone = request.inbound_reads == reads_not_negotiated;
    if (!inbound_left_alone) terms.inbound_reads = inbound_reads(wishes, request.outbound_reads);
    if (!outbound_left_alone)
        terms.outbound_reads = std::min(wishes.outbound_reads, request.inbound_reads);
    if (terms.ready == ReadyMessage::read)
        terms.inbound_reads = std::max<std::uint16_t>(terms.inbound_reads, 1);
    reply.inbound_reads = inbound_left_alone ? reads_not_negotiated : terms.inbound_reads;
    reply.outbound_reads = outbound_left_alone ? reads_not_negotiated : terms.outbound_reads;
}

/// The first message by preference that the reply allows and we can send.
Result<ReadyMessage> conclude_ready(const EnhancedTerms& reply, const Wishes& wishes) {
    if (!wishes.peer_to_peer) {
        if (reply.peer_to_peer) return broken_rule(at_enhanced_terms);
        return ReadyMessage::none;
    }
    for (auto ready : by_preference)
        if (reply.peer_to_peer && allows(reply, ready) && can_send(wishes, ready)) return ready;
    // Also for a responder that wants no readiness shown: RFC 6581 section 9.2 has one code for
    // both, "connection model or RTR option".
    return refusal(Code::unsupported, MpaError::no_matching_ready_message, at_enhanced_terms);
}

}  // namespace

Result<void> check_wishes(Role role, const Wishes& wishes) {
    // All ones is not a number of reads: it says that there is none.
    if (wishes.inbound_reads >= reads_not_negotiated ||
        wishes.outbound_reads >= reads_not_negotiated ||
        wishes.inbound_reads_max >= reads_not_negotiated)
        return Error{.code = Code::out_of_range};
    if (role == Role::responder) return {};
    if (wishes.revision != 1 && wishes.revision != 2) return Error{.code = Code::unsupported};
    bool can_be_ready = wishes.ready_by_send || wishes.ready_by_write || wishes.ready_by_read;
    if (wishes.revision == 2 && wishes.peer_to_peer && !can_be_ready)
        return Error{.code = Code::unsupported};
    return {};
}

Result<void> check_revision(const MpaTerms& terms) {
    if (terms.revision <= 2) return {};
    return refusal(Code::unsupported, MpaError::invalid_startup_frame, at_revision);
}

StartupFrame request_for(const Wishes& wishes) {
    StartupFrame request;
    request.terms.markers = wishes.markers;
    request.terms.checksum = wishes.checksum;
    request.terms.unassigned_flags = wishes.show_ourselves ? request_flags : 0;
    request.terms.revision = wishes.revision;
    if (wishes.revision < 2) return request;

    request.terms.enhanced = true;
    auto& enhanced = request.enhanced.emplace();
    enhanced.inbound_reads = wishes.inbound_reads;
    enhanced.outbound_reads = wishes.outbound_reads;
    if (!wishes.peer_to_peer) return request;
    enhanced.peer_to_peer = true;
    enhanced.ready_by_send = wishes.ready_by_send;
    enhanced.ready_by_write = wishes.ready_by_write;
    enhanced.ready_by_read = wishes.ready_by_read;
    // The read that shows readiness must be served too.
    if (wishes.ready_by_read)
        enhanced.outbound_reads = std::max<std::uint16_t>(enhanced.outbound_reads, 1);
    return request;
}

Terms framing_terms(Role role, const StartupFrame& from_peer, const Wishes& wishes) {
    bool responds = role == Role::responder;
    return {.role = role,
            .checksum = wishes.checksum || from_peer.terms.checksum,
            .markers_in = wishes.markers,
            .markers_out = from_peer.terms.markers,
            .inbound_reads = wishes.inbound_reads,
            .outbound_reads = wishes.outbound_reads,
            .ready = ReadyMessage::none,
            .peer = responds ? who_asks(from_peer, wishes) : who_answers(from_peer, wishes)};
}

Answer answer_to(const StartupFrame& request, const Wishes& wishes) {
    Answer answer{.reply = {}, .terms = framing_terms(Role::responder, request, wishes)};
    auto& reply = answer.reply;
    reply.terms.markers = wishes.markers;
    reply.terms.checksum = answer.terms.checksum;
    reply.terms.unassigned_flags = flags_in_reply(request.terms, wishes);
    reply.terms.revision = request.terms.revision;
    reply.terms.enhanced = request.enhanced.has_value();
    if (request.enhanced)
        answer_enhanced(*request.enhanced, wishes, reply.enhanced.emplace(), answer.terms);
    return answer;
}

StartupFrame rejection_of(const StartupFrame& request, const Wishes& wishes) {
    auto reply = answer_to(request, wishes).reply;
    reply.terms.rejected = true;
    reply.terms.markers = false;
    // Not what could have been agreed but what we wanted: RFC 6581 section 9.1.
    if (reply.enhanced && reply.enhanced->outbound_reads != reads_not_negotiated)
        reply.enhanced->outbound_reads = wishes.outbound_reads;
    return reply;
}

Result<Terms> conclude(const StartupFrame& reply, const Wishes& wishes) {
    if (reply.enhanced.has_value() != (wishes.revision == 2)) return broken_rule(at_flags);
    auto terms = framing_terms(Role::initiator, reply, wishes);
    if (!reply.enhanced) return terms;

    WEFT_TRY(terms.ready, conclude_ready(*reply.enhanced, wishes));
    if (auto wanted = reply.enhanced->outbound_reads; wanted != reads_not_negotiated) {
        terms.inbound_reads = inbound_reads(wishes, wanted);
        if (terms.inbound_reads < wanted)
            return refusal(Code::exhausted, MpaError::insufficient_inbound_reads,
                           at_enhanced_terms);
    }
    if (auto served = reply.enhanced->inbound_reads; served != reads_not_negotiated)
        terms.outbound_reads = std::min(terms.outbound_reads, served);
    if (terms.ready == ReadyMessage::read)
        terms.outbound_reads = std::max<std::uint16_t>(terms.outbound_reads, 1);
    return terms;
}

}  // namespace weft::iwarp
