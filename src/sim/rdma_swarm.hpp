// SPDX-License-Identifier: Apache-2.0
// A whole RDMA run from one seed: two machines, pairs of queue pairs between them, random work on
// both sides, and what goes wrong; with all that must hold about it checked.
#pragma once

#include <string>
#include <vector>

#include "sim/rdma_endpoint.hpp"

namespace weft::sim {

/// So much memory each machine of a swarm is given.
inline constexpr std::size_t swarm_memory_size = 2'500'000;

class RdmaSwarm {
public:
    /// The memory is the caller's, so that two runs can have it at the same addresses: these are
    /// seen on the wire, and so in the trace.
    RdmaSwarm(std::uint64_t seed, Buffer one_memory, Buffer other_memory);
    ~RdmaSwarm();

    void run();

    /// What was found wrong.
    const std::vector<std::string>& complaints() const { return complaints_.all(); }
    std::uint64_t trace_hash() const { return world_.trace_hash(); }
    World& world() { return world_; }

    /// What happened, for a test to see that much did.
    struct Tally {
        std::uint64_t succeeded = 0, failed = 0, received = 0, connections = 0;
    };
    const Tally& tally() const { return tally_; }

private:
    void listen();
    void requested(std::unique_ptr<verbs::ConnectionRequest> request);
    void connect(Pair& pair);
    void step();
    void act(Pair& pair, Endpoint& end);
    void fault_in_a_link();
    void corrupt(Pair& pair, Endpoint& end);
    void wait_long();
    void end_something(Pair& pair, Endpoint& end);
    void finish_what_is_over();
    void finish_what_can_be();
    void end_all();
    void drop_all();
    void excuse_all();
    Endpoint* find(Station& station, std::uint32_t queue_pair);
    void completed(Station& station, const verbs::Completion& completion);
    void happened(Station& station, const verbs::AsyncEvent& event);
    void settle(const char* when);

    Complaints complaints_;
    World world_;
    RdmaHabits habits_;
    Tally tally_;
    Station stations_[2];
    std::vector<std::unique_ptr<Pair>> pairs_;
    std::unique_ptr<Listener> listener_;
    std::vector<std::unique_ptr<verbs::ConnectionRequest>> unanswered_;
    bool is_winding_up_ = false;
};

}  // namespace weft::sim
