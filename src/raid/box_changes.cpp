// SPDX-License-Identifier: Apache-2.0
// What changes a box itself, and not the data on it: epochs, the volume it believes to be part of,
// the peers it may meet. A change counts when it is lasting, and not before it is answered.
#include <algorithm>

#include "raid/box.hpp"

namespace weft::raid {

using wire::ArrayAction;
using wire::ArrayOutcome;

/// A new controller announces itself. What the old one began ends here, and nothing it still sends
/// is obeyed: from now on, not only from when the disk knows. The new one is not obeyed before
/// either: a write of the old one that is still on its way to the disk must not come after its own.
void Box::take_epoch(CommandTicket ticket, ConstBuffer parameters) {
    auto address = decode<wire::ArrayAddress>(parameters);
    if (!address || parameters.size() != wire_size<wire::ArrayAddress>())
        return say(ticket, ArrayOutcome::malformed);
    const auto& known = keeper_.current();
    if (address->cluster != known.cluster) return say(ticket, ArrayOutcome::wrong_cluster);
    if (address->box != known.box) return say(ticket, ArrayOutcome::wrong_box);
    const bool is_taken = known.epoch == announced_ || !changes_.empty();
    if (address->epoch < announced_ || (address->epoch == announced_ && is_taken))
        return say(ticket, ArrayOutcome::other_epoch);
    announced_ = address->epoch;
    lease_end_.reset();
    for (Window& window : windows_) {
        if (window.open) begin_to_end(window);
    }
    auto next = changes_.empty() ? known : changes_.back().superblock;
    next.epoch = address->epoch;
    change(ticket, next);
}

/// Whoever lost its session while a volume is being kept, which may take long, tells it again, or
/// the next one: that waits, too. Of those that wait only the last is worth keeping.
void Box::take_volume(CommandTicket ticket, ConstBuffer parameters) {
    auto volume = decode<wire::ArrayVolume>(parameters);
    const auto& known = keeper_.current();
    if (!volume || parameters.size() != wire_size<wire::ArrayVolume>() || !layout_of(*volume))
        return say(ticket, ArrayOutcome::malformed);
    if (volume->volume != known.volume.volume) return say(ticket, ArrayOutcome::wrong_volume);
    if (volume->generation <= known.volume.generation)
        return say(ticket, ArrayOutcome::other_generation);
    const auto& latest = changes_.empty() ? known : changes_.back().superblock;
    if (!changes_.empty() && latest.volume == *volume)
        return changes_.back().tickets.push_back(ticket);
    if (volume->generation <= latest.volume.generation)
        return say(ticket, ArrayOutcome::other_generation);
    if (volume->boxes <= known.place || volume->members[known.place].box != known.box)
        return say(ticket, ArrayOutcome::wrong_box);
    auto next = latest;
    next.volume = *volume;
    if (volume->stripes > latest.data_length / volume->chunk_bytes) {
        const std::uint64_t most = ~std::uint64_t{0} - known.data_offset;
        const bool behind = known.journal_offset > known.data_offset;  // it would be run over
        if (behind || volume->stripes > most / volume->chunk_bytes)
            return say(ticket, ArrayOutcome::out_of_range);
        next.data_length = volume->stripes * volume->chunk_bytes;
        if (!owner_.make_room(part_length(next))) return say(ticket, ArrayOutcome::out_of_range);
        if (journaled_ != nullptr) journaled_->home().grow(next.data_length);
    }
    if (changes_.size() > 1) {
        for (auto superseded : std::exchange(changes_.back().tickets, {}))
            say(superseded, ArrayOutcome::other_generation);
        changes_.pop_back();
    }
    change(ticket, next);
}

void Box::change(CommandTicket ticket, const wire::ArraySuperblock& superblock) {
    changes_.push_back({{ticket}, superblock});
    begin_change();
}

void Box::begin_change() {
    if (changes_.empty() || keeper_.busy()) return;
    const auto& next = changes_.front().superblock;
    if (next.epoch != keeper_.current().epoch && is_working()) return;
    keeper_.keep(next);
}

void Box::superblock_kept(Result<void> outcome) {
    const auto tickets = std::move(changes_.front().tickets);
    changes_.pop_front();
    // An epoch that could not be kept is not obeyed, and may be announced again. The one before is
    // not obeyed either: what it had staged here is gone, and an order that counts on it would find
    // an empty window.
    begin_change();
    for (auto ticket : tickets)
        say(ticket, outcome ? ArrayOutcome::done : ArrayOutcome::disk_failed);
}

void Box::take_peers(CommandTicket ticket, const wire::ArrayCommandBlock& block,
                     ConstBuffer parameters) {
    if (block.action != ArrayAction::meet_boxes) {
        auto host = decode<wire::ArrayHostAdmission>(parameters);
        if (!host || parameters.size() != wire_size<wire::ArrayHostAdmission>())
            return say(ticket, ArrayOutcome::malformed);
        if (block.action == ArrayAction::admit_host)
            owner_.admit(*host);
        else
            owner_.dismiss(host->host);
        return say(ticket, ArrayOutcome::done);
    }
    auto boxes = parse_peers(parameters, limits::boxes);
    if (!boxes) return say(ticket, ArrayOutcome::malformed);
    owner_.meet(*boxes);
    say(ticket, ArrayOutcome::done);
}

Result<std::vector<wire::ArrayPeer>> parse_peers(ConstBuffer parameters, std::size_t boxes_max) {
    constexpr std::size_t head = wire_size<wire::ArrayPeerList>(),
                          size = wire_size<wire::ArrayPeer>();
    WEFT_TRY(const auto list, decode<wire::ArrayPeerList>(parameters));
    if (list.count > boxes_max || parameters.size() != head + list.count * size)
        return Error{.code = Code::malformed};
    std::vector<wire::ArrayPeer> boxes;
    for (std::size_t i = 0; i < list.count; ++i) {
        WEFT_TRY(const auto peer, decode<wire::ArrayPeer>(parameters.subspan(head + i * size)));
        if (peer.place >= limits::boxes) return Error{.code = Code::malformed};
        boxes.push_back(peer);
    }
    return boxes;
}

}  // namespace weft::raid
