// SPDX-License-Identifier: Apache-2.0
#include "iscsi/data_out_transfer.hpp"

#include <algorithm>

namespace weft::iscsi {

void DataOutTransfer::begin(const TargetMoverTask& task, const ConnectionTerms& terms) {
    auto tag = next_tag_;  // goes on, so that a late answer to an earlier task is a stranger
    *this = {};
    next_tag_ = tag;
    terms_ = &terms;
    offered_ = task.out_length;
    segment_ = task.immediate_length > 0;
    segment_place_ = {0, task.immediate_length};
    segment_kept_ = true;
    const auto burst = std::min(terms.first_burst_max, offered_);
    if (segment_ && (!terms.immediate_data || task.immediate_length > burst)) {
        spoil(DataOutcome::unexpected_unsolicited);
        segment_kept_ = false;
    }
    if (task.expects_unsolicited) {
        unsolicited_ = {.open = true, .at = task.immediate_length, .end = burst};
        if (terms.initial_request_needed) spoil(DataOutcome::unexpected_unsolicited);
    }
    asked_ = std::min(task.immediate_length, offered_);
}

void DataOutTransfer::want(std::uint32_t length) {
    WEFT_CHECK(!wanted_);
    wanted_ = std::min(length, offered_);
}

void DataOutTransfer::abandon() {
    fate_ = DataOutcome::abandoned;
    if (!wanted_) wanted_ = 0;
    if (segment_of_ != nullptr) segment_of_ = nullptr;
    unsolicited_.open = false;
    requests_.clear();
    holes_.clear();
}

void DataOutTransfer::spoil(DataOutcome why) {
    if (fate_ == DataOutcome::complete) fate_ = why;
}

/// A part of the data is not what it should be, or did not come at all.
void DataOutTransfer::lose(std::uint32_t offset, std::uint32_t length) {
    if (length == 0) return;
    if (terms_->error_recovery_level == 0 || holes_.full()) return spoil(DataOutcome::damaged);
    holes_.push_back({offset, length});
}

DataOutTransfer::Sequence* DataOutTransfer::find(wire::TargetTransferTag tag) {
    if (tag == wire::TargetTransferTag::none) return unsolicited_.open ? &unsolicited_ : nullptr;
    for (auto& sequence : requests_)
        if (sequence.open && sequence.tag == (static_cast<std::uint32_t>(tag) & 0xffff))
            return &sequence;
    return nullptr;
}

/// Whether the PDU is the next of its sequence, or one that recovery can use.
bool DataOutTransfer::check(Sequence& sequence, const wire::DataOutPdu& pdu) {
    const auto end = std::uint64_t{pdu.buffer_offset} + pdu.data_length;
    if (end > sequence.end) {
        spoil(&sequence == &unsolicited_ ? DataOutcome::unexpected_unsolicited
                                         : DataOutcome::wrong_amount);
        return false;
    }
    if (pdu.data_number == sequence.number && pdu.buffer_offset == sequence.at) return true;
    // PDUs before this one are missing. With recovery they can be had again, if it is no jump back.
    const bool forward = pdu.data_number > sequence.number && pdu.buffer_offset >= sequence.at;
    if (terms_->error_recovery_level > 0 && forward) {
        lose(sequence.at, pdu.buffer_offset - sequence.at);
        return true;
    }
    spoil(DataOutcome::damaged);
    return false;
}

DataOutTransfer::Verdict DataOutTransfer::take(const wire::DataOutPdu& pdu) {
    Sequence* sequence = find(pdu.transfer_tag);
    if (sequence == nullptr || segment_) return Verdict::stranger;
    segment_kept_ = check(*sequence, pdu);
    if (segment_kept_) {
        sequence->number = pdu.data_number + 1;
        sequence->at = pdu.buffer_offset + pdu.data_length;
    }
    segment_ = true;
    segment_of_ = sequence;
    segment_place_ = {pdu.buffer_offset, pdu.data_length};
    segment_ends_ = pdu.final;
    const bool useful = segment_kept_ && fate_ == DataOutcome::complete;
    return useful ? Verdict::take : Verdict::drop;
}

void DataOutTransfer::came(bool digest_good) {
    WEFT_CHECK(segment_);
    segment_ = false;
    if (segment_kept_ && !digest_good) lose(segment_place_.offset, segment_place_.length);
    Sequence* sequence = std::exchange(segment_of_, nullptr);
    if (sequence == nullptr || !segment_ends_) return;
    sequence->open = false;
    if (sequence == &unsolicited_) {
        // Less than the first burst is against the rules and does no harm: the rest is asked for.
        asked_ = std::max(asked_, sequence->at);
    } else if (sequence->at < sequence->end) {
        if (terms_->error_recovery_level > 0)
            lose(sequence->at, sequence->end - sequence->at);
        else
            spoil(DataOutcome::wrong_amount);
    }
}

std::size_t DataOutTransfer::open_requests() const {
    return static_cast<std::size_t>(
        std::count_if(requests_.begin(), requests_.end(), [](auto& each) { return each.open; }));
}

std::optional<DataOutTransfer::Request> DataOutTransfer::next_request() {
    if (!wanted_ || fate_ != DataOutcome::complete) return std::nullopt;
    if (unsolicited_.open || segment_of_ == &unsolicited_) return std::nullopt;
    if (segment_ && segment_of_ == nullptr) return std::nullopt;
    const auto most = std::min<std::size_t>(terms_->outstanding_requests_max, requests_.capacity());
    if (open_requests() >= most) return std::nullopt;
    Hole part{};
    while (!holes_.empty() && part.length == 0) {
        part = holes_[holes_.size() - 1];
        holes_.pop_back();
        if (part.offset >= *wanted_) part = {};
    }
    if (part.length == 0) {
        if (asked_ >= *wanted_) return std::nullopt;
        part = {asked_, std::min(terms_->burst_max, *wanted_ - asked_)};
        asked_ += part.length;
    }
    Sequence* free = nullptr;
    for (auto& each : requests_)
        if (!each.open && &each != segment_of_) free = &each;
    if (free == nullptr) {
        requests_.push_back({});
        free = &requests_[requests_.size() - 1];
    }
    *free = {.open = true,
             .tag = next_tag_++,
             .at = part.offset,
             .end = part.offset + part.length,
             .begin = part.offset,
             .request_number = next_number_++};
    return Request{free->tag, free->request_number, part.offset, part.length};
}

std::optional<DataOutTransfer::Request> DataOutTransfer::repeat_request(
    std::uint32_t number) const {
    for (const auto& each : requests_)
        if (each.open && each.request_number == number && each.at == each.begin)
            return Request{each.tag, number, each.begin, each.end - each.begin};
    return std::nullopt;
}

std::optional<DataOutcome> DataOutTransfer::outcome() const {
    if (!wanted_ || segment_ || unsolicited_.open || open_requests() > 0) return std::nullopt;
    if (fate_ == DataOutcome::complete && (asked_ < *wanted_ || !holes_.empty()))
        return std::nullopt;
    return fate_;
}

}  // namespace weft::iscsi
