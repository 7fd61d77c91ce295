// SPDX-License-Identifier: Apache-2.0
// Parts that boxes have and no volume claims: of one that was deleted while the box was away, of a
// volume in which another box has its place by now, or of one this controller never knew. They take
// room, and are removed when a person says so.
#include <algorithm>

#include "node/controller_node.hpp"
#include "raid/superblock.hpp"

namespace weft::node {

bool ControllerNode::claims(const wire::VolumeIdentity& volume,
                            const wire::BoxIdentity& box) const {
    auto found = volumes_.find(volume);
    if (found == volumes_.end()) return false;
    return std::ranges::any_of(found->second->manager().volume().members, [&](const auto& member) {
        return member.state != wire::ArrayMemberState::none && member.box == box;
    });
}

/// What is left of a part does not always say: then the name, or what it has for one, is ours.
std::string ControllerNode::name_of(const wire::VolumeIdentity& volume) const {
    auto found = volumes_.find(volume);
    return found != volumes_.end() ? found->second->name() : to_digits(volume);
}

/// Whether boxes that are up have all it takes: then a part is no leftover, but somebody's volume.
bool ControllerNode::could_assemble(const wire::VolumeIdentity& volume) const {
    std::vector<wire::ArraySuperblock> superblocks;
    for (const auto& [identity, box] : boxes_) {
        if (!box->is_up()) continue;
        auto part = box->facts()->parts.find(volume);
        if (part != box->facts()->parts.end()) superblocks.push_back(part->second.superblock);
    }
    const auto assembled = raid::assemble(superblocks);
    return assembled && assembled->unheard == 0;
}

/// What a box has and nobody claims; a refusal where some of it may still be of use.
ControllerNode::Refusal ControllerNode::find_unclaimed(const ControllerBox& box, bool force,
                                                       Unclaimed& unclaimed) const {
    const auto identity = *box.identity();
    for (const auto& [volume, part] : box.facts()->parts) {
        if (claims(volume, identity)) continue;
        const auto name = raid::text_of_field(part.superblock.volume.name);
        if (!force && !volumes_.contains(volume) && could_assemble(volume))
            return "boxes that are up have all of " + name +
                   ": assemble it, and delete it then if that is wished; or say --force";
        unclaimed[volume] = {.volume = name, .octets = raid::part_length(part.superblock)};
    }
    for (const auto& [volume, part] : box.facts()->left_out) {
        if (claims(volume, identity)) continue;
        if (!force && !part.damaged && !volumes_.contains(volume))
            return "its part of " + name_of(volume) +
                   " could not be read, and may be whole: start the box again when what keeps it "
                   "from reading is mended; or say --force";
        // Where a part was made anew beside it, both go.
        auto& both = unclaimed[volume];
        if (both.volume.empty()) both.volume = name_of(volume);
        both.octets += part.size;
    }
    return std::nullopt;
}

void ControllerNode::clean_box(const std::string& name, bool force, const Cleaned& told) {
    auto refuse = [&](const std::string& why) { told(why, {}); };
    auto* box = find_box(name);
    if (box == nullptr) return refuse("there is no box " + name);
    if (!box->is_up()) return refuse(name + " is not up: " + box->trouble());
    // Its parts are made before it is known.
    if (!names_taken_.empty())
        return refuse("volume " + *names_taken_.begin() + " is being made: ask again when it is");
    const auto identity = *box->identity();
    Unclaimed unclaimed;
    if (const auto refusal = find_unclaimed(*box, force, unclaimed)) return refuse(*refusal);
    if (unclaimed.empty()) return told(std::nullopt, {});  // as was wished
    auto refusal = std::make_shared<Refusal>();
    auto removed = std::make_shared<std::vector<RemovedPart>>();
    auto round = Round::make([this, identity, refusal, removed, told, alive = alive_] {
        auto* found = *alive ? find_box(identity) : nullptr;
        if (found == nullptr) return told("it was removed meanwhile", *removed);
        found->describe([this, identity, told, refusal, removed, alive](bool) {
            if (!*alive) return told(*refusal, *removed);
            // Volumes knew what it had, and may be asked to give it a place.
            if (auto* cleaned = find_box(identity); cleaned != nullptr && cleaned->is_up())
                for (const auto& [each, volume] : volumes_)
                    if (!claims(each, identity)) volume->box_up(*cleaned);
            told(*refusal, *removed);
        });
    });
    for (const auto& each : unclaimed) {
        auto address = box->whole();
        address.volume = each.first;
        const auto part = "its part of " + each.second.volume;
        box->send(wire::ArrayAction::delete_part, address, {},
                  [this, part, leaves = each.second, refusal, removed, identity,
                   step = round->step(), alive = alive_](std::optional<wire::ArrayAnswer> answer) {
                      // Somebody else has seen to it meanwhile.
                      const bool gone =
                          answer && answer->outcome == wire::ArrayOutcome::wrong_volume;
                      if (!answer)
                          *refusal = "it was lost over " + part;
                      else if (answer->outcome != wire::ArrayOutcome::done && !gone)
                          *refusal = part + ": " + raid::to_text(answer->outcome);
                      else if (*alive)
                          note("", box_name(identity), part + " is removed: nobody claims it");
                      if (answer && answer->outcome == wire::ArrayOutcome::done)
                          removed->push_back(leaves);
                      step();
                  });
    }
    round->end();
}

}  // namespace weft::node
