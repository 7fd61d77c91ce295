// SPDX-License-Identifier: Apache-2.0
// A line that all connections of a machine share, one way: so many bytes a second, and a queue of
// so many before it. What finds the queue full is lost, as on any switch, and its sender's TCP
// sends it again after a while: what came behind it on the same connection waits for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/random.hpp"
#include "weft/instant.hpp"

namespace weft::sim {

struct LineOptions {
    std::uint64_t bytes_per_second = 0;    ///< 0: no limit
    std::size_t queue_bytes = 256 * 1024;  ///< waiting for a line with a limit
    double loss_percent = 0;               ///< of what is sent, whatever the queue
    Duration first_timeout = std::chrono::milliseconds(200);  ///< TCP's, before it sends again
};

class Line {
public:
    struct Passed {
        Instant when;
        bool again = false;  ///< it was lost, once at least
    };

    /// Of what is sent from now on.
    void set_options(const LineOptions& options) { options_ = options; }
    Passed pass(Instant ready, std::size_t bytes, Random& random);

private:
    bool is_full(Instant at, std::size_t bytes) const;

    LineOptions options_;
    Instant free_at_;  ///< when all it was given has left
};

}  // namespace weft::sim
