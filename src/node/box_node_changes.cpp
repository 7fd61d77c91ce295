// SPDX-License-Identifier: Apache-2.0
// What changes a box itself: a new controller, parts that come and go. One change at a time; each
// is answered when it is lasting.
#include "base/error_text.hpp"
#include "node/box_node.hpp"

namespace weft::node {
namespace {

wire::ArrayOutcome outcome_of_disk(Error why) {
    return why.code == Code::exhausted ? wire::ArrayOutcome::no_space
                                       : wire::ArrayOutcome::disk_failed;
}

}  // namespace

void BoxNode::save(std::function<void(Result<void>)> then) {
    saving_ = true;
    world_.replace_file(facts_path(), encode_box_facts(facts_),
                        [this, alive = alive_, then = std::move(then)](Result<void> saved) {
                            if (!*alive) return;
                            saving_ = false;
                            then(saved);
                        });
}

void BoxNode::tell_hang(const std::string& path, bool hangs) {
    if (!hangs) return tell(path + ": its disk answers again; weft member re-add lets it back in");
    const auto patience = options_.parts.disk_patience / std::chrono::seconds(1);
    tell(path + ": its disk has not answered for " + std::to_string(patience) +
         " s: this part counts as failed");
}

void BoxNode::change(Call& call) {
    changes_.push_back(&call);
    if (changes_.size() == 1) begin_change(call);
}

void BoxNode::begin_change(Call& call) {
    const auto command = parse(call);
    switch (command->block.action) {
        case wire::ArrayAction::create_part:
            return create_part(call, *command);
        case wire::ArrayAction::delete_part:
            return delete_part(call, *command);
        case wire::ArrayAction::store_volume:
            return grow_part(call, *command);
        default:
            return take_epoch(call, *command);
    }
}

void BoxNode::end_change(Call& call, Outcome outcome) {
    answer(call, outcome);
    next_change();
}

void BoxNode::next_change() {
    changes_.pop_front();
    if (changes_.empty()) return;
    // Not from inside the end of the one before: they could be many.
    world_.defer([this, alive = alive_] {
        if (*alive) begin_change(*changes_.front());
    });
}

// ---------------------------------------------------------------------------- a new controller

void BoxNode::take_epoch(Call& call, const Command& command) {
    const auto& address = command.address;
    if (command.parameters.size() != wire_size<wire::ArrayAddress>() ||
        address.cluster == wire::ClusterIdentity{})
        return end_change(call, Outcome::malformed);
    if (!facts_.is_blank() && address.cluster != facts_.cluster)
        return end_change(call, Outcome::wrong_cluster);
    if (address.box != facts_.box) return end_change(call, Outcome::wrong_box);
    auto told = [this, &call](Outcome outcome) { end_change(call, outcome); };
    // Announced again: there are parts that could not keep it.
    if (address.epoch == facts_.epoch && !facts_.is_blank() && !parts_behind().empty())
        return tell_parts_of_epoch(told);
    if (address.epoch <= facts_.epoch) return end_change(call, Outcome::other_epoch);
    const auto before = facts_;
    if (facts_.is_blank()) tell("this box is part of cluster " + to_digits(address.cluster));
    facts_.cluster = address.cluster;
    facts_.epoch = address.epoch;
    // What an older controller's orders are about to do ends here, and not when the disk knows.
    links_->set_office(facts_.cluster, facts_.epoch);
    save([this, &call, before, told](Result<void> saved) {
        if (saved) return tell_parts_of_epoch(told);
        facts_.cluster = before.cluster;
        facts_.epoch = before.epoch;
        links_->set_office(facts_.cluster, facts_.epoch);
        end_change(call, Outcome::disk_failed);
    });
}

std::vector<BoxPart*> BoxNode::parts_behind() const {
    std::vector<BoxPart*> behind;
    for (const auto& part : parts_)
        if (part->superblock().epoch < facts_.epoch) behind.push_back(part.get());
    return behind;
}

void BoxNode::tell_parts_of_epoch(std::function<void(Outcome)> then) {
    const auto behind = parts_behind();
    epoch_outcome_ = Outcome::done;
    epoch_told_ = std::move(then);
    epochs_awaited_ = behind.size() + 1;  // one for ourselves: they may answer from inside
    for (auto* part : behind) {
        const auto address = encoded(wire::ArrayAddress{.cluster = facts_.cluster,
                                                        .volume = part->volume(),
                                                        .box = facts_.box,
                                                        .epoch = facts_.epoch});
        part->receive(epoch_ticket,
                      {.action = wire::ArrayAction::new_epoch,
                       .parameter_length = static_cast<std::uint32_t>(address.size())},
                      address);
    }
    part_told_of_epoch(Outcome::done);
}

void BoxNode::part_told_of_epoch(Outcome outcome) {
    if (outcome != Outcome::done) epoch_outcome_ = outcome;
    if (--epochs_awaited_ == 0) std::exchange(epoch_told_, nullptr)(epoch_outcome_);
}

// ---------------------------------------------------------------------------------------- parts

wire::ArrayOutcome BoxNode::judge_superblock(const wire::ArraySuperblock& superblock,
                                             const wire::ArrayAddress& address) {
    const auto& volume = superblock.volume;
    if (superblock.cluster != address.cluster) return Outcome::wrong_cluster;
    if (superblock.box != address.box) return Outcome::wrong_box;
    if (volume.volume != address.volume || volume.volume == wire::VolumeIdentity{})
        return Outcome::wrong_volume;
    if (superblock.epoch != address.epoch) return Outcome::other_epoch;
    if (volume.generation != address.generation) return Outcome::other_generation;
    // The checks of a superblock that is read back are just as good before it is written.
    if (!raid::parse_superblock(raid::encode_superblock(superblock))) return Outcome::malformed;
    constexpr std::uint64_t superblocks = 2 * wire::superblock_size;
    const bool wants_journal = volume.consistency == wire::ArrayConsistency::journal;
    if (superblock.data_offset < superblocks || raid::has_journal(superblock) != wants_journal ||
        superblock.data_length / volume.chunk_bytes < volume.stripes)
        return Outcome::malformed;
    if (superblock.data_length > options_.size || superblock.data_offset > options_.size)
        return Outcome::no_space;
    const auto* before = facts_.find(volume.volume);
    const auto left_out = left_out_.find(volume.volume);
    const bool replaces = left_out != left_out_.end();
    if (before != nullptr && !replaces) return Outcome::already_there;
    if (replaces && left_out->second == LeftOut::kept) return Outcome::disk_failed;
    const bool fits = raid::part_length(superblock) <= size_left() + (replaces ? before->size : 0);
    const bool has_entry = replaces || facts_.parts.size() < box_parts_max;
    return fits && has_entry ? Outcome::done : Outcome::no_space;
}

void BoxNode::create_part(Call& call, const Command& command) {
    constexpr std::size_t head = wire_size<wire::ArrayAddress>();
    if (const auto outcome = check(command.address); outcome != Outcome::done)
        return end_change(call, outcome);
    const auto superblock = decode<wire::ArraySuperblock>(command.parameters.subspan(head));
    if (!superblock || command.parameters.size() != head + wire_size<wire::ArraySuperblock>())
        return end_change(call, Outcome::malformed);
    if (const auto outcome = judge_superblock(*superblock, command.address);
        outcome != Outcome::done)
        return end_change(call, outcome);
    // First it is known that there may be a disk, then there is one. It is another than one that
    // is damaged: somebody may want to look at that.
    const auto before = facts_.parts;
    const auto& volume = superblock->volume.volume;
    auto* entry = facts_.find(volume);
    if (entry != nullptr)
        ++entry->number;
    else
        entry = &facts_.parts.emplace_back(wire::ArrayBoxPart{.volume = volume});
    entry->size = raid::part_length(*superblock);
    entry->begun = true;
    save([this, &call, superblock = *superblock, before](Result<void> saved) {
        if (saved) return make_part(call, superblock);
        facts_.parts = before;
        end_change(call, outcome_of_disk(saved.error()));
    });
}

void BoxNode::make_part(Call& call, const wire::ArraySuperblock& superblock) {
    const auto& volume = superblock.volume.volume;
    const auto path = path_of(volume);
    auto windows = take_windows();
    if (!windows) return undo_part(call, volume, Outcome::no_room);
    spare_windows_.push_back(std::move(*windows));
    auto made = [this, &call, superblock, alive = alive_](Result<void> outcome) {
        if (*alive) disk_made(call, superblock, outcome);
    };
    // Whatever was there before is nobody's.
    world_.remove_disk(path, [this, volume, made, alive = alive_](Result<void> removed) {
        if (!*alive || !removed) return made(removed);
        provide_part(volume, made);
    });
}

/// A volume that has all its boxes is worth more than what is damaged: if there is no room for both
/// that goes.
void BoxNode::provide_part(const wire::VolumeIdentity& volume,
                           std::function<void(Result<void>)> made) {
    const auto entry = *facts_.find(volume);
    world_.provide_disk(
        path_of(entry), entry.size,
        [this, entry, made = std::move(made), alive = alive_](Result<void> provided) {
            const bool lacks_room = !provided && provided.error().code == Code::exhausted;
            if (!*alive || !lacks_room || entry.number == 0) return made(provided);
            auto damaged = entry;
            --damaged.number;
            world_.remove_disk(path_of(damaged), [this, entry, made, alive](Result<void> gone) {
                if (!*alive || !gone) return made(gone);
                world_.provide_disk(path_of(entry), entry.size, made);
            });
        });
}

void BoxNode::disk_made(Call& call, const wire::ArraySuperblock& superblock, Result<void> made) {
    const auto& volume = superblock.volume.volume;
    const auto path = path_of(volume);
    auto disk = made ? world_.open_disk({.path = path})
                     : Result<std::unique_ptr<BlockDevice>>(made.error());
    if (!disk) {
        tell(path + ": " + to_text(disk.error()));
        return undo_part(call, volume, outcome_of_disk(disk.error()));
    }
    making_ = make_part_on(std::move(*disk));
    watch_disk(*making_, path);
    making_->create(superblock, [this, &call, volume, alive = alive_](Result<void> written) {
        world_.defer([this, &call, volume, alive, written] {
            if (!*alive) return;
            auto part = std::move(making_);
            if (written) return keep_part(call, std::move(part));
            part.reset();
            undo_part(call, volume, outcome_of_disk(written.error()));
        });
    });
}

void BoxNode::keep_part(Call& call, std::unique_ptr<BoxPart> part) {
    facts_.find(part->volume())->begun = false;
    making_ = std::move(part);
    save([this, &call](Result<void> saved) {
        auto made = std::move(making_);
        const auto superblock = made->superblock();
        if (!saved) {
            made.reset();
            return undo_part(call, superblock.volume.volume, Outcome::disk_failed);
        }
        auto windows = take_windows();
        made->start(std::move(*windows), *links_);
        parts_.push_back(std::move(made));
        left_out_.erase(superblock.volume.volume);
        tell("this box has a part of volume " + raid::text_of_field(superblock.volume.name));
        end_change(call, Outcome::done);
    });
}

/// What was begun goes; if the file cannot be told, the next start removes it.
void BoxNode::undo_part(Call& call, const wire::VolumeIdentity& volume, Outcome outcome) {
    facts_.find(volume)->begun = true;
    take_back(volume, [this, &call, outcome](Result<void>) {
        save([this, &call, outcome](Result<void>) { end_change(call, outcome); });
    });
}

/// As it was before a part was begun: without any, or with the damaged one that it was to replace.
void BoxNode::take_back(const wire::VolumeIdentity& volume,
                        std::function<void(Result<void>)> then) {
    world_.remove_disk(path_of(volume), [this, volume, then = std::move(then),
                                         alive = alive_](Result<void> removed) {
        if (!*alive) return;
        auto& entry = *facts_.find(volume);
        if (!removed) {
            left_out_[volume] = LeftOut::kept;
        } else if (entry.number > 0) {
            --entry.number;
            entry.begun = false;
            left_out_[volume] = LeftOut::damaged;
        } else {
            left_out_.erase(volume);
            std::erase_if(facts_.parts, [&](const auto& part) { return part.volume == volume; });
        }
        then(removed);
    });
}

/// For good, and all the damaged ones that it has replaced.
void BoxNode::remove_part(Call& call, const wire::VolumeIdentity& volume) {
    auto& entry = *facts_.find(volume);
    if (entry.number == 0) return undo_part(call, volume, Outcome::done);
    entry.begun = true;
    take_back(volume, [this, &call, volume](Result<void> removed) {
        if (removed) return remove_part(call, volume);
        save([this, &call](Result<void>) { end_change(call, Outcome::done); });
    });
}

std::optional<std::uint64_t> BoxNode::room_wanted(const Command& command) {
    const auto* part = find_part(command.address.volume);
    if (part == nullptr || check(command.address) != Outcome::done) return std::nullopt;
    const auto volume =
        decode<wire::ArrayVolume>(command.parameters.subspan(wire_size<wire::ArrayAddress>()));
    const auto octets = volume ? part->room_for(*volume) : std::nullopt;
    if (!octets || *octets <= part->size()) return std::nullopt;
    const auto* entry = facts_.find(part->volume());
    return *octets <= entry->size + size_left() ? octets : std::nullopt;
}

/// The disk grows first, beside the loop; the part then finds that it has. The box's file learns of
/// it when it is next replaced: until then the disk itself says how large it is.
void BoxNode::grow_part(Call& call, const Command& command) {
    const auto octets = room_wanted(command);
    auto go_on = [this, &call] {
        // In this order: its answer may be the last that somebody waits for.
        const auto again = parse(call);
        next_change();
        give_to_part(call, *again);
    };
    if (!octets) return go_on();
    const auto path = path_of(command.address.volume);
    world_.provide_disk(
        path, *octets,
        [this, path, volume = command.address.volume, go_on, alive = alive_](Result<void> grown) {
            if (!*alive) return;
            auto disk = grown ? world_.open_disk({.path = path})
                              : Result<std::unique_ptr<BlockDevice>>(grown.error());
            if (!disk) {
                tell(path + ": " + to_text(disk.error()));
            } else {
                auto& part = *find_part(volume);
                facts_.find(volume)->size = (*disk)->traits().size;
                part.use(std::move(*disk));
                tell("the part of volume " + raid::text_of_field(part.superblock().volume.name) +
                     " has grown");
            }
            go_on();
        });
}

void BoxNode::delete_part(Call& call, const Command& command) {
    if (command.parameters.size() != wire_size<wire::ArrayAddress>())
        return end_change(call, Outcome::malformed);
    if (const auto outcome = check(command.address); outcome != Outcome::done)
        return end_change(call, outcome);
    auto* part = find_part(command.address.volume);
    if (waits_for_room(command.address.volume)) return end_change(call, Outcome::no_room);
    if (part == nullptr && left_out_.contains(command.address.volume))
        return remove_part(call, command.address.volume);
    if (part == nullptr) return end_change(call, Outcome::wrong_volume);
    if (!part->idle()) return end_change(call, Outcome::no_room);
    facts_.find(command.address.volume)->begun = true;
    const auto volume = command.address.volume;
    save([this, &call, volume, part](Result<void> saved) {
        if (!saved || !part->idle()) return keep_after_all(call, volume, saved);
        spare_windows_.push_back(part->stop());
        std::erase_if(parts_, [&](const auto& each) { return each.get() == part; });
        remove_part(call, volume);
    });
}

/// A part that was to be deleted, and cannot be: its file said so, or orders have come meanwhile.
void BoxNode::keep_after_all(Call& call, const wire::VolumeIdentity& volume, Result<void> why) {
    facts_.find(volume)->begun = false;
    save([this, &call, why](Result<void> saved) {
        end_change(call, why && saved ? Outcome::no_room : Outcome::disk_failed);
    });
}

}  // namespace weft::node
