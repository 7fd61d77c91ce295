// SPDX-License-Identifier: Apache-2.0
// A SCSI command as an initiator's session sees it, and what may be done when its fate is unknown.
//
// When a connection is lost, a command that was sent may have run, or not. Whether it may be sent
// again depends on what it does:
//
// - `reads`: it changes nothing. Sent again, always.
// - `replaces`: it puts known data in a known place. Run twice in a row it leaves what it leaves
//   when run once. Two things could make the second run harmful, and both are excluded:
//   (1) the first run happens after the second, or after a later write: the session is reinstated
//       before anything is sent (a login with the same ISID and TSIH 0), and a target ends all
//       tasks of the old session before it lets the new one begin (RFC 7143 section 6.3.5);
//   (2) between the two runs somebody wrote something else there, and was told that it is done: the
//       second run would bring the old data back. So a command is not sent again once a later,
//       overlapping command of ours was acknowledged (`overtaken`). Its maker hears an error and
//       knows that the range holds either. A later one whose own fate is unknown is no obstacle:
//       nobody was told of it, and both are sent again, in their order. And nothing that overlaps
//       is sent behind one that is sent again before that is answered, or it could be
//       acknowledged between the two runs after all.
//   What other initiators write meanwhile we cannot know. Who shares a disk without reservations
//   must ask not to have writes sent again.
// - `once`: anything else. Never sent again.
//
// A flush counts as a read: it is sent again. If the target was restarted meanwhile and lost what
// it had acknowledged and not yet flushed, nobody tells us, as nobody tells Linux; who must know
// writes durably.
//
// A command that breaks one session after another is given up after a few.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/fixed_vector.hpp"
#include "iscsi/datamover.hpp"
#include "weft/instant.hpp"
#include "wire/iscsi_segments.hpp"

namespace weft::iscsi {

enum class Effect : std::uint8_t { reads, replaces, once };

/// How a command ended, if it did.
struct CommandEnd {
    /// Not good: the command's fate is unknown, or it was never sent.
    Result<void> delivered{};
    wire::ScsiStatus status{};
    ConstBuffer sense{};
    std::uint64_t placed = 0;  ///< octets of data-in, from the front
    wire::Residual residual{};
    std::uint32_t residual_count = 0;
};

class InitiatorCommand : public InitiatorMoverTask {
public:
    Effect effect = Effect::once;
    /// What `replaces` replaces, in octets of the logical unit.
    std::uint64_t offset = 0;
    std::uint64_t length = 0;

    InitiatorCommand* next = nullptr;  ///< the session's while it has the command

    /// The session's own, while it has the command.
    struct Journey {
        std::uint64_t order = 0;  ///< in which it was first sent; 0: not yet
        bool overtaken = false;
        bool again = false;  ///< it was sent before, and perhaps carried out
        bool first = false;  ///< it goes before all others
        unsigned resends = 0;
        bool answered = false;
        bool damaged = false;
        std::optional<Instant> since{};  ///< when it was first seen under way
        std::size_t connection = 0;
        CommandEnd end{};
        FixedVector<std::byte, 252> sense{};  ///< all there can be in sense data
    } journey;

    /// The command is its maker's again.
    virtual void ended(const CommandEnd& end) = 0;

    /// A later command that replaces some of the same was acknowledged while this one was out.
    bool overtaken() const { return journey.overtaken; }
    /// It was begun, and broken off: perhaps it has been carried out in part.
    void was_begun() { journey.again = true; }
    bool perhaps_carried_out() const { return journey.again; }

    /// Everything about the command but its data. `block` has at most 16 octets.
    void prepare(wire::LogicalUnit unit, std::span<const std::byte> block, Effect what) {
        command = {.attribute = wire::TaskAttribute::simple, .logical_unit = unit};
        std::ranges::transform(block, command.command_block.begin(), [](std::byte octet) {
            return std::to_integer<std::uint8_t>(octet);
        });
        additional_headers = {};
        data_out = {};
        data_in = {};
        effect = what;
        offset = length = 0;
    }
    /// Both ways. Neither may be empty: that is a command with one direction.
    void set_data_both(std::span<const Buffer> pieces, std::uint32_t size_out,
                       std::span<const Buffer> places, std::uint32_t size_in) {
        data_out = pieces;
        data_in = places;
        command.read = command.write = true;
        command.expected_transfer_length = size_out;
        encode(wire::BidirectionalReadLength{size_in}, read_length_);
        additional_headers = read_length_;
    }
    void set_data_in(std::span<const Buffer> places, std::uint32_t size) {
        data_in = places;
        command.read = size > 0;
        command.expected_transfer_length = size;
    }
    void set_data_out(std::span<const Buffer> pieces, std::uint32_t size) {
        data_out = pieces;
        command.write = size > 0;
        command.expected_transfer_length = size;
    }

protected:
    InitiatorCommand() = default;
    InitiatorCommand(const InitiatorCommand&) = default;
    InitiatorCommand& operator=(const InitiatorCommand&) = default;
    ~InitiatorCommand() = default;

private:
    std::array<std::byte, wire_size<wire::BidirectionalReadLength>()> read_length_{};
};

/// Whether what one replaces is, in part, what the other replaces.
constexpr bool overlap(const InitiatorCommand& one, const InitiatorCommand& other) {
    return one.effect == Effect::replaces && other.effect == Effect::replaces &&
           one.offset < other.offset + other.length && other.offset < one.offset + one.length;
}

}  // namespace weft::iscsi
