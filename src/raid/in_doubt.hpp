// SPDX-License-Identifier: Apache-2.0
// What becomes of writes that no controller has seen to their end: the rule of the journals, as a
// function of what the boxes recall.
//
// A host was answered only when every box that took part had prepared. So a write that one of those
// who are still members has not prepared was answered to nobody, and is undone; one that all of
// them have may have been answered, and is committed. Who was counted out has no voice: it was, for
// good, before anything was done without it. Where one has heard the decision it stands, and so
// deciding again, by a controller after this one, comes to the same.
//
// All of them must have prepared the same, where they are copies: what was damaged on its way from
// one to another a controller would have noticed before it answered, so it has not. And what was
// only made anew from the others nobody was answered for: it is undone unless somebody has heard
// that it was decided, since nobody can say any more whether it was right.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "raid/bands.hpp"
#include "raid/recall.hpp"

namespace weft::raid {

/// What a box knows of a transaction it is a participant of.
enum class Knowledge : std::uint8_t { nothing, prepared, committed, aborted };

/// `survivors`: of those participants that are members.
bool is_committed(std::span<const Knowledge> survivors);

struct Resolution {
    wire::TransactionNumber transaction{};
    bool commits = false;
    bool restores = false;  ///< what was there before, from the others
    Mask participants = 0;
    Mask to_tell = 0;  ///< members who have prepared it, and have not heard how it ended
    std::uint64_t home = 0, home_end = 0;  ///< all it changes lies between, on any box
    wire::HostIdentity host_identity{};
    std::uint64_t host_command = 0;

    bool operator==(const Resolution&) const = default;
};

/// Of everything the members recall, from the oldest on. `recalled` has every one of `members`, by
/// their places. `copies`: those of a mirror that have all there is.
std::vector<Resolution> resolve(Mask members, const std::map<std::uint8_t, Recalled>& recalled,
                                Mask copies = 0);

}  // namespace weft::raid
