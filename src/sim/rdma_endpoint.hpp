// SPDX-License-Identifier: Apache-2.0
// One end of a connected pair of queue pairs, with a ledger of all that was posted there: which
// completions may come, in which order, and what they must mean.
//
// The ledger knows nothing of how the engine works. It knows what was asked for, that the peer
// carries it out in that order, and when its effects must be seen: a receive completes after all
// that was sent before it is in place; a read brings what was there; what fails has an excuse.
#pragma once

#include <algorithm>
#include <array>
#include <deque>

#include "sim/rdma_work.hpp"

namespace weft::sim {

class Endpoint;

/// What both ends know of each other.
struct Pair {
    unsigned number = 0;
    std::uint8_t generation = 0;  ///< of connections
    bool excused = false;         ///< something was done for which work may fail
    bool failed = false;          ///< some work has
    std::unique_ptr<Endpoint> ends[2];
    /// What failed work was about there, or a queue pair that was destroyed with work under way:
    /// may be lent to the network until both ends have left it.
    std::vector<std::shared_ptr<void>> frozen;
    /// Memory that answers were sent from: may be lent for a little longer.
    std::deque<std::pair<Instant, std::shared_ptr<void>>> lingering;
};

class Endpoint final : public verbs::ConnectionEvents {
public:
    Endpoint(Station& station, Pair& pair, unsigned side, const RdmaHabits& habits);

    Station& station;
    const RdmaHabits& habits;
    std::unique_ptr<verbs::QueuePair> queue_pair;
    std::unique_ptr<verbs::Connection> connection;
    bool is_over = true;       ///< there is no connection, or it has ended
    unsigned queue_pairs = 0;  ///< that were ever made
    WorkTags tags;             ///< for the peer to use

    Endpoint& peer() { return *pair_.ends[1 - side_]; }
    bool is_running() const;
    bool speaks_extensions() const { return connection && connection->facts().extended; }
    void make_queue_pair();
    void destroy_queue_pair();

    /// Puts it in the ledger, if the queue pair takes it.
    bool post(Draft& draft);
    void post_receive(bool bad);
    /// Whether something of the peer's waits for a receive, or will.
    bool owes_receive();
    void completed(const verbs::Completion& completion);
    void happened(verbs::AsyncEvent::Kind kind);
    void excuse() { pair_.excused = true; }

    /// Both ends have left: all that was posted must have completed.
    void close_ledger();
    /// And the same again with another connection.
    void begin_anew();
    bool has_unfinished() const {
        return std::any_of(unfinished_.begin(), unfinished_.end(),
                           [](auto& work) { return work->signalled; });
    }

    // For the next work.
    std::weak_ptr<Target> last_target;
    std::weak_ptr<Work> last_read;

    void established() override {}
    void rejected() override { left(); }
    void failed(Error) override { left(); }
    void disconnected() override { left(); }

private:
    void complain(const std::string& what);
    void left();

    void send_completed(const verbs::Completion& completion);
    /// What these reads bring may be what is written behind them.
    void overtake(const std::vector<std::weak_ptr<Work>>& reads, const Bytes& changed);
    void end_successful(Work& work);
    /// The peer has answered, and its network may have what it answered with for a little longer.
    void let_linger(Work& work);
    void end_failed(Work& work, verbs::Status status);
    void check_excuse(const Work& work, verbs::Status status);
    void receive_completed(const verbs::Completion& completion);
    std::optional<PostedReceive> find_posted(std::uint64_t id);
    void end_received(PostedReceive& receive, const verbs::Completion& completion);
    void end_unreceived(PostedReceive& receive, const verbs::Completion& completion);
    void settle_unreceived(PostedReceive& receive);
    /// The first of what we sent that takes a receive and has not, as far as is known.
    Work* next_to_be_received();
    /// All before this in what we sent has reached the peer.
    void carried_out_before(const Work& work);
    void carry_out(Work& work);

    Pair& pair_;
    unsigned side_;
    std::shared_ptr<verbs::CompletionQueue> send_completions_, receive_completions_;

    std::uint64_t last_id_ = 0;
    std::vector<std::shared_ptr<Work>> sent_;       ///< all of this generation, in order
    std::deque<std::shared_ptr<Work>> unfinished_;  ///< no completion seen
    std::deque<PostedReceive> posted_;              ///< to our own queue
    std::size_t received_ = 0;          ///< what we sent before this has met its receive
    std::size_t carried_out_ = 0;       ///< what we sent before this is known to be carried out
    std::uint64_t last_shared_ = 0;     ///< the id of the last shared receive we took
    unsigned failures_ = 0;             ///< other than flushed
    bool refused_ = false;              ///< one of them by the peer
    std::array<unsigned, 6> events_{};  ///< of each kind
};

}  // namespace weft::sim
