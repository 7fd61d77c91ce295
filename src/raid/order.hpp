// SPDX-License-Identifier: Apache-2.0
// Orders: what the controller tells a box to do, as plain values.
//
// A plan is a list of orders. Orders of one turn (phase and round) go out together; a box does
// those it gets in their order, and boxes need not wait for each other. The next turn begins when
// all have answered. An order is a list of pieces, done one after another, each about one run of
// bytes. A piece moves bytes between four places:
//     home    the box's own disk, where the block of a stripe lies
//     slot    an offset into the staging window the box keeps for this request
//     peer    another's window, or the host's memory: a third-party transfer, begun by the box
//     answer  what goes back to the controller: checksums, never data
// Nothing changes at home before the commit phase. What is staged and what is parity is thus known,
// and can be made durable, before anything is decided.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "raid/bands.hpp"
#include "raid/limits.hpp"

namespace weft::raid {

enum class PartyKind : std::uint8_t { host = 0, controller = 1, box = 2 };

/// Who takes part: the host that asked, the controller (when data goes by way of it), or a box.
struct Party {
    PartyKind kind{};
    BoxIndex box{};

    auto operator<=>(const Party&) const = default;
};
inline constexpr Party the_host{PartyKind::host, {}};
inline constexpr Party the_controller{PartyKind::controller, {}};
constexpr Party party(BoxIndex box) {
    return {PartyKind::box, box};
}

enum class Verb : std::uint8_t {
    fetch = 1,           ///< slot from peer (an RDMA Read)
    load = 2,            ///< slot from home
    combine = 3,         ///< slot from another slot of the same window
    clear = 4,           ///< slot to zero
    solve_pair = 5,      ///< slots of row and diagonal syndrome to two lost columns
    solve_diagonal = 6,  ///< slot of a diagonal syndrome to the one lost column
    send_home = 7,       ///< peer from home (an RDMA Write)
    send_slot = 8,       ///< peer from slot (an RDMA Write)
    commit = 9,          ///< home from slot
    digest = 10,         ///< answer from home: checksums that can be added up
    flush = 11,          ///< all that went home outlives the power; it has no length
    prepare = 12,        ///< journal from slot, for home; digested as `digest` does, see below
    versions = 13,       ///< answer from home: of which writes one slice is; from `column` on
};

/// How what comes into a slot meets what is there.
enum class Blend : std::uint8_t { copy = 0, add = 1, add_diagonal = 2 };

struct Piece {
    Verb verb{};
    Blend blend{};
    Column column = 0;        ///< add_diagonal, solve and digest: which column it is about
    Column other_column = 0;  ///< solve_pair: the second
    Party peer{};             ///< fetch and send: the passive side
    std::uint32_t length = 0;
    std::uint32_t slot = 0;
    std::uint64_t home = 0;
    /// In the peer's memory; combine and solve_pair: the other slot; prepare: see prepare_word().
    std::uint64_t at = 0;

    bool operator==(const Piece&) const = default;
};

/// Whether the digest of what is prepared is that of the slot, of what it changes at home, or none.
inline constexpr std::uint64_t as_new = 0, as_change = 1, uncounted = 2;
/// `at` of a piece that prepares: that, and which data columns of its rows it changes by what is
/// new, or (`restores`) has made anew from the others. A box remembers it with what it writes.
constexpr std::uint64_t prepare_word(std::uint64_t counting, Mask columns, bool restores) {
    return counting | (restores ? 4u : 0u) | std::uint64_t{columns} << 8;
}
constexpr std::uint64_t counting_of(const Piece& prepare) {
    return prepare.at & 3;
}
constexpr bool is_restoring(const Piece& prepare) {
    return (prepare.at & 4) != 0;
}
constexpr Mask columns_changed(const Piece& prepare) {
    return static_cast<Mask>(prepare.at >> 8);
}
/// Versions an answer has room for, in the place of digests.
inline constexpr Column versions_per_answer = 8;

enum class Phase : std::uint8_t {
    read = 0,    ///< blocks go to the host, or are made ready for peers
    stage = 1,   ///< new and old blocks come into slots
    parity = 2,  ///< slots are combined, between boxes
    commit = 3,  ///< slots go home
};

/// The name of an order on the wire. Vectored orders are one per box and turn; the others are the
/// paper's, one per block, kept so that its tables can be held against ours.
enum class Command : std::uint8_t {
    vectored = 0,
    prep_read = 1,
    prep_write = 2,
    read_new_block = 3,
    read_parity_part_tmp = 4,
    read_parity_comp_tmp = 5,
    read_parity_part_block = 6,
    read_parity_comp_block = 7,
    write_new_data = 8,
    xdwrite = 9,
    pre_fetch = 10,
};
inline constexpr std::size_t command_count = 11;

struct Order {
    Party to{};
    Phase phase{};
    std::uint8_t round = 0;
    Command command{};
    bool prepares = false;  ///< the last before the commit: what is staged must now be lasting
    bool closes = false;    ///< the box's last, and no peer needs its window: the request ends here
    std::vector<Piece> pieces;

    bool operator==(const Order&) const = default;
};

struct Plan {
    std::vector<Order> orders;                               ///< sorted by phase and round
    std::array<std::uint32_t, limits::boxes> box_windows{};  ///< staging each box needs, octets
    std::uint32_t controller_window = 0;                     ///< 0 unless data goes by way of it
    std::array<std::uint32_t, limits::boxes> to_prepare{};   ///< octets, of a journal's plan
    Mask participants = 0;                                   ///< boxes with something to commit

    bool operator==(const Plan&) const = default;
};

/// The plan as people read it, one line for each piece; the golden files are made of these.
std::string to_text(const Plan& plan);
std::string to_text(Command command);

/// Whether a piece moves octets between two parties.
constexpr bool is_transfer(Verb verb) {
    return verb == Verb::fetch || verb == Verb::send_home || verb == Verb::send_slot;
}

}  // namespace weft::raid
