// SPDX-License-Identifier: Apache-2.0
#include "raid/order_work.hpp"

#include <algorithm>

#include "base/parity.hpp"
#include "raid/checked_disk.hpp"

namespace weft::raid {
namespace {

/// Enough that a round trip is shared by many; every peer keeps a queue that must hold them.
constexpr std::size_t steps_max = 16;
constexpr std::size_t adjoining_max = 64;  ///< pieces in one request to the disk

void blend(const Piece& piece, ConstBuffer from, Buffer into) {
    switch (piece.blend) {
        case Blend::copy:
            std::ranges::copy(from, into.begin());
            break;
        case Blend::add:
            xor_into(from, into);
            break;
        case Blend::add_diagonal:
            add_diagonal(piece.column, from, into);
            break;
    }
}

bool is_computed(Verb verb) {
    return verb == Verb::combine || verb == Verb::clear || verb == Verb::solve_pair ||
           verb == Verb::solve_diagonal || verb == Verb::prepare ||
           verb == Verb::versions;  // which the box does, at the end
}

/// Whether something is done to the octets on their way.
bool goes_by_landing(const Piece& piece) {
    if (piece.verb == Verb::send_home || piece.verb == Verb::digest) return true;
    return piece.blend != Blend::copy && !is_computed(piece.verb);
}

struct Touched {
    std::uint64_t begin = 0, end = 0;
    bool overlaps(const Touched& other) const { return begin < other.end && other.begin < end; }
};

Touched slot_touched(const Piece& piece) {
    if (piece.verb == Verb::send_home || piece.verb == Verb::digest || piece.verb == Verb::versions)
        return {};
    return {piece.slot, std::uint64_t{piece.slot} + piece.length};
}

Touched other_slot_touched(const Piece& piece) {
    if (piece.verb != Verb::combine && piece.verb != Verb::solve_pair) return {};
    return {piece.at, piece.at + piece.length};
}

Touched home_touched(const Piece& piece) {
    const bool at_home = piece.verb == Verb::load || piece.verb == Verb::send_home ||
                         piece.verb == Verb::digest || piece.verb == Verb::commit;
    if (!at_home) return {};
    return {piece.home, piece.home + piece.length};
}

/// Whether the later may be begun only when the earlier is over.
bool depends(const Piece& later, const Piece& earlier) {
    if (later.verb == Verb::flush || earlier.verb == Verb::flush) return true;
    const bool writes_home = later.verb == Verb::commit || earlier.verb == Verb::commit;
    if (writes_home && home_touched(later).overlaps(home_touched(earlier))) return true;
    const Touched slot = slot_touched(earlier);
    if (other_slot_touched(later).overlaps(slot)) return true;
    // What lands is blended when it is its turn, which is when all before it are over.
    return !goes_by_landing(later) && slot_touched(later).overlaps(slot);
}

/// A transfer's end: refused by a living peer, given up while connected, or never connected.
wire::ArrayOutcome outcome_of_transfer(Error error) {
    if (error.code == Code::access_denied) return wire::ArrayOutcome::peer_refused;
    // Too many wait for its connection, which says nothing of the peer but that it is slow.
    if (error.code == Code::timed_out || error.code == Code::exhausted)
        return wire::ArrayOutcome::peer_timed_out;
    return wire::ArrayOutcome::peer_unreachable;
}

}  // namespace

void OrderWork::advance() {
    if (advancing_) return;  // an answer from inside a question: the loop below goes on
    advancing_ = true;
    do retire_what_ended();
    while (begin_next());
    advancing_ = false;
    if (steps_.empty()) end();
}

void OrderWork::retire_what_ended() {
    for (; !steps_.empty() && steps_.front().ended; steps_.pop_front()) {
        const Step& step = steps_.front();
        if (failed_) continue;
        if (step.result)
            retire(step);
        else
            failed(step, step.result.error());
    }
}

void OrderWork::retire(const Step& step) {
    const Piece& piece = pieces()[step.piece];
    if (piece.verb == Verb::digest)
        result_.digest.add(
            digest_of(step.landed, piece.blend, piece.column, piece.home + step.begin));
    else if (!step.landed.empty() && piece.verb != Verb::send_home)
        blend(piece, step.landed, slot_of(piece).subspan(step.begin, step.size));
}

/// Whether there is more to be tried: false when all is begun, or must wait for what is.
bool OrderWork::begin_next() {
    if (failed_ || stopping_ || next_ == pieces().size()) return false;
    const Piece& piece = pieces()[next_];
    if (steps_.size() >= steps_max || must_wait(piece)) return false;
    if (goes_by_landing(piece)) return begin_by_landing(piece);
    if (is_computed(piece.verb)) {
        compute(piece);
        ++next_;
    } else {
        begin_straight(piece);
    }
    return true;
}

bool OrderWork::must_wait(const Piece& piece) const {
    for (const Step& step : steps_) {
        // Parts of one piece do not touch each other.
        if (begun_ != 0 && step.piece == next_) continue;
        for (std::size_t i = 0; i < step.pieces; ++i)
            if (depends(piece, pieces()[step.piece + i])) return true;
    }
    return false;
}

void OrderWork::begin_straight(const Piece& piece) {
    Step& step = steps_.emplace_back(*this, next_, 0u);
    step.size = piece.length;
    ++next_;
    switch (piece.verb) {
        case Verb::load:
            take_adjoining(step);
            return ask_disk(step, BlockOperation::read);
        case Verb::commit:
            take_adjoining(step);
            return ask_disk(step, BlockOperation::write);
        case Verb::flush:
            return ask_disk(step, BlockOperation::flush);
        default:
            return ask_peer(step, slot_of(piece));
    }
}

/// Blocks of many stripes lie side by side on a box: one request for all of them.
void OrderWork::take_adjoining(Step& step) {
    step.home_memory.push_back(slot_of(pieces()[step.piece]));
    while (next_ < pieces().size() && step.pieces < adjoining_max) {
        const Piece& before = pieces()[next_ - 1];
        const Piece& piece = pieces()[next_];
        const bool adjoins = piece.verb == before.verb && piece.blend == before.blend &&
                             piece.home == before.home + before.length;
        if (!adjoins) return;
        const auto same_slot = [&](std::size_t i) {
            return slot_touched(pieces()[step.piece + i]).overlaps(slot_touched(piece));
        };
        for (std::size_t i = 0; i < step.pieces; ++i)
            if (same_slot(i)) return;
        const auto others_wait = std::ranges::any_of(steps_, [&](const Step& other) {
            for (std::size_t i = 0; &other != &step && i < other.pieces; ++i)
                if (depends(piece, pieces()[other.piece + i])) return true;
            return false;
        });
        if (others_wait) return;
        step.home_memory.push_back(slot_of(piece));
        step.size += piece.length;
        ++step.pieces;
        ++next_;
    }
}

bool OrderWork::begin_by_landing(const Piece& piece) {
    // Halves: while one part is being blended the next is on its way.
    const auto most = static_cast<std::uint32_t>(place_.landing.size() / 2);
    const std::uint32_t size = std::min(piece.length - begun_, most);
    const auto room = room_to_land(size);
    if (!room) return false;
    Step& step = steps_.emplace_back(*this, next_, begun_);
    step.size = size;
    step.landed = *room;
    begun_ += size;
    if (begun_ == piece.length) {
        begun_ = 0;
        ++next_;
    }
    if (piece.verb == Verb::fetch) {
        ask_peer(step, step.landed);
    } else {
        step.home_memory.push_back(step.landed);
        ask_disk(step, BlockOperation::read);
    }
    return true;
}

/// The landing is a ring: what landed first leaves first.
std::optional<Buffer> OrderWork::room_to_land(std::size_t size) {
    const auto oldest =
        std::ranges::find_if(steps_, [](const Step& step) { return !step.landed.empty(); });
    std::size_t limit = place_.landing.size();
    if (oldest == steps_.end()) {
        landing_end_ = 0;
    } else {
        const auto begin = static_cast<std::size_t>(oldest->landed.data() - place_.landing.data());
        if (landing_end_ <= begin) {
            limit = begin;
        } else if (landing_end_ + size > limit) {
            landing_end_ = 0;
            limit = begin;
        }
    }
    if (landing_end_ + size > limit) return std::nullopt;
    const Buffer room = place_.landing.subspan(landing_end_, size);
    landing_end_ += size;
    return room;
}

void OrderWork::compute(const Piece& piece) {
    switch (piece.verb) {
        case Verb::combine:
            return blend(piece, other_slot_of(piece), slot_of(piece));
        case Verb::clear:
            std::ranges::fill(slot_of(piece), std::byte{0});
            return;
        case Verb::solve_pair:
            return solve_pair(piece.column, piece.other_column, slot_of(piece),
                              other_slot_of(piece));
        case Verb::solve_diagonal:
            return solve_from_diagonal(piece.column, slot_of(piece));
        default:
            return;
    }
}

void OrderWork::ask_disk(Step& step, BlockOperation wanted) {
    step.at = At::disk;
    step.operation = wanted;
    step.offset = place_.data_offset + pieces()[step.piece].home + step.begin;
    step.length = step.size;
    step.BlockRequest::memory = step.home_memory;
    place_.disk.submit(step);
}

void OrderWork::ask_peer(Step& step, Buffer memory) {
    const Piece& piece = pieces()[step.piece];
    step.at = At::peer;
    step.peer = *std::ranges::find(received_.parties, piece.peer, &PartyAccess::party);
    step.PeerTransfer::at = piece.at + step.begin;
    step.PeerTransfer::memory = memory;
    if (piece.verb == Verb::fetch)
        place_.peers.fetch(step);
    else
        place_.peers.send(step);
}

void OrderWork::step_ended(Step& step, Result<void> outcome) {
    const bool is_read = step.at == At::disk && pieces()[step.piece].verb == Verb::send_home;
    // Whom it was for may have been served by others: where it can still be kept back, it is.
    if (outcome && is_read && stopping_)
        unsent_ = true;
    else if (outcome && is_read)
        return ask_peer(step, step.landed);
    step.result = outcome;
    step.ended = true;
    advance();
}

void OrderWork::failed(const Step& step, Error error) {
    failed_ = true;
    const Piece& piece = pieces()[step.piece];
    result_.piece = static_cast<std::uint16_t>(step.piece + 1);
    result_.outcome = wire::ArrayOutcome::disk_failed;
    if (step.at == At::peer) {
        result_.outcome = outcome_of_transfer(error);
        auto party = std::ranges::find(received_.parties, piece.peer, &PartyAccess::party);
        result_.party = static_cast<std::uint8_t>(party - received_.parties.begin());
    } else if (error.code == Code::out_of_range) {
        result_.outcome = wire::ArrayOutcome::out_of_range;
    } else if (error.code == Code::exhausted) {
        result_.outcome = wire::ArrayOutcome::no_space;
    } else if (is_mismatch(error)) {
        result_.outcome = wire::ArrayOutcome::corrupt;
        name_block(step, std::uint64_t{error.where} * CheckedDisk::block);
    }
}

/// Which piece of the step it is in, and where in that: in place of a digest there is none of.
void OrderWork::name_block(const Step& step, std::uint64_t at) {
    for (std::size_t i = 0; i < step.pieces; ++i) {
        const Piece& piece = pieces()[step.piece + i];
        const std::uint64_t begin = place_.data_offset + piece.home;
        if (at < begin || at >= begin + piece.length) continue;
        result_.piece = static_cast<std::uint16_t>(step.piece + i + 1);
        result_.digest = {};
        result_.digest.row = static_cast<std::uint32_t>(at - begin);
    }
}

void OrderWork::end() {
    if (!failed_ && (unsent_ || next_ < pieces().size()))
        result_.outcome = wire::ArrayOutcome::unknown_transaction;  // it was stopped
    const OrderResult result = result_;
    owner_.order_ended(*this, result);
}

}  // namespace weft::raid
