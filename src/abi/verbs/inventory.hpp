// SPDX-License-Identifier: Apache-2.0
// What this process has made: found again when the engine speaks of it, and counted. Inside a Hold.
#pragma once

#include <array>
#include <cstddef>
#include <unordered_map>

#include "abi/verbs/objects.hpp"

namespace weft::abi {

class Inventory {
public:
    /// Of this process: a child of fork() begins with an empty one.
    static Inventory& get();

    std::array<std::size_t, 7> counts{};  ///< by Kind
    std::unordered_map<std::uint32_t, QueuePair*> queue_pairs;
    std::unordered_map<const verbs::CompletionQueue*, CompletionQueue*> completion_queues;
    std::unordered_map<const verbs::SharedReceiveQueue*, SharedReceiveQueue*> shared_receive_queues;
    std::unordered_map<RnicDevice*, Context*> shared_contexts;
};

}  // namespace weft::abi
