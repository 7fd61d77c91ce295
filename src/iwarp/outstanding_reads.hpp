// SPDX-License-Identifier: Apache-2.0
// The reads and atomics we have asked for and whose answers have not all come: answers come in the
// order of the requests, so this is a queue. It never holds more than was agreed with the peer.
#pragma once

#include "base/ring.hpp"
#include "weft/registered_memory.hpp"

namespace weft::iwarp {

struct OutstandingRead {
    enum class Kind : std::uint8_t {
        read,
        atomic,
        ready_message,  ///< asked by the connection itself, of nothing: RFC 6581
    } kind{};
    SteeringTag sink_tag{};
    std::uint64_t sink_offset = 0;
    std::uint32_t size = 0;
    std::uint32_t received = 0;
    std::uint32_t request_identifier = 0;  ///< an atomic's
};

class OutstandingReads {
public:
    explicit OutstandingReads(std::size_t depth) : reads_(depth == 0 ? 1 : depth), depth_(depth) {}

    bool empty() const { return reads_.empty(); }
    bool full() const { return reads_.size() >= depth_; }
    void push(const OutstandingRead& read) { reads_.push_back(read); }
    OutstandingRead& oldest() { return reads_.front(); }
    void pop() { reads_.pop_front(); }

private:
    Ring<OutstandingRead> reads_;
    std::size_t depth_;
};

}  // namespace weft::iwarp
