// SPDX-License-Identifier: Apache-2.0
// Who should be a member of a volume, from what is known of the boxes: a pure function that says
// the next volume, or that this one is right. Whatever happens in whatever order, it is asked again
// until there is nothing left to change.
#pragma once

#include <map>

#include "raid/superblock.hpp"

namespace weft::raid {

/// What is known of a box.
struct BoxFacts {
    bool up = false;
    bool failed = false;  ///< counted out, by management or for what it did
    bool missed = false;  ///< was away since it was last current: may lack what it had answered for
    bool has_part = false;  ///< of this volume
    bool put_back = false;  ///< its part is one of the past, and not rebuilt yet
};

struct MembershipWishes {
    std::map<std::uint8_t, wire::BoxIdentity> replacements;  ///< by place
    Mask whole = 0;                                          ///< places that are rebuilt
    Mask closed = 0;  ///< places that nobody takes yet: what was begun there has not ended
    std::optional<std::uint64_t> stripes;
};

/// Whether the volume can do without one more box.
bool can_lose(const wire::ArrayVolume& volume, std::uint8_t place);

/// None if nothing is to be changed. The generation is one higher.
std::optional<wire::ArrayVolume> next_volume(const wire::ArrayVolume& volume,
                                             const std::map<wire::BoxIdentity, BoxFacts>& boxes,
                                             const MembershipWishes& wishes);

}  // namespace weft::raid
