// SPDX-License-Identifier: Apache-2.0
#include "sim/rdma_habits.hpp"

#include <algorithm>
#include <iterator>

namespace weft::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

template <typename Value, std::size_t count>
Value one_of(Random& random, const Value (&values)[count]) {
    return values[random.below(count)];
}

LinkOptions draw_links(Random& random) {
    LinkOptions links;
    links.shortest_delay = microseconds(random.between(1, 50));
    links.longest_delay = links.shortest_delay + microseconds(random.between(0, 500));
    constexpr std::size_t windows[] = {512, 4096, 65536, 65536, 262'144};
    links.window_bytes = one_of(random, windows);
    constexpr std::size_t segments[] = {0, 64, 536, 1220, 1460, 8948, 65483};
    links.segment_bytes = one_of(random, segments);
    if (random.chance(5)) links.cutting = Cutting::single_bytes;
    if (random.chance(15)) links.cutting = Cutting::whole;
    constexpr unsigned kept[] = {0, 20, 60};
    links.kept_lent_percent = one_of(random, kept);
    return links;
}

RdmaHabits::Machine draw_machine(Random& random) {
    RdmaHabits::Machine machine;
    auto& connecting = machine.connecting;
    connecting.checksums = random.chance(60);
    connecting.markers = random.chance(20);
    connecting.peer_to_peer = random.chance(60);
    connecting.plain_startup = random.chance(20);
    connecting.place_before_check = random.chance(30);
    connecting.only_standard = random.chance(30);
    connecting.inbound_reads = static_cast<std::uint16_t>(random.between(1, 8));
    connecting.outbound_reads = static_cast<std::uint16_t>(random.between(1, 8));
    auto& queues = machine.queues;
    constexpr std::uint32_t depths[] = {1, 2, 5, 16, 64};
    queues.sends = one_of(random, depths);
    queues.receives = one_of(random, depths);
    queues.pieces = static_cast<std::uint32_t>(random.between(1, 16));
    constexpr std::uint32_t inlines[] = {0, 8, 64, 300, 1024};
    queues.inline_bytes = one_of(random, inlines);
    machine.shares_receives = random.chance(35);
    machine.one_completion_queue = random.chance(50);
    machine.posts_receives_late = random.chance(40);
    machine.polls_when_told = random.chance(50);
    machine.regions = static_cast<unsigned>(random.between(4, 10));
    machine.pieces_per_region_max = random.chance(50) ? 1 : 20;
    return machine;
}

}  // namespace

RdmaHabits::RdmaHabits(Random& random) {
    pairs = static_cast<unsigned>(random.between(1, pairs_max));
    steps = static_cast<unsigned>(random.between(20, 160));
    links = draw_links(random);
    constexpr std::size_t sizes[] = {100, 3000, 20'000, 100'000, 300'000};
    message_max = one_of(random, sizes);
    if (links.cutting == Cutting::single_bytes || links.window_bytes < 4096)
        message_max = std::min<std::size_t>(message_max, 3000);
    constexpr std::size_t receives[] = {500, 5000, 20'000};
    receive_size = std::min(one_of(random, receives), message_max);
    for (auto& machine : machines) machine = draw_machine(random);
    // Where numbers of reads are not agreed on the applications must have done so.
    if (machines[0].connecting.plain_startup)
        for (auto& machine : machines)
            machine.connecting.inbound_reads = machine.connecting.outbound_reads = 4;

    if (random.chance(60)) {
        if (random.chance(50)) link_faults = 3;
        if (random.chance(30)) corruption = 3;
        if (random.chance(20)) long_waits = 1;
        if (random.chance(50)) bad_work = 4;
        if (random.chance(50)) ends = 2;
        if (random.chance(30)) revocations = 3;
        short_receives = random.chance(15);
        overflows = random.chance(8);
    }
    for (auto& machine : machines) machine.completions = overflows ? random.between(1, 20) : 4096;
}

}  // namespace weft::sim
