// SPDX-License-Identifier: Apache-2.0
// The time of a simulated volume: a world of machines on a network, and beside it what is modelled
// without one (commands to boxes, disks, the store), each as an event after a latency that is
// drawn. Latencies differ by a factor of a thousand, so that what is asked for at one moment ends
// in any order.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "sim/random.hpp"
#include "sim/world.hpp"

namespace weft::sim {

class RaidAgenda {
public:
    explicit RaidAgenda(std::uint64_t seed) : random(seed), world(~seed * 17) {}

    Instant now() const { return world.now(); }
    /// `slowness`: so many times later than it would be.
    void later(std::function<void()> what, unsigned slowness = 1) {
        after(latency() * slowness, std::move(what));
    }
    void after(Duration delay, std::function<void()> what) {
        begun();
        world.clockwork().schedule.at(now() + delay, "work", 0,
                                      [this, what = std::move(what)] { ended(), what(); });
    }
    /// At once, or when a machine that stands still goes on. Never, if that loses its power.
    void on(Host& machine, std::function<void()> what) {
        machine.when_running(
            [what = std::move(what), waiting = std::make_shared<Waiting>(*this)] { what(); });
    }
    /// The same, of what nobody waits for: a fault, or the end of one.
    void at_last(Duration delay, std::function<void()> what) {
        world.clockwork().schedule.at(now() + delay, "fault", 0, std::move(what));
    }
    /// Something is under way elsewhere, that ends by itself: a transfer.
    void begun() { ++under_way_; }
    void ended() { --under_way_, ++ended_; }

    /// To the next moment at which something ends that is under way. False: nothing is.
    bool step() {
        const auto before = ended_;
        for (std::uint64_t i = 0; i < events_max && under_way_ > 0; ++i) {
            if (!event()) return false;
            if (ended_ != before) return true;
        }
        return false;
    }
    /// One event of the world, whatever it is.
    bool event() { return ++events_, world.step(); }
    /// To an instant, unless something ends before that is under way.
    void wait_until(Instant when) {
        bool is_due = false;
        const auto before = ended_;
        Appointment due(world.clockwork().schedule, "due", 0);
        due.set(when, [&] { is_due = true; });
        while (!is_due && ended_ == before && event()) continue;
    }
    bool is_empty() const { return under_way_ == 0; }
    /// Grows with everything that happens.
    std::uint64_t steps() const { return events_; }

private:
    std::uint64_t under_way_ = 0, ended_ = 0, events_ = 0;

public:
    Random random;
    World world;

private:
    static constexpr std::uint64_t events_max = 300'000;  ///< until something ends
    /// Under way as long as it is.
    struct Waiting {
        explicit Waiting(RaidAgenda& all) : agenda(all) { agenda.begun(); }
        ~Waiting() { agenda.ended(); }
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;
        RaidAgenda& agenda;
    };

    Duration latency() {
        const auto scale = std::chrono::microseconds(5) * (std::uint64_t{1} << random.below(10));
        return random.between(scale, scale * 2);
    }
};

}  // namespace weft::sim
