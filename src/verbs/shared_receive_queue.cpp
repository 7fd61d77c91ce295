// SPDX-License-Identifier: Apache-2.0
#include "verbs/shared_receive_queue.hpp"

#include <algorithm>

namespace weft::verbs {

SharedReceiveQueueObject::SharedReceiveQueueObject(std::shared_ptr<DeviceCore> core,
                                                   std::size_t capacity, std::size_t pieces_max)
    : core_(std::move(core)), queue_(capacity, pieces_max), capacity_(capacity) {}

SharedReceiveQueueObject::~SharedReceiveQueueObject() {
    core_->forget_events_about(static_cast<const SharedReceiveQueue*>(this));
}

Result<void> SharedReceiveQueueObject::post(const ReceiveRequest& request) {
    if (auto posted = queue_.post(request); !posted) return posted;
    if (waiters_.empty()) return {};
    auto* waiter = waiters_.front();
    waiters_.erase(waiters_.begin());
    waiter->receive_posted();
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
        bool waits = std::find(waiters_.begin(), waiters_.end(), &waiter) != waiters_.end();
        if (!waits) waiters_.push_back(&waiter);
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

void SharedReceiveQueueObject::forget(ReceiveWaiter& waiter) {
    waiters_.erase(std::remove(waiters_.begin(), waiters_.end(), &waiter), waiters_.end());
}

}  // namespace weft::verbs
