// SPDX-License-Identifier: Apache-2.0
// What all objects of a device share. Each keeps it alive, so an application may drop its handles
// in any order.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/ring.hpp"
#include "iwarp/fpdu_buffers.hpp"
#include "iwarp/limits.hpp"
#include "iwarp/memory_table.hpp"
#include "verbs/announcer.hpp"
#include "verbs/limits.hpp"
#include "verbs/waiting_list.hpp"
#include "weft/rdma.hpp"

namespace weft::verbs {

/// See DeviceCore::let_depart().
class Departing {
public:
    virtual ~Departing() = default;
};

/// Work that cannot go on before lent memory comes back.
class MemoryWaiter : public Waiting {
public:
    virtual void memory_released() = 0;

protected:
    ~MemoryWaiter() = default;
};

class DeviceCore final : private Announced, public std::enable_shared_from_this<DeviceCore> {
public:
    DeviceCore(World& the_world, DeviceOptions options)
        : world(the_world),
          announcer(std::make_shared<Announcer>(the_world)),
          memory(std::min<std::size_t>(options.regions_max, limits::regions), the_world.random()),
          buffers(iwarp::limits::fpdu_buffer_bytes, iwarp::limits::fpdu_buffer_bytes_kept),
          on_event_(std::move(options.on_event)),
          events_(limits::events_waiting) {
        memory.on_last_release([this](SteeringTag tag) { memory_released(tag); });
    }

    /// The application hears of it from the world's loop. Of too many at once the last are lost.
    void raise(const AsyncEvent& event) {
        if (!on_event_ || events_.full()) return;
        events_.push_back(event);
        announcer->add(*this);
    }
    /// An object is going away: nobody shall be told of it any more.
    void forget_events_about(const void* object) {
        for (std::size_t i = 0; i < events_.size(); ++i) {
            auto& event = events_[i];
            if (event.receives == object) event.receives = nullptr;
            if (event.completions == object) event.completions = nullptr;
        }
    }

    /// The tag opens nothing from now on; `done` is called when no byte of its memory is lent.
    Result<void> remove_memory(SteeringTag tag, std::function<void()> done) {
        if (auto removed = memory.remove(tag); !removed) return removed;
        if (!done) return {};
        if (!memory.is_held(tag)) {
            world.defer(std::move(done));
        } else {
            removed_.push_back({memory.tag_now(tag), std::move(done)});
        }
        return {};
    }

    /// Connections nobody owns any more that have a last word to send. They end by themselves, or
    /// with the device; where there are too many, without the word.
    void let_depart(std::unique_ptr<Departing> one) {
        if (departing_.size() < limits::rejections_waiting && !device_is_gone_)
            departing_.push_back(std::move(one));
    }
    void has_departed(Departing& one) {
        auto found = std::find_if(departing_.begin(), departing_.end(),
                                  [&](auto& each) { return each.get() == &one; });
        if (found == departing_.end()) return;
        auto gone = std::move(*found);
        departing_.erase(found);
    }
    void device_is_gone() {
        device_is_gone_ = true;
        departing_.clear();
    }

    World& world;
    std::shared_ptr<Announcer> announcer;
    iwarp::MemoryTable memory;
    iwarp::FpduBuffers buffers;
    WaitingList<MemoryWaiter> memory_waiters;
    std::uint32_t next_domain = 1;
    std::uint32_t next_queue_pair = 1;

private:
    void announce() override {
        auto self = shared_from_this();  // the application may destroy all that held this
        for (auto count = events_.size(); count > 0; --count) {
            auto event = events_.front();
            events_.pop_front();
            on_event_(event);
        }
    }

    void memory_released(SteeringTag tag) {
        WaitingList<MemoryWaiter> turn;
        turn.take_all(memory_waiters);
        while (!turn.empty()) turn.pop_front().memory_released();
        auto found = std::find_if(removed_.begin(), removed_.end(),
                                  [&](auto& each) { return each.tag == tag; });
        if (found == removed_.end()) return;
        world.defer(std::move(found->done));
        removed_.erase(found);
    }

    struct Removed {
        SteeringTag tag;
        std::function<void()> done;
    };

    std::function<void(const AsyncEvent&)> on_event_;
    Ring<AsyncEvent> events_;
    std::vector<Removed> removed_;  ///< memory that is still lent
    std::vector<std::unique_ptr<Departing>> departing_;
    bool device_is_gone_ = false;
};

}  // namespace weft::verbs
