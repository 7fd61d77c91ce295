// SPDX-License-Identifier: Apache-2.0
#include "raid/membership.hpp"

namespace weft::raid {
namespace {

using wire::ArrayMemberState;

BoxFacts facts_of(const std::map<wire::BoxIdentity, BoxFacts>& boxes,
                  const wire::BoxIdentity& box) {
    auto found = boxes.find(box);
    return found == boxes.end() ? BoxFacts{} : found->second;
}

/// Whom a volume that cannot do without all of these does without first: those who have nothing it
/// could use, then those who may come back with it, then those who are here with what they have.
enum class Trouble : std::uint8_t { useless, away, missed, none };

Trouble trouble_of(const BoxFacts& box) {
    if (box.failed || (box.up && !box.has_part) || box.put_back) return Trouble::useless;
    if (!box.up) return Trouble::away;
    return box.missed ? Trouble::missed : Trouble::none;
}

wire::ArrayMember next_member(wire::ArrayMember member, const BoxFacts& box, bool whole,
                              bool closed) {
    const bool there = box.up && !box.failed;
    switch (member.state) {
        case ArrayMemberState::current:
            break;  // see lose_members()
        case ArrayMemberState::rebuilding:
            if (!there || box.missed)
                member.state = ArrayMemberState::absent;
            else if (whole)
                member.state = ArrayMemberState::current;
            break;
        case ArrayMemberState::absent:
            if (there && !closed) member.state = ArrayMemberState::rebuilding;
            break;
        case ArrayMemberState::none:
            break;
    }
    // Of one that cannot be spared it is not kept: who is needed is tried again.
    member.failed = box.failed && member.state == ArrayMemberState::absent;
    return member;
}

void lose_members(wire::ArrayVolume& next, const std::map<wire::BoxIdentity, BoxFacts>& boxes) {
    for (const auto trouble : {Trouble::useless, Trouble::away, Trouble::missed})
        for (std::uint8_t place = 0; place < next.boxes; ++place) {
            wire::ArrayMember& member = next.members[place];
            const auto box = facts_of(boxes, member.box);
            if (member.state != ArrayMemberState::current || trouble_of(box) != trouble ||
                !can_lose(next, place))
                continue;
            member.state = ArrayMemberState::absent;
            member.failed = box.failed;
        }
}

}  // namespace

bool can_lose(const wire::ArrayVolume& volume, std::uint8_t place) {
    const auto layout = layout_of(volume);
    if (!layout) return false;
    unsigned lost = 1;
    for (std::uint8_t i = 0; i < volume.boxes; ++i)
        if (i != place && volume.members[i].state != ArrayMemberState::current) ++lost;
    return lost <= layout->spare_columns();
}

std::optional<wire::ArrayVolume> next_volume(const wire::ArrayVolume& volume,
                                             const std::map<wire::BoxIdentity, BoxFacts>& boxes,
                                             const MembershipWishes& wishes) {
    wire::ArrayVolume next = volume;
    for (std::uint8_t place = 0; place < volume.boxes; ++place) {
        wire::ArrayMember& member = next.members[place];
        const auto box = facts_of(boxes, member.box);
        const bool closed = contains(wishes.closed, place);
        const auto wished = wishes.replacements.find(place);
        const auto newcomer =
            wished == wishes.replacements.end() ? BoxFacts{} : facts_of(boxes, wished->second);
        const bool is_replaced =
            newcomer.up && !newcomer.failed && wished->second != member.box &&
            (member.state != ArrayMemberState::current || can_lose(next, place));
        // First who had it is counted out: the newcomer knows nothing of what was begun with that
        // one, and must not be taken for it.
        if (is_replaced && member.state != ArrayMemberState::absent) {
            member.state = ArrayMemberState::absent;
            member.failed = box.failed;
        } else if (is_replaced && !closed) {
            member = {.box = wished->second,
                      .state = ArrayMemberState::rebuilding,
                      .rebuilt_stripes = 0,
                      .failed = false,
                      .since = {}};
        } else {
            member = next_member(member, box, contains(wishes.whole, place), closed);
        }
    }
    lose_members(next, boxes);
    if (wishes.stripes) next.stripes = *wishes.stripes;
    if (next == volume) return std::nullopt;
    next.generation = wire::Generation{static_cast<std::uint64_t>(volume.generation) + 1};
    return next;
}

}  // namespace weft::raid
