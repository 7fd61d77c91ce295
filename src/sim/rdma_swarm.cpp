// SPDX-License-Identifier: Apache-2.0
#include "sim/rdma_swarm.hpp"

#include <algorithm>
#include <array>

namespace weft::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr std::uint64_t plenty = 20'000'000;  // events
const Address elm = Address::tcp("elm", 7174);

}  // namespace

RdmaSwarm::RdmaSwarm(std::uint64_t seed, Buffer one_memory, Buffer other_memory)
    : world_(seed),
      habits_(world_.chance()),
      stations_{{world_, "oak", habits_, habits_.machines[0], one_memory, complaints_},
                {world_, "elm", habits_, habits_.machines[1], other_memory, complaints_}} {
    world_.network().set_options(habits_.links);
    for (auto& station : stations_) {
        station.on_completion = [&](auto& completion) { completed(station, completion); };
        station.on_event = [&](auto& event) { happened(station, event); };
    }
    for (unsigned i = 0; i < habits_.pairs; ++i) {
        auto& pair = *pairs_.emplace_back(std::make_unique<Pair>());
        pair.number = i;
        for (unsigned side : {0u, 1u})
            pair.ends[side] = std::make_unique<Endpoint>(stations_[side], pair, side, habits_);
    }
    listen();
}

RdmaSwarm::~RdmaSwarm() = default;

void RdmaSwarm::listen() {
    auto listener = stations_[1].device->listen(elm, [this](auto request) {
        // At once, or when it comes to mind.
        if (is_winding_up_ || world_.chance().chance(70))
            requested(std::move(request));
        else
            unanswered_.push_back(std::move(request));
    });
    WEFT_CHECK(listener);
    listener_ = std::move(*listener);
}

void RdmaSwarm::connect(Pair& pair) {
    auto& end = *pair.ends[0];
    auto options = habits_.machines[0].connecting;
    ++pair.generation;
    std::array<std::byte, 2> who{static_cast<std::byte>(pair.number),
                                 static_cast<std::byte>(pair.generation)};
    options.private_data = who;
    auto connection = stations_[0].device->connect(elm, *end.queue_pair, options, end);
    WEFT_CHECK(connection);
    end.connection = std::move(*connection);
    end.is_over = false;
    ++tally_.connections;
}

void RdmaSwarm::requested(std::unique_ptr<verbs::ConnectionRequest> request) {
    auto who = request->private_data();
    if (who.size() != 2) return complaints_.add("private data were lost");
    auto& pair = *pairs_.at(std::to_integer<std::size_t>(who[0]));
    auto& end = *pair.ends[1];
    bool late = std::to_integer<std::uint8_t>(who[1]) != pair.generation;
    if (late || !end.queue_pair || !end.is_over) return;
    if (habits_.ends > 0 && world_.chance().chance(5)) {
        pair.excused = true;
        if (world_.chance().chance(50)) (void)request->reject({});
        return;
    }
    if (end.queue_pair->state() != verbs::QueuePairState::idle) return;
    auto connection = request->accept(*end.queue_pair, habits_.machines[1].connecting, end);
    if (!connection) return;
    end.connection = std::move(*connection);
    end.is_over = false;
}

Endpoint* RdmaSwarm::find(Station& station, std::uint32_t number) {
    for (auto& pair : pairs_)
        for (auto& end : pair->ends)
            if (&end->station == &station && end->queue_pair && end->queue_pair->number() == number)
                return end.get();
    return nullptr;
}

void RdmaSwarm::completed(Station& station, const verbs::Completion& completion) {
    auto* end = find(station, completion.queue_pair);
    if (!end) return complaints_.add("a completion of a queue pair that is gone");
    bool succeeded = completion.status == verbs::Status::success;
    bool sent = completion.what == verbs::Ended::sent;
    ++(!succeeded ? tally_.failed : sent ? tally_.succeeded : tally_.received);
    end->completed(completion);
    // Applications post what comes next from where they hear of the last.
    if (succeeded && !is_winding_up_ && end->is_running() && world_.chance().chance(20))
        post_random_work(*end);
}

void RdmaSwarm::happened(Station& station, const verbs::AsyncEvent& event) {
    if (auto* end = find(station, event.queue_pair)) end->happened(event.kind);
    if (event.kind != verbs::AsyncEvent::Kind::completions_overflowed) return;
    if (!habits_.overflows) complaints_.add(station.name + ": a large queue overflowed");
}

void RdmaSwarm::excuse_all() {
    for (auto& pair : pairs_) pair->excused = true;
}

void RdmaSwarm::run() {
    for (unsigned i = 0; i < habits_.steps; ++i) step();
    is_winding_up_ = true;
    finish_what_can_be();
    end_all();
    drop_all();
}

