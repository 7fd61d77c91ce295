// SPDX-License-Identifier: Apache-2.0
// The tags an endpoint opens and closes by work of its own, for its peer to use.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "sim/rdma_station.hpp"

namespace weft::sim {

/// An endpoint's windows, and tags for fast registration.
class WorkTags {
public:
    static constexpr std::size_t fast_memory = 6000;  ///< that each fast tag may be given part of

    explicit WorkTags(Station& station);
    /// All new: nobody knows what has become of the old ones.
    void renew();
    void drop();
    /// What the peer may use.
    std::vector<std::shared_ptr<Grant>> grants() const;

    struct Window {
        std::unique_ptr<verbs::MemoryWindow> window;
        verbs::WindowKind kind{};
        std::shared_ptr<Grant> grant;
    };
    struct FastTag {
        std::unique_ptr<verbs::MemoryRegion> region;
        Stretches memory;
        std::shared_ptr<Grant> grant;
    };
    std::list<Window> windows;
    std::list<FastTag> fast_tags;

private:
    Station& station_;
};

}  // namespace weft::sim
