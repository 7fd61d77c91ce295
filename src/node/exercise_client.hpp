// SPDX-License-Identifier: Apache-2.0
// What `weft rdma ping` and `weft rdma bench` are: round trips one after the other, then as many
// operations at a time as were asked for, and how long it all took.
//
// A Send or a Write has ended for the sender when TCP has taken it. So a round trip of a Send waits
// for its echo, that of a Write for a Read of one byte behind it, and the clock of the many stops
// when such a Read has come back: then all of them are in the peer's memory.
#pragma once

#include <functional>
#include <vector>

#include "node/rdma_end.hpp"
#include "wire/exercise.hpp"

namespace weft::node {

enum class ExerciseKind : std::uint8_t { send, write, read };

struct ExerciseOptions {
    ExerciseKind kind = ExerciseKind::send;
    std::uint32_t size = 64;
    std::uint32_t depth = 16;
    std::uint64_t round_trips = 1000;
    Duration pause = {};     ///< between round trips
    Duration many_for = {};  ///< how long to keep the depth busy; 0: not at all
    verbs::ConnectOptions connection{};
};

struct ExerciseResults {
    std::vector<Duration> round_trips;  ///< in the order they were made
    std::uint64_t operations = 0;       ///< of the many
    Duration elapsed = {};              ///< for them
    std::optional<std::string> fault;
};

class ExerciseClient final : public RdmaEnd {
public:
    using Ended = std::function<void(const ExerciseResults&)>;
    using Clock = std::function<Instant()>;

    /// `clock`: the time this very moment, finer than the world's, which stands still in a turn.
    static Result<std::unique_ptr<ExerciseClient>> connect(World& world, verbs::Device& device,
                                                           const Address& address,
                                                           const ExerciseOptions& options,
                                                           Clock clock, Ended ended);
    ExerciseClient(World& world, verbs::Device& device, const ExerciseOptions& options, Clock clock,
                   Ended ended);

    const ExerciseResults& results() const { return results_; }

private:
    enum class Stage : std::uint8_t { round_trips, many, confirming, over };

    Result<void> begin(const Address& address);
    void started() override;
    void completed(const verbs::Completion& completion) override;
    void ended(std::optional<Error> why, bool rejected) override;

    void begin_round_trip();
    void end_round_trip();
    void begin_many();
    void keep_busy();
    void confirm();
    void finish();
    void post(verbs::Operation operation, std::uint32_t bytes, bool solicited);
    void post_receive();
    void fail(std::string sentence);

    World& world_;
    const ExerciseOptions options_;
    Clock clock_;
    Ended ended_;
    std::unique_ptr<Timer> pause_;
    std::unique_ptr<Memory> memory_;  ///< the message, then room for an echo, then for one byte
    verbs::RemoteMemory remote_;
    Stage stage_ = Stage::round_trips;
    Instant began_;
    std::uint32_t under_way_ = 0;
    ExerciseResults results_;
};

}  // namespace weft::node