void RdmaSwarm::step() {
    auto& random = world_.chance();
    world_.run_for(microseconds(random.between(0, random.chance(10) ? 3000 : 300)));
    finish_what_is_over();
    auto& pair = *pairs_[random.below(pairs_.size())];
    auto& end = *pair.ends[random.below(2)];
    if (!unanswered_.empty() && random.chance(20)) {
        auto request = std::move(unanswered_.back());
        unanswered_.pop_back();
        requested(std::move(request));
    }
    if (random.chance(habits_.link_faults)) fault_in_a_link();
    if (random.chance(habits_.corruption)) corrupt(pair, end);
    if (random.chance(habits_.long_waits)) wait_long();
    if (random.chance(habits_.ends)) end_something(pair, end);
    if (random.chance(habits_.revocations) && end.station.revoke_region()) excuse_all();
    if (random.chance(habits_.bad_work)) {
        if (random.chance(15)) {
            excuse_all();
            if (end.queue_pair) end.post_receive(true);
        } else if (end.queue_pair) {
            post_bad_work(end);
        }
    }
    act(pair, end);
    for (auto& station : stations_)
        if (!station.habits.polls_when_told && random.chance(30))
            station.poll(random.between(1, 20));
    if (random.chance(3))
        for (auto& station : stations_) station.memory.check("found in passing");
}

void RdmaSwarm::act(Pair& pair, Endpoint& end) {
    auto& random = world_.chance();
    if (std::all_of(std::begin(pair.ends), std::end(pair.ends), [](auto& each) {
            return each->is_over && !each->connection && each->queue_pair &&
                   each->queue_pair->state() == verbs::QueuePairState::idle;
        })) {
        pair.excused = habits_.overflows;
        pair.failed = false;
        connect(pair);
    }
    if (!end.queue_pair) return;
    if (!end.station.habits.posts_receives_late || random.chance(20))
        for (auto count = random.between(0, 8); count > 0; --count) end.post_receive(false);
    for (auto count = random.between(0, 6); count > 0; --count) post_random_work(end);
}

void RdmaSwarm::fault_in_a_link() {
    auto& random = world_.chance();
    auto& network = world_.network();
    auto links = network.links();
    if (links.empty()) return;
    excuse_all();
    auto link = links[random.below(links.size())];
    auto side = random.chance(50) ? Side::connector : Side::acceptor;
    auto later = world_.now() + random.between(Duration(0), Duration(milliseconds(5)));
    auto subject = static_cast<std::uint64_t>(link);
    switch (random.below(4)) {
        case 0:
            return network.reset(link);
        case 1:
            return network.half_open(link, side);
        case 2:
            network.partition(link, side);
            world_.clockwork().schedule.at(later, "fault ends", subject,
                                           [&network, link] { network.heal(link); });
            return;
        default:
            network.clog(link, random.between(Duration(0), Duration(milliseconds(2))));
            world_.clockwork().schedule.at(later, "fault ends", subject,
                                           [&network, link] { network.clog(link, Duration(0)); });
    }
}

/// Where checksums are agreed on, and looked at before anything is placed, no harm is done.
void RdmaSwarm::corrupt(Pair& pair, Endpoint& end) {
    bool is_safe = end.is_running() && end.connection && !end.is_over &&
                   end.connection->facts().checksums &&
                   !end.station.habits.connecting.place_before_check;
    if (!is_safe) return;
    pair.excused = true;
    bool connects = &end == pair.ends[0].get();
    auto& facts = end.connection->facts();
    auto link = world_.network().find(connects ? facts.local : facts.remote);
    if (link) world_.network().corrupt(*link, connects ? Side::acceptor : Side::connector);
}

