// SPDX-License-Identifier: Apache-2.0
// What hosts of a simulated volume ask for: the inside of RaidSwarm.
#pragma once

#include <algorithm>

#include "sim/raid_swarm.hpp"

namespace weft::sim {

using raid::HostOperation;

struct RaidSwarm::Attempt final : raid::HostRequest {
    Attempt(RaidSwarm& all, Work& about, unsigned number)
        : swarm(all),
          work(about),
          host(number),
          epoch(all.cluster_.epoch()),
          asked_at(all.agenda_.now()) {}
    void completed(Result<void> outcome) override {
        if (std::exchange(is_over, true)) return swarm.complaints_.add("S10: answered twice");
        // It may be gone around before anybody says that a link is broken.
        swarm.detours_ = swarm.detours_ || story.relayed;
        const bool is_in_office = epoch == swarm.cluster_.epoch();
        if (outcome && is_in_office) swarm.cluster_.check_membership();
        if (is_in_office) news = swarm.cluster_.news_for(host);
        if (!swarm.options_.all_faults) return swarm.answered(work, *this, outcome);
        // It takes its time to the host, and may get lost with its controller.
        ++swarm.unheard_;
        swarm.agenda_.later([this, outcome] {
            --swarm.unheard_;
            auto& machine = swarm.cluster_.host(host).machine();
            swarm.agenda_.on(machine, [this, outcome] {
                const bool is_late = epoch != swarm.cluster_.epoch();
                if (!is_late || swarm.faults_.chance(50)) swarm.answered(work, *this, outcome);
            });
        });
    }
    RaidSwarm& swarm;
    Work& work;
    unsigned host;
    std::uint64_t epoch;
    Instant asked_at;
    std::vector<wire::HostNews> news;  ///< that came with its answer
    bool is_over = false;
};

struct RaidSwarm::Work {
    HostOperation operation{};
    raid::Range range{};
    unsigned host = 0;
    std::uint64_t command = 0, number = 0;
    bool durable = false, in_band = false;
    std::vector<std::byte> octets;
    SteeringTag tag{};
    std::uint64_t began = 0;
    Instant asked_at;
    Duration pause = std::chrono::milliseconds(10);  ///< before it is asked for again
    bool is_load = false;                            ///< another follows when it ends
    RaidLedger::WriteNumber write = 0;
    std::vector<std::unique_ptr<Attempt>> attempts;  ///< only the last one's answer counts
    const char* name() const {
        return operation == HostOperation::write  ? "write"
               : operation == HostOperation::read ? "read"
                                                  : "flush";
    }

    bool is_answered = false;  ///< and the network may still have some of its memory
    bool is_over = false;

    /// S11: when the request has ended the memory is the host's own again, and nobody else's.
    void use_otherwise() {
        std::ranges::fill(octets, other);
        is_used_otherwise = true;
    }
    bool was_touched() const {
        return is_used_otherwise &&
               std::ranges::any_of(octets, [](std::byte octet) { return octet != other; });
    }

private:
    static constexpr std::byte other{0xa5};
    bool is_used_otherwise = false;
};

template <class Condition>
bool RaidSwarm::run_until(Condition condition) {
    constexpr std::uint64_t plenty = 200'000;  // steps of the agenda
    for (std::uint64_t i = 0; i < plenty; ++i) {
        if (condition()) return true;
        if (!agenda_.step() && !cluster_.pass_time() && !agenda_.event()) return condition();
        if (!complaints_.all().empty()) return true;
    }
    return false;
}

}  // namespace weft::sim
