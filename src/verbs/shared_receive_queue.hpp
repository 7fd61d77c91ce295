// SPDX-License-Identifier: Apache-2.0
// Receives that many queue pairs draw from: a thousand connections need not each hold buffers for
// the burst that only a few of them will have. Below its low-water mark it raises an event, once,
// in time for the application to post more; a queue pair that finds it empty waits.
#pragma once

#include "verbs/device_core.hpp"
#include "verbs/receive_queue.hpp"
#include "verbs/waiting_list.hpp"

namespace weft::verbs {

/// A queue pair, as the shared queue sees it.
class ReceiveWaiter : public Waiting {
public:
    virtual void receive_posted() = 0;

protected:
    ~ReceiveWaiter() = default;
};

class SharedReceiveQueueObject final : public SharedReceiveQueue {
public:
    SharedReceiveQueueObject(std::shared_ptr<DeviceCore> core, std::size_t capacity,
                             std::size_t pieces_max);
    ~SharedReceiveQueueObject() override;

    Result<void> post(const ReceiveRequest& request) override;
    Result<void> set_low_water(std::size_t count) override;
    std::size_t posted() const override { return queue_.posted(); }

    /// The oldest; if there is none, the waiter is told when one is posted, unless it stops
    /// waiting before.
    ReceiveQueue::Slot* take(ReceiveWaiter& waiter);
    void give_back(ReceiveQueue::Slot& slot) { queue_.give_back(slot); }
    bool is_of(const DeviceCore& core) const { return core_.get() == &core; }

private:
    void watch_low_water();

    std::shared_ptr<DeviceCore> core_;
    ReceiveQueue queue_;
    std::size_t capacity_;
    std::size_t low_water_ = 0;
    WaitingList<ReceiveWaiter> waiters_;
};

}  // namespace weft::verbs
