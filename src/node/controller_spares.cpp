// SPDX-License-Identifier: Apache-2.0
// Boxes that are kept ready for when another is lost. A spare takes the places of the lost box in
// all volumes that want one, as far as it has room for them; the first makes it that box's
// stand-in, and a spare no more.
#include <algorithm>

#include "base/error_text.hpp"
#include "node/controller_node.hpp"
#include "raid/records.hpp"

namespace weft::node {

void ControllerNode::spare_wanted(ControllerVolume& volume, std::uint8_t place) {
    spares_wanted_.insert({volume.identity(), place});
    world_.defer([this, alive = alive_] {
        if (*alive) look_at_spares();
    });
}

/// What they said when they came may be of long ago, and one that does not answer is about to go.
void ControllerNode::look_at_spares() {
    auto answered = std::make_shared<std::set<wire::BoxIdentity>>();
    auto round = Round::make([this, answered, alive = alive_] {
        if (*alive) give_spares(*answered);
    });
    auto asked = spares_;
    for (const auto& [lost, stand_in] : stand_ins_) asked.insert(stand_in);
    for (const auto& each : asked)
        if (auto* box = find_box(each); box != nullptr && box->is_up())
            box->describe([each, answered, step = round->step()](bool well) {
                if (well) answered->insert(each);
                step();
            });
    round->end();
}

void ControllerNode::give_spares(const std::set<wire::BoxIdentity>& answered) {
    std::erase_if(promised_, [&](const auto& each) {
        const auto* box = find_box(each.second);
        return box == nullptr || !box->is_up() || !volumes_.contains(each.first.first) ||
               box->facts()->parts.contains(each.first.first);
    });
    for (auto wanted = spares_wanted_.begin(); wanted != spares_wanted_.end();) {
        const auto found = volumes_.find(wanted->first);
        if (found == volumes_.end()) {
            wanted = spares_wanted_.erase(wanted);
            continue;
        }
        auto& volume = *found->second;
        const auto member = volume.manager().volume().members[wanted->second];
        if (member.state == wire::ArrayMemberState::absent) {
            const auto spare = spare_for(volume, member.box, answered);
            if (!spare) {
                ++wanted;
                continue;
            }
            give_spare(volume, wanted->second, *spare);
        }
        wanted = spares_wanted_.erase(wanted);
    }
}

/// One that has taken a place of the lost box already has it all; else it is a spare's turn.
std::optional<wire::BoxIdentity> ControllerNode::spare_for(
    const ControllerVolume& volume, const wire::BoxIdentity& lost,
    const std::set<wire::BoxIdentity>& answered) {
    const auto stand_in = stand_ins_.find(lost);
    if (stand_in != stand_ins_.end() && answered.contains(stand_in->second)) {
        const auto promised = promised_bytes(*find_box(stand_in->second));
        if (can_take_place(volume, stand_in->second, promised)) return stand_in->second;
        // A part that is being made counts twice: in what is promised and in what is left. When it
        // is made this is asked again.
        if (promised > 0 && can_take_place(volume, stand_in->second, 0)) return std::nullopt;
    }
    const auto spare = std::ranges::find_if(spares_, [&](const auto& each) {
        return !is_member(each) && answered.contains(each) && can_take_place(volume, each, 0);
    });
    return spare == spares_.end() ? std::nullopt : std::optional(*spare);
}

/// One that had a place there before has a part that must go first.
bool ControllerNode::can_take_place(const ControllerVolume& volume,
                                    const wire::BoxIdentity& identity,
                                    std::uint64_t promised) const {
    const auto found = boxes_.find(identity);
    if (found == boxes_.end() || !found->second->is_up()) return false;
    const auto& box = *found->second;
    if (claims(volume.identity(), identity)) return false;
    if (box.facts()->parts.contains(volume.identity())) return false;
    if (box.facts()->keeps_unread(volume.identity())) return false;
    return !lacks_room(box, promised + part_bytes(volume.manager().volume()));
}

/// What parts will take that the box has not made yet.
std::uint64_t ControllerNode::promised_bytes(const ControllerBox& box) const {
    std::uint64_t bytes = 0;
    for (const auto& [place, identity] : promised_)
        if (identity == *box.identity() && !box.facts()->parts.contains(place.first))
            if (const auto volume = volumes_.find(place.first); volume != volumes_.end())
                bytes += part_bytes(volume->second->manager().volume());
    return bytes;
}

void ControllerNode::give_spare(ControllerVolume& volume, std::uint8_t place,
                                const wire::BoxIdentity& box) {
    const auto lost = volume.manager().volume().members[place].box;
    if (!volume.manager().replace(place, box)) return;
    note(volume.name(), box_name(box), "a spare, takes place " + std::to_string(place));
    stand_ins_[lost] = box;
    promised_[{volume.identity(), place}] = box;
    if (spares_.erase(box) != 0)
        keep({{spare_record_name(box), std::nullopt}}, [](Result<void>) {});
}

void ControllerNode::add_spare(const std::string& name, Told told) {
    auto* box = find_box(name);
    if (box == nullptr) return told("there is no box " + name);
    const auto identity = *box->identity();
    if (spares_.contains(identity)) return told(name + " is a spare already");
    if (is_member(identity)) return told(name + " is part of a volume");
    keep({{spare_record_name(identity),
           raid::encode_record(wire::ArraySpareRecord{.box = identity})}},
         [this, identity, told = std::move(told), alive = alive_](Result<void> kept) {
             if (!*alive) return;
             if (!kept) return told("that could not be kept: " + to_text(kept.error()));
             spares_.insert(identity);
             note("", box_name(identity), "is a spare now");
             look_at_spares();
             told(std::nullopt);
         });
}

void ControllerNode::remove_spare(const std::string& name, Told told) {
    auto* box = find_box(name);
    if (box == nullptr || !spares_.contains(*box->identity())) return told(name + " is no spare");
    const auto identity = *box->identity();
    keep({{spare_record_name(identity), std::nullopt}},
         [this, identity, told = std::move(told), alive = alive_](Result<void> kept) {
             if (!*alive) return;
             if (!kept) return told("that could not be kept: " + to_text(kept.error()));
             spares_.erase(identity);
             note("", box_name(identity), "is no spare any more");
             told(std::nullopt);
         });
}

}  // namespace weft::node
