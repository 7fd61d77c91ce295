// SPDX-License-Identifier: Apache-2.0
#include "iscsi/target_text.hpp"

#include <algorithm>
#include <utility>

namespace weft::iscsi {

TextExchange::TextExchange(const Wishes& wishes, const Terms& terms, SendTargets send_targets)
    : wishes_(wishes), terms_(terms), send_targets_(std::move(send_targets)) {}

void TextExchange::reset() {
    incoming_.clear();
    outgoing_.clear();
    running_ = false;
}

Result<TextExchange::Answer> TextExchange::take(const wire::TextRequestPdu& request,
                                                ConstBuffer data, std::size_t segment_max) {
    const bool goes_on = request.transfer_tag != wire::TargetTransferTag::none;
    if (!goes_on) {
        reset();
    } else if (!running_ || request.transfer_tag != tag_ || request.task_tag != task_tag_) {
        reset();
        return Error{.code = Code::malformed};
    }
    if (request.continues && request.final) {
        reset();
        return Error{.code = Code::malformed};
    }
    if (auto added = incoming_.add(data); !added) {
        reset();
        return added.error();
    }
    if (!request.continues && outgoing_.empty()) {
        auto read = read_pairs();
        incoming_.clear();
        if (!read) {
            reset();
            return read.error();
        }
    }
    Answer answer;
    answer.data = request.continues ? ConstBuffer{} : outgoing_.take(segment_max);
    const bool done = request.final && outgoing_.empty();
    running_ = !done;
    task_tag_ = request.task_tag;
    tag_ = done ? wire::TargetTransferTag::none
                : static_cast<wire::TargetTransferTag>(next_tag_++ & 0x7fffffff);
    answer.pdu = {.final = done,
                  .continues = !outgoing_.empty(),
                  .data_length = static_cast<std::uint32_t>(answer.data.size()),
                  .logical_unit = request.logical_unit,
                  .task_tag = request.task_tag,
                  .transfer_tag = tag_};
    return answer;
}

Result<void> TextExchange::read_pairs() {
    wire::TextPairs pairs(incoming_.text());
    Negotiation negotiation(Role::target, Occasion::full_feature, wishes_, terms_);
    bool told_targets = false;
    for (;;) {
        WEFT_TRY(auto pair, pairs.next());
        if (!pair) break;
        if (pair->key == "SendTargets") {
            // Its answer may be ten thousand times as long: once, like any other key.
            if (std::exchange(told_targets, true)) return Error{.code = Code::malformed};
            if (!send_targets_(pair->value, outgoing_)) outgoing_.add("SendTargets", "Reject");
        } else if (auto taken = negotiation.take(*pair, outgoing_); !taken) {
            return taken.error();
        }
    }
    if (auto settled = negotiation.settle(); !settled) return settled.error();
    terms_ = negotiation.terms();
    return {};
}

}  // namespace weft::iscsi
