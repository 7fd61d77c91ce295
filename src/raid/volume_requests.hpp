// SPDX-License-Identifier: Apache-2.0
// What a volume's engine is asked to do: by hosts, and by whoever keeps the volume whole.
#pragma once

#include <array>
#include <optional>

#include "raid/order_codec.hpp"
#include "weft/buffer.hpp"
#include "weft/instant.hpp"

namespace weft::raid {

enum class HostOperation : std::uint8_t { read, write, flush };

/// What a request waits for.
enum class WaitsFor : std::uint8_t {
    turn,     ///< others that touch the same rows, or a window
    room,     ///< in a box's journal, or for its window there
    volume,   ///< who is a member, or what must be lasting first
    read,     ///< boxes that read
    prepare,  ///< boxes that fetch, compute and make lasting
    commit,   ///< boxes that take it home
};
inline constexpr std::size_t waits_for_count = 6;

/// Where the time of a request went, for people.
struct RequestStory {
    std::array<Duration, waits_for_count> spent{};  ///< until `since`
    WaitsFor now{};
    Instant since{};
    Mask boxes = 0;         ///< that have not answered
    unsigned attempts = 0;  ///< plans that were begun
    bool hedged = false;    ///< a box was late, and the others served what it did not
    bool relayed = false;   ///< data went by way of the controller, around a link
    /// The answer that took longest.
    std::optional<std::uint8_t> slowest{};
    WaitsFor slowest_in{};
    Duration slowest_took{};

    void note_answer(std::uint8_t place, Duration took) {
        boxes &= ~only(place);
        if (slowest && took <= slowest_took) return;
        slowest = place;
        slowest_in = now;
        slowest_took = took;
    }
    void turns_to(WaitsFor next, Instant at) {
        spent[static_cast<std::size_t>(now)] += at - since;
        now = next;
        since = at;
    }
};

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
    RequestStory story{};
    /// Of a read, set before completed(): a box that it went around may still write into the
    /// memory. Whoever lends that hears by VolumeManagerOwner::writers_gone() when none can.
    bool leaves_writers = false;

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
