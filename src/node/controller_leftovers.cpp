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

void ControllerNode::clean_box(const std::string& name, bool force, Told told) {
    auto* box = find_box(name);
    if (box == nullptr) return told("there is no box " + name);
    if (!box->is_up()) return told(name + " is not up: " + box->trouble());
    // Its parts are made before it is known.
    if (!names_taken_.empty())
        return told("volume " + *names_taken_.begin() + " is being made: ask again when it is");
    const auto identity = *box->identity();
    std::map<wire::VolumeIdentity, std::string> unclaimed;  // by their names
    for (const auto& [volume, part] : box->facts()->parts) {
        if (claims(volume, identity)) continue;
        const auto& known = part.superblock.volume;
        if (!force && !volumes_.contains(volume) && could_assemble(volume))
            return told("boxes that are up have all of " + raid::text_of_field(known.name) +
                        ": assemble it, and delete it then if that is wished; or say --force");
        unclaimed[volume] = raid::text_of_field(known.name);
    }
    for (const auto& [volume, part] : box->facts()->left_out) {
        if (claims(volume, identity)) continue;
        if (!force && !part.damaged && !volumes_.contains(volume))
            return told("its part of " + name_of(volume) +
                        " could not be read, and may be whole: " +
                        "start the box again when what keeps it from reading is mended; or say "
                        "--force");
        unclaimed[volume] = name_of(volume);
    }
    if (unclaimed.empty()) return told(std::nullopt);  // as was wished
    auto refusal = std::make_shared<Refusal>();
    auto round = Round::make([this, identity, refusal, told = std::move(told), alive = alive_] {
        auto* found = *alive ? find_box(identity) : nullptr;
        if (found == nullptr) return told("it was removed meanwhile");
        found->describe([this, identity, told, refusal, alive](bool) {
            if (!*alive) return told(*refusal);
            // Volumes knew what it had, and may be asked to give it a place.
            if (auto* cleaned = find_box(identity); cleaned != nullptr && cleaned->is_up())
                for (const auto& [each, volume] : volumes_)
                    if (!claims(each, identity)) volume->box_up(*cleaned);
            told(*refusal);
        });
    });
    for (const auto& [volume, volume_name] : unclaimed) {
        auto address = box->whole();
        address.volume = volume;
        const auto part = "its part of " + volume_name;
        box->send(wire::ArrayAction::delete_part, address, {},
                  [this, part, refusal, identity, step = round->step(),
                   alive = alive_](std::optional<wire::ArrayAnswer> answer) {
                      // Somebody else has seen to it meanwhile.
                      const bool gone =
                          answer && answer->outcome == wire::ArrayOutcome::wrong_volume;
                      if (!answer)
                          *refusal = "it was lost over " + part;
                      else if (answer->outcome != wire::ArrayOutcome::done && !gone)
                          *refusal = part + ": " + raid::to_text(answer->outcome);
                      else if (*alive)
                          note("", box_name(identity), part + " is removed: nobody claims it");
                      step();
                  });
    }
    round->end();
}

}  // namespace weft::node