/// Until the engines lose their patience with whoever is silent.
void RdmaSwarm::wait_long() {
    excuse_all();
    world_.run_for(milliseconds(world_.chance().between(1000, 40'000)));
    finish_what_is_over();
}

void RdmaSwarm::end_something(Pair& pair, Endpoint& end) {
    pair.excused = true;
    switch (world_.chance().below(4)) {
        case 0:
            if (end.connection && !end.is_over) end.connection->disconnect();
            return;
        case 1:
            if (!end.connection) return;
            end.connection.reset();
            end.is_over = true;
            return;
        case 2:
            if (end.queue_pair) end.queue_pair->fail();
            return;
        default:
            if (end.queue_pair) end.destroy_queue_pair();
    }
}

/// Where both ends have left, all must be accounted for; and then they may meet again.
void RdmaSwarm::finish_what_is_over() {
    for (auto& pair : pairs_) {
        while (!pair->lingering.empty() && pair->lingering.front().first <= world_.now())
            pair->lingering.pop_front();
        bool over = true, began = false;
        for (auto& end : pair->ends) {
            over &= end->is_over;
            began |= end->connection || !end->queue_pair ||
                     end->queue_pair->state() != verbs::QueuePairState::idle;
        }
        if (!over || !began) continue;
        for (auto& station : stations_)
            while (station.poll(64) > 0) continue;
        for (auto& end : pair->ends) end->close_ledger();
        for (auto& end : pair->ends) end->begin_anew();
        pair->frozen.clear();
        pair->lingering.clear();
        ++pair->generation;  // who still asks for this one comes too late
    }
}

/// What nothing was done to must come to its end, if receives are posted and time passes.
void RdmaSwarm::finish_what_can_be() {
    while (!unanswered_.empty()) {
        requested(std::move(unanswered_.back()));
        unanswered_.pop_back();
    }
    std::set<Endpoint*> said_last_word;
    constexpr int rounds = 400;  // less time than any patience of the engine's
    for (int round = 0; round < rounds; ++round) {
        world_.run_for(milliseconds(10));
        bool waits = false;
        for (auto& station : stations_) station.poll(64);
        for (auto& pair : pairs_)
            for (auto& end : pair->ends) {
                // What has ended in silence must have ended before this.
                if (end->is_running() && !said_last_word.contains(end.get()) &&
                    post_last_word(*end))
                    said_last_word.insert(end.get());
                waits |= end->is_running() && end->has_unfinished();
                if (!end->is_running() || !end->owes_receive()) continue;
                waits = true;
                end->post_receive(false);
            }
        if (!waits) break;
    }
    for (auto& pair : pairs_) {
        for (auto& end : pair->ends)
            if (!pair->excused && (end->has_unfinished() || end->peer().owes_receive()))
                complaints_.add("pair " + std::to_string(pair->number) + " came to no end");
        if (pair->failed && !pair->excused)
            complaints_.add("pair " + std::to_string(pair->number) +
                            ": work failed, and nothing was wrong");
        pair->excused = true;
    }
}

void RdmaSwarm::end_all() {
    for (auto& pair : pairs_) {
        auto& end = *pair->ends[world_.chance().below(2)];
        if (end.connection && !end.is_over && world_.chance().chance(60))
            end.connection->disconnect();
        else
            end_something(*pair, end);
    }
    settle("when one end of each pair had left");
    for (auto& station : stations_)
        if (station.habits.polls_when_told && station.poll(64) > 0)
            complaints_.add(station.name + " was not told of its completions");
    // Who has heard nothing, as where a connection was half open, leaves too.
    for (auto& pair : pairs_)
        for (auto& end : pair->ends)
            if (end->connection && !end->is_over) end->connection->disconnect();
    settle("when both ends of each pair had left");
    for (auto& pair : pairs_)
        for (auto& end : pair->ends)
            if (!end->is_over) complaints_.add(end->station.name + " never heard of the end");
    finish_what_is_over();
    for (auto& station : stations_) {
        station.memory.check("found when all work had ended");
        if (!station.shared_receives) continue;
        std::size_t destroyed = 0;
        for (auto& pair : pairs_)
            for (auto& end : pair->ends)
                if (&end->station == &station) destroyed += end->queue_pairs - 1;
        // One that a message was being put into goes with its queue pair.
        auto lost = station.shared_posted.size() - station.shared_receives->posted();
        if (lost > destroyed && !habits_.overflows)
            complaints_.add(station.name + " lost shared receives");
    }
}

/// The parts of it all may go in any order.
void RdmaSwarm::drop_all() {
    std::vector<std::function<void()>> parts{[this] { listener_.reset(); }};
    for (auto& pair : pairs_)
        for (auto& end : pair->ends) {
            auto* one = end.get();
            parts.push_back([one] { one->queue_pair.reset(); });
            parts.push_back([one] { one->tags.drop(); });
        }
    for (auto& station : stations_) {
        auto* one = &station;
        parts.push_back([one] { one->drop_regions(); });
        parts.push_back([one] { one->device.reset(); });
        parts.push_back([one] { one->domain.reset(); });
        parts.push_back([one] { one->shared_receives.reset(); });
    }
    for (std::size_t i = parts.size(); i > 1; --i)
        std::swap(parts[i - 1], parts[world_.chance().below(i)]);
    for (auto& part : parts) part();
    settle("when all was dropped");
    if (!world_.network().links().empty()) complaints_.add("a stream was left open");
    for (auto& station : stations_) station.memory.check("found at the end");
    pairs_.clear();
}

void RdmaSwarm::settle(const char* when) {
    if (!world_.run_until_quiet(plenty)) complaints_.add(std::string("never quiet: ") + when);
}

}  // namespace weft::sim
