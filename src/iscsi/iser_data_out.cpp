// SPDX-License-Identifier: Apache-2.0
#include "iscsi/iser_data_out.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::iscsi::iser {

void DataOut::begin(const TargetMoverTask& task, const Terms& terms, bool has_buffer) {
    *this = {};
    terms_ = terms;
    offered_ = task.out_length;
    has_buffer_ = has_buffer;
    unsolicited_at_ = task.immediate_length;
    unsolicited_open_ = task.expects_unsolicited;
    // More than the first burst is not sent unsolicited, and if any is, all of that.
    unsolicited_end_ =
        unsolicited_open_ ? std::min(terms.first_burst_max, offered_) : task.immediate_length;
    const bool unagreed = unsolicited_at_ > 0 && !terms.immediate_data;
    if (unagreed || unsolicited_at_ > offered_ || unsolicited_at_ > terms.first_burst_max)
        fate_ = DataOutcome::unexpected_unsolicited;
    part_at_ = unsolicited_end_;
}

void DataOut::want(std::uint32_t length) {
    WEFT_CHECK(!wanted_);
    wanted_ = std::min(length, offered_);
    if (*wanted_ > part_at_ && !has_buffer_ && fate_ == DataOutcome::complete)
        fate_ = DataOutcome::wrong_amount;
}

void DataOut::abandon() {
    fate_ = DataOutcome::abandoned;
    unsolicited_open_ = false;
}

bool DataOut::take(const wire::DataOutPdu& pdu) {
    if (!unsolicited_open_) return false;
    bool is_next = pdu.buffer_offset == unsolicited_at_ && pdu.data_number == data_number_ &&
                   pdu.data_length <= unsolicited_end_ - unsolicited_at_;
    if (is_next) {
        unsolicited_at_ += pdu.data_length;
        ++data_number_;
    } else if (fate_ == DataOutcome::complete) {
        fate_ = DataOutcome::wrong_amount;
    }
    if (pdu.final) {
        unsolicited_open_ = false;
        if (unsolicited_at_ != unsolicited_end_ && fate_ == DataOutcome::complete)
            fate_ = DataOutcome::wrong_amount;
    }
    return is_next && fate_ == DataOutcome::complete;
}

bool DataOut::has_part() const {
    return fate_ == DataOutcome::complete && part_at_ < wanted();
}

std::optional<DataOut::Part> DataOut::next_part(std::uint32_t length_max) {
    if (!has_part()) return std::nullopt;
    Part part{.offset = part_at_,
              .length = std::min({*wanted_ - part_at_, length_max, terms_.burst_max}),
              .in_buffer = terms_.solicited_only ? part_at_ - unsolicited_end_ : part_at_};
    part_at_ += part.length;
    ++parts_under_way_;
    return part;
}

std::optional<DataOutcome> DataOut::outcome() const {
    if (!wanted_ || unsolicited_open_ || parts_under_way_ > 0 || has_part()) return std::nullopt;
    return fate_;
}

}  // namespace weft::iscsi::iser
