// SPDX-License-Identifier: Apache-2.0
// The volumes of a controller: made, deleted, put together from their boxes, and grown.
#include <algorithm>

#include "base/error_text.hpp"
#include "node/chance.hpp"
#include "node/controller_node.hpp"
#include "raid/records.hpp"
#include "raid/superblock.hpp"
#include "wire/array_names.hpp"

namespace weft::node {

/// A volume on its way: its parts are made first, all of them; then it is remembered. What was made
/// of one that failed is taken away again.
struct ControllerNode::Creation {
    wire::ArrayVolume volume{};
    std::uint64_t data_length = 0;
    std::size_t waiting = 0;
    std::vector<wire::BoxIdentity> made;
    Refusal refusal;
    Told told;
};

namespace {

constexpr unsigned delete_tries = 25;

std::string boxes_text(std::uint8_t least, std::uint8_t most) {
    return std::to_string(least) + " to " + std::to_string(most) + " boxes";
}

std::uint64_t whole_stripes(std::uint64_t size, const raid::Layout& layout) {
    return size / layout.stripe_bytes() + (size % layout.stripe_bytes() != 0);
}

std::string boxes_of_level(raid::Level level) {
    using namespace raid::limits;
    if (level == raid::Level::mirror) return "a mirror has " + boxes_text(2, mirrors);
    if (level == raid::Level::raid5) return "RAID 5 has " + boxes_text(3, boxes - 1);
    return "RAID 6 has " + boxes_text(4, boxes);
}

}  // namespace

ControllerVolume* ControllerNode::find_volume(const std::string& name) {
    for (const auto& [identity, volume] : volumes_)
        if (volume->name() == name) return volume.get();
    return nullptr;
}

Result<void> ControllerNode::add_volume(const wire::ArrayVolume& volume,
                                        const raid::VolumeRecords& records,
                                        std::function<void()> served) {
    const bool reachable = links_ && admitted_.contains(own_session);
    auto made = std::make_unique<ControllerVolume>(
        ControllerVolume::Surroundings{.world = world_,
                                       .office = *this,
                                       .server = *server_,
                                       .self = own_session,
                                       .links = reachable ? links_.get() : nullptr,
                                       .in_band = options_.in_band,
                                       .spare_windows = &spare_windows_},
        options_.volume, volume);
    auto& added = *(volumes_[volume.volume] = std::move(made));
    if (auto started = added.start(records); !started) {
        volumes_.erase(volume.volume);
        return started;
    }
    if (served) {
        starting_[volume.volume] = std::move(served);
        later(options_.volume.start_patience,
              [this, identity = volume.volume] { tell_started(identity); });
    }
    acquaint(volume, [this, identity = volume.volume, alive = alive_] {
        if (!*alive) return;
        auto found = volumes_.find(identity);
        if (found == volumes_.end()) return;
        for (const auto& [each, box] : boxes_)
            if (box->is_up()) found->second->box_up(*box);
    });
    return {};
}

void ControllerNode::tell_started(const wire::VolumeIdentity& volume) {
    if (auto found = starting_.extract(volume)) found.mapped()();
}

// --------------------------------------------------------------------------------------- create

ControllerNode::Refusal ControllerNode::plan_creation(const VolumeWishes& wishes,
                                                      Creation& creation) {
    if (!wire::is_array_name(wishes.name)) return wire::why_no_array_name(wishes.name, "a volume");
    if (find_volume(wishes.name) != nullptr || names_taken_.contains(wishes.name))
        return "there is a volume " + wishes.name + " already";
    if (volumes_.size() >= volumes_max) return "there are too many volumes";
    auto& volume = creation.volume;
    volume.volume = {octets_of_chance<16>(world_)};
    (void)raid::set_field(volume.name, wishes.name);
    volume.generation = wire::Generation{1};
    volume.level = static_cast<std::uint8_t>(wishes.level);
    volume.boxes = static_cast<std::uint8_t>(std::min<std::size_t>(wishes.boxes.size(), 255));
    volume.chunk_bytes = wishes.chunk_bytes;
    volume.consistency = wishes.consistency;
    volume.topology = wishes.topology;
    auto layout = raid::Layout::make(wishes.level, volume.boxes, wishes.chunk_bytes);
    if (!layout && layout.error().code == Code::out_of_range)
        return boxes_of_level(wishes.level) + ", and not " + std::to_string(wishes.boxes.size());
    if (!layout) return "a chunk is a multiple of 4 KiB, and 16 MiB at most";
    std::uint64_t room = ~std::uint64_t{0};
    const ControllerBox* smallest = nullptr;
    for (std::size_t place = 0; place < wishes.boxes.size(); ++place) {
        const auto* box = find_box(wishes.boxes[place]);
        if (box == nullptr) return "there is no box " + wishes.boxes[place];
        if (!box->is_up()) return box->name() + " is not up: " + box->trouble();
        for (std::size_t before = 0; before < place; ++before)
            if (volume.members[before].box == *box->identity())
                return box->name() + " is named twice";
        volume.members[place] = {.box = *box->identity(),
                                 .state = wire::ArrayMemberState::current,
                                 .rebuilt_stripes = 0};
        const auto own = raid::part_data_room(box->facts()->box.free, wishes.consistency, *layout);
        if (own < room || smallest == nullptr) smallest = box;
        room = std::min(room, own);
    }
    volume.stripes = layout->stripes_on(room);
    if (wishes.size != 0) {
        const auto wanted = whole_stripes(wishes.size, *layout);
        if (wanted > volume.stripes) return too_small(*smallest, volume, wanted);
        volume.stripes = wanted;
    }
    if (volume.stripes == 0) return too_small(*smallest, volume, 1);
    creation.data_length = volume.stripes * wishes.chunk_bytes;
    return std::nullopt;
}

/// Of a volume that has as many stripes as there is room for.
std::string ControllerNode::too_small(const ControllerBox& box, wire::ArrayVolume volume,
                                      std::uint64_t stripes) {
    const auto most = volume.stripes * raid::layout_of(volume)->stripe_bytes();
    volume.stripes = stripes;
    const auto refusal = lacks_room(box, part_bytes(volume));
    return refusal.value_or(box.name() + " has no room for it") + ": the volume can have " +
           std::to_string(most) + " octets at most";
}

/// What a box needs for its part of a volume, with all that is around the data.
std::uint64_t ControllerNode::part_bytes(const wire::ArrayVolume& volume) {
    const auto most = ~std::uint64_t{0} / 4;  // with checksums it takes more
    if (volume.stripes > most / volume.chunk_bytes) return most;
    return raid::part_length(
        raid::part_superblock({}, {}, volume, 0, volume.stripes * volume.chunk_bytes));
}

/// What boxes have left is asked for first: parts may have gone, and file systems have filled.
void ControllerNode::create_volume(const VolumeWishes& wishes, Told told) {
    auto round = Round::make([this, wishes, told = std::move(told), alive = alive_] {
        if (*alive) make_volume(wishes, told);
    });
    for (const auto& name : wishes.boxes)
        if (auto* box = find_box(name); box != nullptr && box->is_up())
            box->describe([step = round->step()](bool) { step(); });
    round->end();
}

void ControllerNode::make_volume(const VolumeWishes& wishes, Told told) {
    auto creation = std::make_shared<Creation>();
    if (auto refusal = plan_creation(wishes, *creation)) return told(refusal);
    names_taken_.insert(wishes.name);
    creation->told = std::move(told);
    creation->waiting = creation->volume.boxes;
    for (std::uint8_t place = 0; place < creation->volume.boxes; ++place) {
        const auto identity = creation->volume.members[place].box;
        auto& box = *find_box(identity);
        const auto superblock =
            raid::part_superblock(cluster_, epoch_, creation->volume, place, creation->data_length);
        make_part(box, superblock, [this, creation, identity, alive = alive_](auto answer) {
            if (!*alive) return;
            if (answer && answer->outcome == wire::ArrayOutcome::done)
                creation->made.push_back(identity);
            else
                creation->refusal =
                    box_name(identity) + " did not make its part: " +
                    (answer ? raid::to_text(answer->outcome) : "it was lost over it");
            if (--creation->waiting == 0) parts_created(creation);
        });
    }
}

void ControllerNode::parts_created(const std::shared_ptr<Creation>& creation) {
    const auto name = raid::text_of_field(creation->volume.name);
    auto fail = [this, creation, name] {
        names_taken_.erase(name);
        auto round = Round::make([creation] { creation->told(creation->refusal); });
        for (const auto& identity : creation->made)
            delete_part(identity, creation->volume, 3, round->step());
        round->end();
    };
    if (creation->refusal) return fail();
    keep({{raid::volume_record_name(creation->volume.volume),
           raid::encode_record(creation->volume)}},
         [this, creation, name, fail, alive = alive_](Result<void> kept) {
             if (!*alive) return;
             // It is told when its members are up: who looks at it then sees them so.
             if (kept)
                 kept = add_volume(creation->volume, {},
                                   [creation] { creation->told(creation->refusal); });
             if (!kept) {
                 creation->refusal = "it could not be kept: " + to_text(kept.error());
                 return fail();
             }
             names_taken_.erase(name);
             note(name, "", "created");
         });
}

void ControllerNode::delete_part(const wire::BoxIdentity& identity, const wire::ArrayVolume& volume,
                                 unsigned tries, std::function<void()> over) {
    auto* box = find_box(identity);
    if (box == nullptr || !box->is_up()) return over();
    auto address = box->whole();
    address.volume = volume.volume;
    if (auto part = box->facts()->parts.find(volume.volume); part != box->facts()->parts.end())
        address.generation = part->second.superblock.volume.generation;
    address.generation = std::max(address.generation, volume.generation);
    box->send(wire::ArrayAction::delete_part, address, {},
              [this, identity, volume, tries, over = std::move(over), alive = alive_](auto answer) {
                  auto* found = *alive && answer ? find_box(identity) : nullptr;
                  if (found == nullptr) return over();
                  if (answer->outcome != wire::ArrayOutcome::done && tries > 0)
                      return later(std::chrono::seconds(1), [this, identity, volume, tries, over] {
                          delete_part(identity, volume, tries - 1, over);
                      });
                  found->describe([over](bool) { over(); });
              });
}

// ------------------------------------------------------------------- delete, assemble and grow

void ControllerNode::delete_volume(const std::string& name, Told told) {
    auto* volume = find_volume(name);
    if (volume == nullptr) return told("there is no volume " + name);
    if (auto hosts = volume->hosts(); !hosts.empty())
        return told(name + " is in use by " + hosts.front().name);
    for (const auto& session : server_->node().sessions())
        if (session->target() != nullptr && session->nexus() != nullptr &&
            session->target()->name == wire::volume_target_name(name))
            return told(name + " is in use by " + session->nexus()->name().initiator);
    std::vector<raid::MetadataChange> changes{
        {raid::volume_record_name(volume->identity()), std::nullopt}};
    for (std::uint8_t place = 0; place < volume->manager().volume().boxes; ++place)
        for (const auto& record : {raid::rebuild_record_name(volume->identity(), place),
                                   raid::dirty_record_name(volume->identity(), place)})
            changes.push_back({record, std::nullopt});
    for (const auto& record : {raid::dirty_record_name(volume->identity(), wire::intent_place),
                               raid::executed_record_name(volume->identity())})
        changes.push_back({record, std::nullopt});
    volume->keep_nothing(true);
    keep(std::move(changes), [this, identity = volume->identity(), name, told = std::move(told),
                              alive = alive_](Result<void> kept) {
        if (!*alive) return;
        auto found = volumes_.find(identity);
        if (found == volumes_.end()) return told("there is no volume " + name);
        if (!kept) {
            found->second->keep_nothing(false);
            return told("that could not be kept: " + to_text(kept.error()));
        }
        auto& leaving = *leaving_.emplace_back(std::move(found->second));
        volumes_.erase(found);
        leaving.remove([this, &leaving, name, told, alive] {
            if (!*alive) return;
            note(name, "", "deleted");
            take_apart(leaving, delete_tries, [told] { told(std::nullopt); });
        });
    });
}

/// Nobody asks for anything any more. What was asked for ends first, and with it our own transfers.
/// Of upkeep a box may still have some: it does not give its part away then, and is asked again.
void ControllerNode::take_apart(ControllerVolume& leaving, unsigned tries,
                                const std::function<void()>& over) {
    if (leaving.manager().status().requests > 0 && tries > 0) {
        later(std::chrono::milliseconds(200),
              [this, &leaving, tries, over] { take_apart(leaving, tries - 1, over); });
        return;
    }
    const auto last = leaving.manager().volume();
    auto round = Round::make(over);  // its room is there for another, then
    for (std::uint8_t place = 0; place < last.boxes; ++place)
        if (last.members[place].state != wire::ArrayMemberState::none)
            delete_part(last.members[place].box, last, delete_tries, round->step());
    round->end();
    const bool relays = leaving.manager().status().counters.payload_octets > 0;
    if (relays && links_) links_->cut_all();
    world_.defer([this, &leaving, alive = alive_] {
        if (*alive) std::erase_if(leaving_, [&](auto& each) { return each.get() == &leaving; });
    });
}

void ControllerNode::later(Duration pause, std::function<void()> task) {
    auto timer = std::make_shared<std::unique_ptr<Timer>>();
    *timer = world_.make_timer([this, timer, task = std::move(task), alive = alive_] {
        if (!*alive) return;
        task();
        world_.defer([timer] { timer->reset(); });  // not from inside itself
    });
    (*timer)->set(world_.now() + pause);
    timers_.push_back(timer);
    std::erase_if(timers_, [](const auto& each) { return *each == nullptr; });
}

/// What a name may mean: parts of several volumes that had it, one after the other.
ControllerNode::PartsByVolume ControllerNode::parts_of(const std::string& name) const {
    PartsByVolume found;
    for (const auto& [identity, box] : boxes_) {
        if (!box->is_up()) continue;
        for (const auto& [volume, part] : box->facts()->parts)
            if (raid::text_of_field(part.superblock.volume.name) == name)
                found[volume].push_back(part.superblock);
    }
    return found;
}

/// Not by guessing: which of them is meant only a person knows.
std::string ControllerNode::several_volumes(const std::string& name,
                                            const PartsByVolume& parts) const {
    std::string text = "there were several volumes " + name + ":";
    for (const char* between = " one on "; const auto& [volume, superblocks] : parts) {
        text += std::exchange(between, ", one on ");
        for (const char* and_ = ""; const auto& each : superblocks)
            text += std::exchange(and_, " and ") + box_name(each.box);
    }
    return text + "; clean the boxes of what is not wanted first";
}

void ControllerNode::assemble_volume(const std::string& name, bool force, Told told) {
    if (find_volume(name) != nullptr || names_taken_.contains(name))
        return told("there is a volume " + name + " already");
    const auto parts = parts_of(name);
    if (parts.size() > 1) return told(several_volumes(name, parts));
    auto assembled = parts.empty() ? Result<raid::Assembled>(Error{Code::not_found})
                                   : raid::assemble(parts.begin()->second);
    if (!assembled) {
        switch (assembled.error().code) {
            case Code::not_found:
                return told("no box that is up has a part of " + name);
            case Code::io_failed:
                return told("too few boxes that have the newest of " + name + " are up");
            default:
                return told("the boxes contradict each other about " + name);
        }
    }
    if (assembled->unheard != 0 && !force) {
        std::string places;
        for (std::uint8_t place = 0; place < assembled->volume.boxes; ++place)
            if (raid::contains(assembled->unheard, place))
                places += (places.empty() ? "" : " and ") + std::to_string(place);
        return told("the box of place " + places + " is not here and may know more of " + name +
                    " than those that are: add it, or say --force and lose what it knows");
    }
    if (assembled->unheard != 0) raid::give_up_unheard(*assembled);
    const auto& volume = assembled->volume;
    names_taken_.insert(name);
    keep({{raid::volume_record_name(volume.volume), raid::encode_record(volume)}},
         [this, volume, name, told = std::move(told), alive = alive_](Result<void> kept) {
             if (!*alive) return;
             names_taken_.erase(name);
             if (kept) kept = add_volume(volume, {}, {});
             if (!kept) return told("it could not be kept: " + to_text(kept.error()));
             note(name, "", "assembled from its boxes");
             told(std::nullopt);
         });
}

ControllerNode::Refusal ControllerNode::lacks_room(const ControllerBox& box, std::uint64_t octets) {
    const auto free = box.facts()->box.free;
    if (octets <= free) return std::nullopt;
    return box.name() + " has room for " + std::to_string(free) + " octets, and needs " +
           std::to_string(octets);
}

ControllerNode::Refusal ControllerNode::lacks_room_for_part(const ControllerBox& box,
                                                            const ControllerVolume& volume) {
    return lacks_room(box, part_bytes(volume.manager().volume()));
}

/// What boxes have left is asked for first, as when one is made.
void ControllerNode::grow_volume(const std::string& name, std::uint64_t size, Told told) {
    const auto* found = find_volume(name);
    if (found == nullptr) return told("there is no volume " + name);
    auto round = Round::make([this, name, size, told = std::move(told), alive = alive_] {
        if (*alive) make_larger(name, size, told);
    });
    for (const auto& member : found->manager().volume().members)
        if (auto* box = find_box(member.box); box != nullptr && box->is_up())
            box->describe([step = round->step()](bool) { step(); });
    round->end();
}

void ControllerNode::make_larger(const std::string& name, std::uint64_t size, const Told& told) {
    auto* found = find_volume(name);
    if (found == nullptr) return told("there is no volume " + name);
    const auto& volume = found->manager().volume();
    auto layout = raid::layout_of(volume);
    if (!layout) return told(name + ": " + to_text(layout.error()));
    const auto stripes = whole_stripes(size, *layout);
    if (stripes <= volume.stripes)
        return told(name + " has " + std::to_string(found->manager().size()) +
                    " octets, which is no less than that");
    for (std::uint8_t place = 0; place < volume.boxes; ++place) {
        const auto* box = find_box(volume.members[place].box);
        if (box == nullptr || !box->is_up())
            return told(name + " grows only while all its boxes are up");
        const auto part = box->facts()->parts.find(volume.volume);
        if (part == box->facts()->parts.end())
            return told(name + " grows only while all its members are current");
        auto grown = part->second.superblock;
        const auto now = raid::part_length(grown);
        if (stripes > ~std::uint64_t{0} / 4 / volume.chunk_bytes)  // with checksums it takes more
            return told("no box has room for so much");
        grown.data_length = stripes * volume.chunk_bytes;
        if (auto refusal = lacks_room(*box, raid::part_length(grown) - now)) return told(refusal);
    }
    with_volume(
        name, told,
        [stripes](ControllerVolume& growing) { return growing.manager().grow(stripes); },
        name + " grows one step at a time, and only while all its members are current");
}

}  // namespace weft::node
