// SPDX-License-Identifier: Apache-2.0
// Holds every request for a while before it goes down: a slow disk, or a distant one.
//
// All wait equally long, so they go down in the order they came and one timer is enough.
#pragma once

#include <memory>

#include "base/ring.hpp"
#include "block/filter.hpp"
#include "block/limits.hpp"
#include "block/request_queue.hpp"
#include "weft/world.hpp"

namespace weft::block {

class DelayFilter final : public Filter {
public:
    /// A `delay` of zero or less still goes through the world's loop.
    DelayFilter(BlockDevice& below, World& world, Duration delay);
    ~DelayFilter() override;

    void submit(BlockRequest& request) override;

private:
    struct Held {
        BlockRequest* request = nullptr;
        Instant due;
    };
    void hold(BlockRequest& request);
    void pass_on();

    World& world_;
    Duration delay_;
    Ring<Held> held_{delay_places};
    RequestQueue waiting_;  ///< for a place among the held
    std::unique_ptr<Timer> timer_;
};

}  // namespace weft::block
