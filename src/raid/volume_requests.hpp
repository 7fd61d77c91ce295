// SPDX-License-Identifier: Apache-2.0
// What a volume's engine is asked to do: by hosts, and by whoever keeps the volume whole.
#pragma once

#include "raid/order_codec.hpp"
#include "weft/buffer.hpp"

namespace weft::raid {

enum class HostOperation : std::uint8_t { read, write, flush };

/// A request is its maker's, who keeps it until completed() is called.
class HostRequest {
public:
    HostOperation operation{};
    bool durable = false;  ///< of a write: outlives the power when it is answered
    Range range{};
    PartyAccess memory{};  ///< the host's
    wire::HostSession session{};
    /// Of one attachment of a host, over all its sessions; all zero: of nobody who asks again.
    wire::HostIdentity host_identity{};
    std::uint64_t command = 0;
    /// Sent before, to a controller that did not answer. With a journal it is known whether that
    /// has done it; without, its parity may be half written, so it is made anew rather than
    /// changed.
    bool repeated = false;
    /// Boxes cannot reach this host: its data goes by way of the controller.
    bool in_band = false;
    /// Of a host that is the controller itself, in-band: its memory, reached by no tag.
    Buffer local{};

    /// Once; may be from inside submit().
    virtual void completed(Result<void> outcome) = 0;

protected:
    ~HostRequest() = default;
};

enum class UpkeepKind : std::uint8_t {
    rebuild,  ///< a stripe, on the boxes of `targets`
    scrub,    ///< a stripe's digests; `checked` and `agrees` say what they told
    repair,   ///< a stripe's parity, or its other copies, from the data
    flush,    ///< every box that is there
};

/// Work on a whole stripe that no host asked for. It gives way to hosts, and is not tried again by
/// the engine when a box fails: its maker knows better what is left to do.
class UpkeepRequest {
public:
    UpkeepKind kind{};
    std::uint64_t stripe = 0;
    Mask targets = 0;
    bool mends = false;  ///< of a scrub: what has missed a write is made anew, not only named
    bool checked = true, agrees = true;
    unsigned healed = 0;         ///< blocks that were not what they should be, and are now
    bool beyond_repair = false;  ///< it has failed for one that nobody can find again

    virtual void completed(Result<void> outcome) = 0;

protected:
    ~UpkeepRequest() = default;
};

}  // namespace weft::raid
