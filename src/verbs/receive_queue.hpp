// SPDX-License-Identifier: Apache-2.0
// Posted receives, first in first out. One that a message is being put into is taken: it keeps its
// place in memory until the message has ended, and its room is free again only then.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/intrusive_queue.hpp"
#include "iwarp/session_owner.hpp"
#include "weft/verbs.hpp"

namespace weft::verbs {

class ReceiveQueue {
public:
    ReceiveQueue(std::size_t capacity, std::size_t pieces_max);

    struct Slot {
        iwarp::PostedReceive receive;
        Slot* next = nullptr;
    };

    Result<void> post(const ReceiveRequest& request);
    /// The oldest; null if there is none.
    Slot* take();
    void give_back(Slot& slot) { slot.next = std::exchange(free_, &slot); }
    std::size_t posted() const { return posted_.size(); }

private:
    std::size_t pieces_max_;
    std::vector<LocalMemory> pieces_;  ///< so many for each slot
    std::vector<Slot> slots_;
    IntrusiveQueue<Slot> posted_;
    /// The last given back first: thousands of slots used in turn would not stay in the cache.
    Slot* free_ = nullptr;
};

}  // namespace weft::verbs
