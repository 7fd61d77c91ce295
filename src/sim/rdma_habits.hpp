// SPDX-License-Identifier: Apache-2.0
// How the machines, queues and links of one RDMA run are, and what goes wrong in it: all of it
// drawn from the run's seed.
#pragma once

#include "sim/link_options.hpp"
#include "sim/random.hpp"
#include "weft/rdma.hpp"

namespace weft::sim {

struct RdmaHabits {
    explicit RdmaHabits(Random& random);

    static constexpr unsigned pairs_max = 4;
    unsigned pairs;  ///< of queue pairs
    unsigned steps;  ///< of the run, in each of which something is done
    std::size_t message_max;
    std::size_t receive_size;  ///< of every receive, and the most that is sent to one
    LinkOptions links;
    struct Machine {
        verbs::ConnectOptions connecting;
        verbs::QueuePairOptions queues;  ///< sizes only
        bool shares_receives = false;
        bool one_completion_queue = false;
        bool posts_receives_late = false;
        bool polls_when_told = false;
        std::size_t completions = 0;  ///< a completion queue's capacity
        unsigned regions = 0;
        unsigned pieces_per_region_max = 1;
    } machines[2];

    // What goes wrong, in percent of the steps.
    double link_faults = 0;
    double corruption = 0;
    double long_waits = 0;
    double bad_work = 0;
    double ends = 0;         ///< an application disconnects, destroys or fails something
    double revocations = 0;  ///< an application takes back memory that is in use
    bool overflows = false;  ///< completion queues are too small
    bool short_receives = false;
};

}  // namespace weft::sim
