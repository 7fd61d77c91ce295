// SPDX-License-Identifier: Apache-2.0
// Random work for an endpoint: what is asked of the queue pair, and what the ledger must know of it
// to say whether it came out right.
//
// Work that is meant to succeed never races with other work, as no application's should: what a
// request is about is leased. Only along one queue pair, where RDMA promises an order, does work
// build on work that has not ended: a write, and a read of the same bytes; a read, and behind a
// fence a send of what it brought. One race there is, for RFC 5040 allows it: a write to bytes that
// are still being read. Each byte of the answer is then an old or a new one.
#pragma once

#include <functional>

#include "sim/rdma_work_tags.hpp"

namespace weft::sim {

class Endpoint;
struct Work;

/// A place in the peer's memory that work under way is about.
struct Target {
    Place place;
    std::shared_ptr<Lease> lease;
    unsigned changes = 0;                      ///< that have not been carried out yet
    std::vector<std::weak_ptr<Work>> reads{};  ///< whose bytes have not come yet
    Instant lent_until{};  ///< perhaps, to the network, by answers that have come
};

struct Work {
    std::uint64_t id = 0;  ///< counts up with every post
    verbs::Operation operation{};
    bool signalled = true;
    bool solicited = false;
    bool fails_here = false;   ///< a tag of our own is wrong
    bool fails_there = false;  ///< the peer will refuse it
    bool carried_out = false;  ///< its change of the peer's memory is known to be there
    bool ended = false;
    bool overtaken = false;  ///< a read: what it reads has been changed behind it
    bool passed_on = false;  ///< a read: what it brings is sent behind a fence
    Bytes payload;           ///< what is sent or written; what a read or atomic shall bring
    std::uint32_t immediate = 0;
    SteeringTag invalidate{};
    verbs::LocalMemory sink{};  ///< of a read
    std::shared_ptr<Lease> local;
    std::shared_ptr<Target> remote;
    std::vector<std::shared_ptr<GrantUse>> uses;
    std::shared_ptr<Grant> opens, closes;
    std::function<SteeringTag()> tag_of_opened;

    bool takes_receive() const;
    bool changes_memory() const;
    bool awaits_answer() const;
};

/// Work not posted yet.
struct Draft {
    std::shared_ptr<Work> work = std::make_shared<Work>();
    verbs::SendRequest request;
    std::vector<verbs::LocalMemory> local;
    verbs::WindowBinding binding;
    verbs::FastRegistration registration;
    Bytes changed;  ///< what the target will hold, if it changes
};

/// Posts something at random; nothing if chance would have what cannot be now.
void post_random_work(Endpoint& endpoint);
/// Posts a Send whose completion tells that all before it has ended; false if there is no room.
bool post_last_word(Endpoint& endpoint);
/// Posts something that one side or the other must refuse.
void post_bad_work(Endpoint& endpoint);

}  // namespace weft::sim
