// SPDX-License-Identifier: Apache-2.0
#include "raid/order_work.hpp"

#include <algorithm>

#include "base/parity.hpp"
#include "raid/checked_disk.hpp"

namespace weft::raid {
namespace {

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

/// Whether the octets may go straight to their place: nothing is done to them on the way.
bool goes_straight(const Piece& piece) {
    return piece.blend == Blend::copy && piece.verb != Verb::send_home &&
           piece.verb != Verb::digest;
}

}  // namespace

std::size_t OrderWork::part_size() const {
    return std::min<std::size_t>(piece().length - done_, place_.landing.size());
}

void OrderWork::advance() {
    if (advancing_) return;  // an answer from inside a question: the loop below goes on
    advancing_ = true;
    while (waits_ == Waits::nothing && next_ < received_.order.pieces.size()) {
        if (stopping_) {
            result_.outcome = wire::ArrayOutcome::unknown_transaction;
            next_ = received_.order.pieces.size();
        } else {
            begin();
        }
    }
    advancing_ = false;
    if (waits_ == Waits::nothing) end();
}

void OrderWork::begin() {
    switch (piece().verb) {
        case Verb::fetch:
            return ask_peer(true, goes_straight(piece()) ? slot() : landed());
        case Verb::load:
            return ask_disk(BlockOperation::read, goes_straight(piece()) ? slot() : landed());
        case Verb::send_slot:
            return ask_peer(false, slot());
        case Verb::send_home:
        case Verb::digest:
            return ask_disk(BlockOperation::read, landed());
        case Verb::commit:
            return ask_disk(BlockOperation::write, slot());
        case Verb::flush:
            return ask_disk(BlockOperation::flush, {});
        default:
            compute();
            return part_ended(piece().length);
    }
}

void OrderWork::compute() {
    switch (piece().verb) {
        case Verb::combine:
            return blend(piece(), other_slot(), slot());
        case Verb::clear:
            std::ranges::fill(slot(), std::byte{0});
            return;
        case Verb::solve_pair:
            return solve_pair(piece().column, piece().other_column, slot(), other_slot());
        case Verb::solve_diagonal:
            return solve_from_diagonal(piece().column, slot());
        default:
            return;
    }
}

void OrderWork::ask_disk(BlockOperation wanted, Buffer part) {
    waits_ = Waits::disk;
    disk_memory_ = part;
    BlockRequest::operation = wanted;
    BlockRequest::offset = place_.data_offset + piece().home + done_;
    BlockRequest::length = part.size();
    BlockRequest::memory = {&disk_memory_, 1};
    place_.disk.submit(*this);
}

void OrderWork::ask_peer(bool fetches, Buffer part) {
    waits_ = Waits::peer;
    PeerTransfer::peer = *std::ranges::find(received_.parties, piece().peer, &PartyAccess::party);
    PeerTransfer::at = piece().at + done_;
    PeerTransfer::memory = part;
    if (fetches)
        place_.peers.fetch(*this);
    else
        place_.peers.send(*this);
}

void OrderWork::completed(Result<void> outcome) {
    const Waits on = std::exchange(waits_, Waits::nothing);
    if (outcome)
        arrived();
    else
        failed(outcome.error(), on);
    advance();
}

void OrderWork::arrived() {
    const std::size_t part = goes_straight(piece()) ? piece().length : part_size();
    if (piece().verb == Verb::send_home && !std::exchange(from_disk_, !from_disk_))
        return ask_peer(false, landed());
    if (piece().verb == Verb::digest)
        result_.digest.add(digest_of(landed(), piece().blend, piece().column));
    else if (!goes_straight(piece()) && piece().verb != Verb::send_home)
        blend(piece(), landed(), slot().subspan(done_, part));
    part_ended(part);
}

void OrderWork::part_ended(std::size_t size) {
    done_ += static_cast<std::uint32_t>(size);
    if (done_ < piece().length) return;
    done_ = 0;
    ++next_;
}

void OrderWork::failed(Error error, Waits on) {
    result_.piece = static_cast<std::uint16_t>(next_ + 1);
    result_.outcome = wire::ArrayOutcome::disk_failed;
    if (on == Waits::peer) {
        result_.outcome = wire::ArrayOutcome::passive_side_failed;
        auto party = std::ranges::find(received_.parties, piece().peer, &PartyAccess::party);
        result_.party = static_cast<std::uint8_t>(party - received_.parties.begin());
    } else if (error.code == Code::out_of_range) {
        result_.outcome = wire::ArrayOutcome::out_of_range;
    } else if (is_mismatch(error)) {
        result_.outcome = wire::ArrayOutcome::corrupt;
    }
    next_ = received_.order.pieces.size();
}

void OrderWork::end() {
    const OrderResult result = result_;
    owner_.order_ended(*this, result);
}

}  // namespace weft::raid
