// SPDX-License-Identifier: Apache-2.0
// What the controller still has to tell one session of a host: of which reads the late boxes are
// done, so that their tags may be closed. Each is told in every answer until the host says that it
// has heard: an answer may be lost where the session is not.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "wire/array_host.hpp"

namespace weft::node {

class HostReleases {
public:
    /// More than a host keeps tags; one that never says what it has heard must begin anew.
    static constexpr std::size_t waiting_max = 1024;

    /// False: there are too many.
    bool add(std::uint64_t command) {
        if (waiting_.size() >= waiting_max) return false;
        last_ = (last_ + 1) % wire::host_release_numbers;
        waiting_.push_back({.number = last_, .command = command});
        return true;
    }
    /// The host has heard all up to this number.
    void heard(std::uint32_t number) {
        if (waiting_.empty()) return;
        constexpr auto all = wire::host_release_numbers;
        const std::size_t count = (number + all - waiting_.front().number + 1) % all;
        // More than there are: it is an old number, of what was dropped from here long ago.
        if (count > waiting_.size()) return;
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
    }
    /// The next so many at most, in order.
    std::vector<wire::HostRelease> next(std::size_t most) const {
        const auto count = static_cast<std::ptrdiff_t>(std::min(most, waiting_.size()));
        return {waiting_.begin(), waiting_.begin() + count};
    }
    std::size_t waiting() const { return waiting_.size(); }

private:
    std::deque<wire::HostRelease> waiting_;  ///< numbered one after the other
    std::uint32_t last_ = 0;
};

}  // namespace weft::node
