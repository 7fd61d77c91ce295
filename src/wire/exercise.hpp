// SPDX-License-Identifier: Apache-2.0
// What `weft rdma ping` and `weft rdma bench` tell the server they exercise with, and what it
// answers, in the private data of the connection.
#pragma once

#include "base/wire_format.hpp"
#include "weft/registered_memory.hpp"

namespace weft::wire {

/// "I will send messages of up to this size, this many at a time."
struct ExerciseRequest {
    std::uint32_t message_size = 0;
    std::uint32_t depth = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x5765667445786572));  // "WeftExer"
        v("message size", h.message_size);
        v("depth", h.depth);
    }
    bool operator==(const ExerciseRequest&) const = default;
};
static_assert(wire_size<ExerciseRequest>() == 16);

/// "Here is memory of that size, to be read and written." In a rejection the size is the largest
/// that would be taken, and the rest is 0.
struct ExerciseAnswer {
    std::uint64_t address = 0;
    SteeringTag tag{};
    std::uint32_t size = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x5765667445786572));
        v("address", h.address);
        v("tag", h.tag);
        v("size", h.size);
    }
    bool operator==(const ExerciseAnswer&) const = default;
};
static_assert(wire_size<ExerciseAnswer>() == 24);

}  // namespace weft::wire
