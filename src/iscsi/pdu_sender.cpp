// SPDX-License-Identifier: Apache-2.0
#include "iscsi/pdu_sender.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace weft::iscsi {

namespace {

/// Collects pieces behind the first `skip` bytes of what it is shown.
class Lender {
public:
    Lender(std::span<ConstBuffer> pieces, std::size_t& used, std::uint64_t skip)
        : pieces_(pieces), used_(used), skip_(skip) {}

    /// False: no room is left, and nothing more may be shown.
    bool show(ConstBuffer piece) {
        if (piece.size() <= skip_) {
            skip_ -= piece.size();
            return true;
        }
        if (used_ == pieces_.size()) return false;
        pieces_[used_++] = piece.subspan(static_cast<std::size_t>(skip_));
        skip_ = 0;
        return true;
    }

private:
    std::span<ConstBuffer> pieces_;
    std::size_t& used_;
    std::uint64_t skip_;
};

block::ScatterCursor data_of(const OutgoingPdu& pdu) {
    return {pdu.data, pdu.data_skip, pdu.data_length};
}

}  // namespace

void PduSender::queue(OutgoingPdu& pdu) {
    pdu.trip.digests = digests_;
    pdu.trip.ready = false;
    queue_.push_back(pdu);
}

void PduSender::make_ready(OutgoingPdu& pdu) {
    pdu.about_to_go();
    pdu.trip.ready = true;
    if (pdu.trip.digests.header) {
        Crc32c digest;
        digest.add(pdu.header);
        digest.add(pdu.additional);
        store_little_endian<wire::iscsi_digest_size>(digest.value(), pdu.trip.header_digest.data());
    }
    const std::size_t padding =
        round_up(pdu.data_length, wire::iscsi_padding_unit) - pdu.data_length;
    pdu.trip.trailer = {};
    pdu.trip.trailer_size = static_cast<std::uint8_t>(padding);
    if (pdu.trip.digests.data && pdu.data_length > 0) {
        Crc32c digest;
        for (auto cursor = data_of(pdu); cursor.left() > 0; cursor.advance(cursor.piece().size()))
            digest.add(cursor.piece());
        digest.add(ConstBuffer(pdu.trip.trailer).first(padding));
        store_little_endian<wire::iscsi_digest_size>(digest.value(),
                                                     pdu.trip.trailer.data() + padding);
        pdu.trip.trailer_size = static_cast<std::uint8_t>(padding + wire::iscsi_digest_size);
    }
}

std::uint64_t PduSender::size_of(const OutgoingPdu& pdu) const {
    return pdu.header.size() + pdu.additional.size() +
           (pdu.trip.digests.header ? pdu.trip.header_digest.size() : 0) + pdu.data_length +
           pdu.trip.trailer_size;
}

bool PduSender::lend(const OutgoingPdu& pdu, std::uint64_t skip, std::span<ConstBuffer> pieces,
                     std::size_t& used) const {
    Lender lender(pieces, used, skip);
    if (!lender.show(pdu.header) || !lender.show(pdu.additional)) return false;
    if (pdu.trip.digests.header && !lender.show(pdu.trip.header_digest)) return false;
    for (auto cursor = data_of(pdu); cursor.left() > 0; cursor.advance(cursor.piece().size()))
        if (!lender.show(cursor.piece())) return false;
    return lender.show(ConstBuffer(pdu.trip.trailer).first(pdu.trip.trailer_size));
}

std::size_t PduSender::pending(std::span<ConstBuffer> pieces) {
    std::size_t used = 0;
    std::uint64_t skip = front_sent_;
    for (OutgoingPdu* pdu = queue_.empty() ? nullptr : &queue_.front();
         pdu != nullptr && used < pieces.size(); pdu = pdu->next) {
        if (!pdu->trip.ready) make_ready(*pdu);
        if (!lend(*pdu, skip, pieces, used)) break;
        skip = 0;
        // What comes next may be this very PDU again, so nothing behind it can be lent with it.
        if (pdu->may_go_again()) break;
    }
    return used;
}

void PduSender::sent(std::size_t count) {
    total_sent_ += count;
    front_sent_ += count;
    while (!queue_.empty()) {
        OutgoingPdu& front = queue_.front();
        if (!front.trip.ready || front_sent_ < size_of(front)) break;
        front_sent_ -= size_of(front);
        const Digests digests = front.trip.digests;
        queue_.pop_front();
        if (front.gone() == OutgoingPdu::Then::done) continue;
        WEFT_CHECK(front_sent_ == 0);
        front.trip.digests = digests;
        front.trip.ready = false;
        IntrusiveQueue<OutgoingPdu> rest = queue_;
        queue_ = {};
        queue_.push_back(front);
        queue_.append(rest);
    }
    WEFT_CHECK(!queue_.empty() || front_sent_ == 0);
}

void PduSender::drop_all() {
    front_sent_ = 0;
    while (!queue_.empty()) queue_.pop_front().dropped();
}

}  // namespace weft::iscsi
