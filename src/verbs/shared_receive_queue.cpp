// SPDX-License-Identifier: Apache-2.0
#include "verbs/shared_receive_queue.hpp"

namespace weft::verbs {

SharedReceiveQueueObject::SharedReceiveQueueObject(std::shared_ptr<DeviceCore> core,
                                                   std::size_t capacity, std::size_t pieces_max)
    : core_(std::move(core)), queue_(capacity, pieces_max), capacity_(capacity) {}

SharedReceiveQueueObject::~SharedReceiveQueueObject() {
    core_->forget_events_about(static_cast<const SharedReceiveQueue*>(this));
}

Result<void> SharedReceiveQueueObject::post(const ReceiveRequest& request) {
    if (auto posted = queue_.post(request); !posted) return posted;
    if (!waiters_.empty()) waiters_.pop_front().receive_posted();
    return {};
}

Result<void> SharedReceiveQueueObject::set_low_water(std::size_t count) {
    if (count > capacity_)
        return Error{.code = Code::out_of_range, .where = static_cast<std::uint32_t>(capacity_)};
    low_water_ = count;
    watch_low_water();
    return {};
}

ReceiveQueue::Slot* SharedReceiveQueueObject::take(ReceiveWaiter& waiter) {
    auto* slot = queue_.take();
    if (!slot) {
        waiters_.add(waiter);
        return nullptr;
    }
    watch_low_water();
    return slot;
}

void SharedReceiveQueueObject::watch_low_water() {
    if (queue_.posted() >= low_water_) return;
    low_water_ = 0;  // once
    core_->raise({.kind = AsyncEvent::Kind::receives_low, .receives = this});
}

}  // namespace weft::verbs
