// SPDX-License-Identifier: Apache-2.0
#include "verbs/receive_queue.hpp"

#include <algorithm>

#include "verbs/local_pieces.hpp"

namespace weft::verbs {

ReceiveQueue::ReceiveQueue(std::size_t capacity, std::size_t pieces_max)
    : pieces_max_(pieces_max), pieces_(capacity * pieces_max), slots_(capacity) {
    for (auto& slot : slots_) give_back(slot);
}

Result<void> ReceiveQueue::post(const ReceiveRequest& request) {
    if (request.local.size() > pieces_max_)
        return Error{.code = Code::out_of_range, .where = static_cast<std::uint32_t>(pieces_max_)};
    if (auto good = check_total_size(request.local); !good) return good;
    if (!free_)
        return Error{.code = Code::exhausted, .where = static_cast<std::uint32_t>(slots_.size())};
    auto& slot = *std::exchange(free_, free_->next);
    auto* pieces = pieces_.data() + static_cast<std::size_t>(&slot - slots_.data()) * pieces_max_;
    std::copy(request.local.begin(), request.local.end(), pieces);
    slot.receive = {request.id, {pieces, request.local.size()}};
    posted_.push_back(slot);
    return {};
}

ReceiveQueue::Slot* ReceiveQueue::take() {
    return posted_.empty() ? nullptr : &posted_.pop_front();
}

}  // namespace weft::verbs
