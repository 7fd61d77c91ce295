// SPDX-License-Identifier: Apache-2.0
// What is broken on purpose in a cluster: see raid_mutation.hpp.
#include <algorithm>

#include "sim/raid_office.hpp"

namespace weft::sim {

using wire::ArrayAction;

/// Commands that get lost, and that nobody misses.
bool RaidCluster::is_swallowed(unsigned i, const raid::EncodedOrder& order) const {
    const auto action = order.command_block.action;
    if (mutation_ == RaidMutation::aborts_are_lost) return action == ArrayAction::abort;
    if (mutation_ == RaidMutation::volume_is_lost_by_boxes)
        return action == ArrayAction::store_volume;
    const bool commits = mutation_ == RaidMutation::commits_are_lost;
    const bool saves = mutation_ == RaidMutation::checkpoints_run_ahead;
    if ((!commits && !saves) || !wire::is_order(action)) return false;
    const auto header = decode<wire::ArrayOrderHeader>(order.parameters);
    if (!header || header->phase != static_cast<std::uint8_t>(raid::Phase::commit)) return false;
    if (commits) return static_cast<std::uint64_t>(order.command_block.transaction) % 5 == 0;
    const auto place = place_of(i);
    return header->host == wire::HostSession{} && header->window_length == 0 && place &&
           manager_->volume().members[*place].state == wire::ArrayMemberState::rebuilding;
}

void RaidCluster::forget_epoch(unsigned i) {
    auto octets = places_[i].disk->octets();
    for (std::size_t copy = 0; copy < 2; ++copy) {
        const auto image = octets.subspan(copy * wire::superblock_size, wire::superblock_size);
        auto known = raid::parse_superblock(image);
        if (!known) continue;
        known->epoch = wire::Epoch{1};
        std::ranges::copy(raid::encode_superblock(*known), image.begin());
    }
}

/// On its way to a box.
void RaidCluster::tamper_with(unsigned i, const Office& office, raid::EncodedOrder& order) {
    if (mutation_ == RaidMutation::transfers_are_damaged && agenda_.random.chance(5))
        places_[i].machine->transfers.is_damaged = true;
    if (mutation_ != RaidMutation::epochs_are_not_checked || office.is_held()) return;
    const auto& known = box(i).superblock();
    if (wire::is_order(order.command_block.action)) {
        auto header = decode<wire::ArrayOrderHeader>(order.parameters);
        if (!header) return;
        header->address.epoch = known.epoch;
        header->address.generation = known.volume.generation;
        encode(*header, order.parameters);
    } else if (auto address = decode<wire::ArrayAddress>(order.parameters)) {
        if (order.command_block.action == ArrayAction::new_epoch) return;
        address->epoch = known.epoch;
        encode(*address, order.parameters);
    }
}

/// On its way back.
void RaidCluster::tamper_with(const Carried& carried, wire::ArrayAnswer& answer,
                              std::vector<std::byte>& data) const {
    if (mutation_ == RaidMutation::transfers_are_damaged && carried.message.prepares() &&
        answer.outcome == wire::ArrayOutcome::done)
        answer.row_digest = 0, answer.diagonal_digests = {};
    if (data.empty()) return;
    if (mutation_ == RaidMutation::recall_finds_nothing) data = raid::encode_recall({});
    auto recalled = raid::parse_recall(data);
    if (!recalled) return;
    if (mutation_ == RaidMutation::copies_are_believed) {
        recalled->settled = wire::TransactionNumber{~std::uint64_t{0}};
        data = raid::encode_recall(*recalled);
    }
    if (mutation_ == RaidMutation::missed_writes_are_forgotten) {
        // Of where they lie nothing is made but a note of what somebody lacks.
        for (auto& record : recalled->transactions) record.home = record.length = 0;
        data = raid::encode_recall(*recalled);
    }
    if (mutation_ != RaidMutation::all_must_have_prepared) return;
    raid::Mask members = 0;
    const auto& volume = manager_->volume();
    for (std::uint8_t each = 0; each < volume.boxes; ++each)
        if (volume.members[each].state != wire::ArrayMemberState::absent)
            members |= raid::only(each);
    std::erase_if(recalled->transactions, [&](const wire::ArrayRecalled& record) {
        return record.state == wire::ArrayTransactionState::prepared &&
               (record.participants & ~members) != 0;
    });
    data = raid::encode_recall(*recalled);
}

bool RaidCluster::is_passed_by(Office& office, const raid::HostRequest& request) {
    return mutation_ == RaidMutation::reads_pass_writes && office.is_alive &&
           request.operation == raid::HostOperation::write && office.manager.status().requests > 0;
}

/// Until no host asks for anything.
void RaidCluster::stop_rebuilds() {
    const bool busy = manager().status().requests > 0;
    (void)manager().pause_rebuild(busy);
    if (std::exchange(stops_rebuilds_, true)) return;
    agenda_.at_last(std::chrono::milliseconds(5), [this] {
        stops_rebuilds_ = false;
        const bool goes_on = manager_->status().requests > 0;
        (void)manager().pause_rebuild(goes_on);
        if (goes_on) stop_rebuilds();
    });
}

void RaidCluster::fence(const Carried& carried) {
    const auto session = sessions_.find(carried.session);
    if (session == sessions_.end() || !session->second.office->is_held()) return;
    agenda_.later([this, i = session->second.place] {
        if (const auto place = place_of(i)) (void)manager().fail(*place);
    });
}

bool RaidCluster::is_dropped(const raid::MetadataChange& change) const {
    if (mutation_ == RaidMutation::membership_is_lost) return change.name.starts_with("volumes/");
    return mutation_ == RaidMutation::dirty_map_is_stale && change.name.starts_with("dirty/") &&
           change.record && records_.contains(change.name);
}

}  // namespace weft::sim
