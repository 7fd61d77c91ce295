// SPDX-License-Identifier: Apache-2.0
// What all iSER connections of a target share: the RNIC, one queue of receives for all of them with
// a low-water mark, one queue of completions. It must outlive the datamovers it makes.
//
// A connection comes in one of two ways. Linux, libiscsi and tgt connect by RDMA first and log in
// inside Sends: the stream begins with MPA's request, respond() takes it over, and accept() makes
// the datamover before the login. RFC 7145 logs in over TCP and then turns the stream into RDMA:
// switch_over() makes the datamover after the login.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <unordered_map>

#include "iscsi/datamover.hpp"
#include "iscsi/iser_receives.hpp"
#include "weft/rdma.hpp"

namespace weft::iscsi {

class IserEars;
class IserTargetMover;

class IserTarget {
public:
    struct Options {
        bool checksums =
            false;  ///< ask for MPA's; an initiator that asks for them gets them anyway
        std::uint16_t reads = 16;  ///< under way per connection, where the initiator serves so many
        bool invalidates = true;   ///< the initiator's tags, where that was agreed on
        std::size_t receives_first = 0;  ///< 0: as iser_limits.hpp says
        std::size_t receives_max = 0;
    };
    /// Someone wants a connection by RDMA first: accept() it, or drop it.
    using Requested = std::function<void(std::unique_ptr<verbs::ConnectionRequest>)>;

    static Result<std::unique_ptr<IserTarget>> make(World& world, const Options& options,
                                                    Requested requested);
    IserTarget(const IserTarget&) = delete;
    IserTarget& operator=(const IserTarget&) = delete;
    ~IserTarget();

    /// A stream on which MPA's request has begun: see verbs::Responder. `requested` is told.
    Result<void> respond(std::unique_ptr<Stream> stream, ConstBuffer read_already) {
        return responder_->respond(std::move(stream), read_already);
    }
    /// The user hears of PDUs from now on, the Login Request first.
    Result<std::unique_ptr<TargetDatamover>> accept(
        std::unique_ptr<verbs::ConnectionRequest> request, TargetDatamoverUser& user);
    /// The last octet of the final Login Response has gone over the stream, and the initiator turns
    /// to RDMA next. These terms hold; PDUs come when it has.
    Result<std::unique_ptr<TargetDatamover>> switch_over(std::unique_ptr<Stream> stream,
                                                         TargetDatamoverUser& user,
                                                         const ConnectionTerms& terms);

    /// Others may have connections of their own at it.
    verbs::Device& device() { return *device_; }
    std::size_t receives() const { return receives_->count(); }
    std::size_t connections() const { return movers_.size(); }

private:
    friend class IserTargetMover;

    IserTarget(World& world, const Options& options);
    Result<void> set_up(Requested requested);
    Result<std::unique_ptr<IserTargetMover>> make_mover(TargetDatamoverUser& user);
    void poll();
    void give_out(const verbs::Completion& completion);
    void refill();
    /// One more receive is to be held: if too many are, a connection loses its own.
    void relieve();
    void forget(std::uint32_t queue_pair) { movers_.erase(queue_pair); }
    void see_off(std::unique_ptr<IserEars> ears, std::unique_ptr<verbs::QueuePair> queue_pair,
                 std::unique_ptr<verbs::Connection> connection);

    /// A connection on which all is said. Its initiator may end it now, and has to before long.
    struct Departing {
        std::unique_ptr<IserEars> ears;
        std::unique_ptr<verbs::QueuePair> queue_pair;
        std::unique_ptr<verbs::Connection> connection;
        std::unique_ptr<Timer> patience;
    };

    World& world_;
    Options options_;
    std::unique_ptr<verbs::Device> device_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    std::shared_ptr<verbs::CompletionQueue> completions_;
    std::shared_ptr<verbs::SharedReceiveQueue> shared_receives_;
    std::unique_ptr<iser::Receives> receives_;
    std::size_t receives_held_ = 0;  ///< by all connections
    std::unique_ptr<verbs::Responder> responder_;
    std::unordered_map<std::uint32_t, IserTargetMover*> movers_;  ///< by queue pair
    std::list<Departing> departing_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::iscsi
