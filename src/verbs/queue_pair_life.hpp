// SPDX-License-Identifier: Apache-2.0
// The life of a queue pair, as a table. Nothing outside this file decides what comes next.
//
// The table is data: the compiler proves things about it (below), and a reader can hold it beside
// the verbs specification. What it does not list is ignored: an end that comes twice ends nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "weft/verbs.hpp"

namespace weft::verbs {

enum class LifeEvent : std::uint8_t {
    connected,
    close_asked,      ///< by the application, or by its dropping the connection
    fault,            ///< found by us: a Terminate tells the peer
    peer_terminated,  ///< found by the peer, whose Terminate told us
    stream_ended,     ///< orderly: the peer has closed, or we have
    stream_lost,      ///< reset, or silent for too long
    reset,            ///< the application wants to use it again
};

/// What must now be done.
enum class Duty : std::uint8_t {
    nothing = 0,
    flush_work = 1 << 0,   ///< complete all posted work as flushed
    raise_event = 1 << 1,  ///< tell the application, asynchronously
};
constexpr Duty operator|(Duty a, Duty b) {
    return static_cast<Duty>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool includes(Duty duties, Duty one) {
    return (static_cast<std::uint8_t>(duties) & static_cast<std::uint8_t>(one)) != 0;
}

struct LifeStep {
    QueuePairState from;
    LifeEvent on;
    QueuePairState to;
    Duty then;
};

// clang-format off
inline constexpr auto queue_pair_steps = [] {
    using enum QueuePairState;
    using enum LifeEvent;
    using enum Duty;
    return std::to_array<LifeStep>({
        {idle,        connected,       running,     nothing},
        {idle,        fault,           failed,      flush_work},
        {idle,        close_asked,     failed,      flush_work},
        {running,     close_asked,     closing,     flush_work},
        {running,     fault,           terminating, flush_work | raise_event},
        {running,     peer_terminated, terminating, flush_work | raise_event},
        {running,     stream_ended,    failed,      flush_work},
        {running,     stream_lost,     failed,      flush_work | raise_event},
        {closing,     stream_ended,    failed,      nothing},
        {closing,     stream_lost,     failed,      nothing},
        {terminating, stream_ended,    failed,      nothing},
        {terminating, stream_lost,     failed,      nothing},
        {failed,      reset,           idle,        nothing},
    });
}();
// clang-format on

/// The step `on` causes in state `from`; none means that it changes nothing there.
constexpr std::optional<LifeStep> next_step(QueuePairState from, LifeEvent on) {
    for (const LifeStep& step : queue_pair_steps)
        if (step.from == from && step.on == on) return step;
    return std::nullopt;
}

consteval bool no_event_has_two_answers() {
    for (std::size_t i = 0; i < queue_pair_steps.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (queue_pair_steps[i].from == queue_pair_steps[j].from &&
                queue_pair_steps[i].on == queue_pair_steps[j].on)
                return false;
    return true;
}
consteval bool leads_back_to_idle(QueuePairState from) {
    std::array<bool, 5> seen{};
    seen[static_cast<std::size_t>(from)] = true;
    for (std::size_t round = 0; round < seen.size(); ++round)
        for (const LifeStep& step : queue_pair_steps)
            if (seen[static_cast<std::size_t>(step.from)])
                seen[static_cast<std::size_t>(step.to)] = true;
    return seen[static_cast<std::size_t>(QueuePairState::idle)];
}
/// Whoever stops running has its work flushed, or an application would wait for ever.
consteval bool leaving_flushes() {
    for (const LifeStep& step : queue_pair_steps) {
        bool took_work = step.from == QueuePairState::running || step.from == QueuePairState::idle;
        bool takes_work = step.to == QueuePairState::running;
        if (took_work && !takes_work && !includes(step.then, Duty::flush_work)) return false;
    }
    return true;
}
static_assert(no_event_has_two_answers());
static_assert(leads_back_to_idle(QueuePairState::running) &&
                  leads_back_to_idle(QueuePairState::closing) &&
                  leads_back_to_idle(QueuePairState::terminating),
              "no queue pair is lost for ever");
static_assert(leaving_flushes());

}  // namespace weft::verbs
