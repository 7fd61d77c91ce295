// SPDX-License-Identifier: Apache-2.0
#include "sim/line.hpp"

#include <algorithm>

namespace weft::sim {

namespace {

/// TCP gives up much later. By then any queue is empty once.
constexpr unsigned tries_max = 6;

Duration takes(std::size_t bytes, std::uint64_t bytes_per_second) {
    return Duration(bytes * 1'000'000'000 / bytes_per_second);
}

}  // namespace

bool Line::is_full(Instant at, std::size_t bytes) const {
    if (options_.bytes_per_second == 0 || free_at_ <= at) return false;
    const auto waiting = free_at_ - at;
    return waiting + takes(bytes, options_.bytes_per_second) >
           takes(options_.queue_bytes, options_.bytes_per_second);
}

Line::Passed Line::pass(Instant ready, std::size_t bytes, Random& random) {
    Passed passed{.when = ready};
    auto timeout = options_.first_timeout;
    for (unsigned tries = 1; tries < tries_max; ++tries, timeout *= 2) {
        const bool lost = options_.loss_percent > 0 && random.chance(options_.loss_percent);
        if (!lost && !is_full(passed.when, bytes)) break;
        passed.again = true;
        passed.when = passed.when + timeout;
    }
    if (options_.bytes_per_second == 0) return passed;
    // What is sent again finds the line as it is then, and does not keep it until then.
    if (passed.again && passed.when > free_at_) return passed;
    free_at_ = std::max(free_at_, passed.when) + takes(bytes, options_.bytes_per_second);
    passed.when = free_at_;
    return passed;
}

}  // namespace weft::sim
