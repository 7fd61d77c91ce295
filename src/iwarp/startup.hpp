// SPDX-License-Identifier: Apache-2.0
// MPA's opening (RFC 5044 section 7, RFC 6581): one frame each way, then FPDUs.
//
// The initiator's frame goes at once; the responder's when the application has seen the request and
// decided. Nothing of what follows a frame is read here: want() asks for exactly the frame.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "iwarp/terms.hpp"
#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft::iwarp {

enum class StartupEvent : std::uint8_t {
    requested,    ///< responder: the peer's frame is here; accept() or reject()
    established,  ///< initiator: accepted. Responder: our accepting frame is wholly sent
    rejected,     ///< initiator: the application there does not want us
};

class Startup {
public:
    /// `now`: when the connection was made; the peer's frame is waited for from then on.
    Startup(Role role, const Wishes& wishes, ConstBuffer private_data, Instant now);

    Buffer want();
    Result<std::optional<StartupEvent>> filled(std::size_t count);
    std::size_t pending(std::span<ConstBuffer> pieces);
    std::optional<StartupEvent> sent(std::size_t count);
    std::optional<Instant> deadline() const;
    /// Code::timed_out when the peer has taken too long.
    Result<void> tick(Instant now);

    // After `requested`, once:
    /// Refused (Code::unsupported) if `wishes` and the request cannot be brought together.
    Result<void> accept(const Wishes& wishes, ConstBuffer private_data);
    void reject(ConstBuffer private_data);

    /// What the peer's application sent along; after `requested`, `established` or `rejected`.
    ConstBuffer peer_private_data() const;
    /// The peer's own wishes for reads, as a responder's application sees them before it accepts;
    /// none if the peer did not say.
    std::optional<std::uint16_t> peer_inbound_reads() const;
    std::optional<std::uint16_t> peer_outbound_reads() const;
    /// What was agreed; after `established`, or after accept().
    const Terms& terms() const;
};

}  // namespace weft::iwarp
