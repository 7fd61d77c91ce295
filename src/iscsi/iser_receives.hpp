// SPDX-License-Identifier: Apache-2.0
// Receives and their memory: posted, filled by a Send, lent out for as long as somebody reads in
// them, posted again. Memory is registered in slabs, and more of it is added when they run low, up
// to a bound.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/intrusive_queue.hpp"
#include "weft/verbs.hpp"

namespace weft::iscsi::iser {

/// One of them, in the hands of whoever is told of it, until give_back().
struct Receive {
    std::uint64_t id = 0;
    Buffer memory;
    std::size_t size = 0;                      ///< octets of the message in it
    std::optional<SteeringTag> invalidated{};  ///< by that message
    Receive* next = nullptr;

    Buffer octets() const { return memory.first(size); }
};

class Receives {
public:
    using Post = std::function<Result<void>(const verbs::ReceiveRequest&)>;

    Receives(std::shared_ptr<verbs::ProtectionDomain> domain, std::size_t bytes_each,
             std::size_t count_max, Post post)
        : domain_(std::move(domain)),
          bytes_each_(bytes_each),
          count_max_(count_max),
          post_(std::move(post)) {}

    /// Posts so many more; fewer if that is the bound, and exhausted if there is none left.
    Result<void> add(std::size_t count);
    /// The one a completion is about.
    Receive& filled(const verbs::Completion& completion);
    /// Posts it again.
    void give_back(Receive& receive);

    std::size_t count() const { return receives_.size(); }
    bool is_full() const { return receives_.size() >= count_max_; }

private:
    struct Slab {
        std::unique_ptr<std::byte[]> memory;
        std::unique_ptr<verbs::MemoryRegion> region;
    };
    Result<void> post(const Receive& receive);

    std::shared_ptr<verbs::ProtectionDomain> domain_;
    std::size_t bytes_each_;
    std::size_t count_max_;
    Post post_;
    std::vector<Slab> slabs_;
    std::deque<Receive> receives_;   ///< by their ids; they do not move
    std::vector<SteeringTag> tags_;  ///< of each one's slab
};

}  // namespace weft::iscsi::iser
