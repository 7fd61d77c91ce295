// SPDX-License-Identifier: Apache-2.0
// The RDMA connections of one party of an array (a box, a host, a controller) to the others, for
// third-party transfers alone. There is no login on them: both ends prove that they know a secret
// the controller gave them (wire/array_connection.hpp), and before that nothing of ours can be read
// or written through them.
//
// Whoever begins transfers connects, when the first is asked for, and uses that connection for its
// own transfers only; what peers do with our memory comes over connections they began. A pair of
// boxes thus has one each way, and neither has to wait for the other to make its own.
//
// How a transfer ends that cannot be done is in outbound_peer.hpp.
//
// A send has ended when the peer has the bytes, not when the network took them: the answer that
// tells of it goes another way and could be there first. So Writes are followed by an empty Read,
// whose answer can only come behind them.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "node/outbound_peer.hpp"

namespace weft::node {

class ArrayLinks final : public raid::PeerTransfers,
                         private InboundLinkOwner,
                         private OutboundPeerOwner {
public:
    struct Options {
        std::size_t peers_max = 1024;   ///< known; beyond, know() refuses
        std::size_t unproved_max = 64;  ///< connections whose proof has not come
        ArrayLinkOptions link{};
    };
    struct Event {
        enum class Kind : std::uint8_t {
            linked,   ///< a connection is proved, by whichever side it was begun
            lost,     ///< one that was proved has ended
            refused,  ///< somebody wanted a connection and did not get it
            failed,   ///< we wanted one and did not get it
        } kind{};
        wire::ArrayConnectionEnd peer{};  ///< who it is, or says it is
        std::string why{};                ///< of the last three: a sentence
    };

    /// Connections that take() is given must be requests at this device.
    ArrayLinks(World& world, verbs::Device& device, const Options& options);
    ArrayLinks(const ArrayLinks&) = delete;
    ArrayLinks& operator=(const ArrayLinks&) = delete;
    /// What was asked for and has not ended is told so first, as disconnected. This may be from
    /// inside the completed() of a transfer, and must not be from inside an event.
    ~ArrayLinks();

    World& world() { return world_; }
    /// In which memory is registered that peers are to reach.
    const std::shared_ptr<verbs::ProtectionDomain>& domain() const { return domain_; }
    /// Memory that transfers come into often: registered now, and not for each. It must outlive
    /// this. What was never announced works too.
    Result<void> keep_ready(Buffer memory);

    /// Before anything else, and whenever a new controller takes office. All connections of an
    /// earlier epoch are cut, and with them whatever an old controller's orders had begun.
    void set_office(wire::ClusterIdentity cluster, wire::Epoch epoch);

    /// A name this party answers to; the first is also the one it gives. A session of a host has
    /// one secret, and whoever may come has what is made of it for him (secret_for); without one
    /// the peer must be known, with its own.
    void appear_as(const wire::ArrayConnectionEnd& self, std::optional<ArraySecret> secret);
    /// Cuts what was made under the name.
    void disappear(const wire::ArrayConnectionEnd& self);
    /// Though it knows a secret, this one does not come to that name any more: its connections are
    /// cut, and none is accepted until let_in(), or until the name is taken anew.
    void bar(const wire::ArrayConnectionEnd& self, const wire::ArrayConnectionEnd& peer);
    void let_in(const wire::ArrayConnectionEnd& self, const wire::ArrayConnectionEnd& peer);
    bool is_barred(const wire::ArrayConnectionEnd& self,
                   const wire::ArrayConnectionEnd& peer) const;

    /// Again with another secret or other places: connections under the old ones are cut. `where`:
    /// an address in each network the peer is in, the preferred first. Without any it may come, and
    /// is never gone to.
    Result<void> know(const wire::ArrayConnectionEnd& peer, const ArraySecret& secret,
                      std::vector<Address> where);
    Result<void> know(const wire::ArrayConnectionEnd& peer, const ArraySecret& secret,
                      const std::optional<Address>& where) {
        return know(peer, secret, where ? std::vector{*where} : std::vector<Address>{});
    }
    /// Cuts its connections, in both directions.
    void forget(const wire::ArrayConnectionEnd& peer);
    bool knows(const wire::ArrayConnectionEnd& peer) const { return peers_.contains(key_of(peer)); }

    /// Whether a request is one of ours: its private data begins as a greeting does.
    static bool is_greeting(ConstBuffer private_data);
    /// Somebody wants a connection. Refused ones hear nothing but that.
    void take(std::unique_ptr<verbs::ConnectionRequest> request);

    void fetch(raid::PeerTransfer& transfer) override;
    void send(raid::PeerTransfer& transfer) override;

    void on_event(std::function<void(const Event&)> hear) { hear_ = std::move(hear); }
    /// Cuts those over which bytes of memory under this tag are still on their way to a peer that
    /// takes nothing: for an owner of memory who cannot wait any longer. Whether there were any.
    bool take_back(SteeringTag tag);
    /// The same when the patience of a link has passed, if it is still so.
    void take_back_later(SteeringTag tag);
    /// Cuts every connection. What was asked for ends as disconnected.
    void cut_all();
    /// Before what asks for transfers is taken apart: cuts every connection, and whatever is asked
    /// for from then on, also from inside, is refused at once, as nobody is known any more.
    void forget_all();

    std::size_t links() const;  ///< proved, in both directions
    std::size_t unproved() const;
    /// Of every peer that was gone to, or came: how the connections to and from it are.
    std::vector<ArrayLinkFacts> facts() const;

private:
    using Key = std::pair<wire::ArrayRole, wire::BoxIdentity>;
    static Key key_of(const wire::ArrayConnectionEnd& end) { return {end.role, end.identity}; }
    /// Of who has come and proved itself.
    struct Arrivals {
        wire::ArrayConnectionEnd peer{};
        ArrayLinkCounters counters{};
        std::string last_end{};
        Instant last_end_at{};
    };
    struct Name {
        wire::ArrayConnectionEnd end{};
        std::optional<ArraySecret> secret;
        std::set<Key> barred{};
    };

    // InboundLinkOwner
    void proved(InboundLink& link) override;
    void ended(InboundLink& link, const std::string& why) override;
    // OutboundPeerOwner
    std::optional<wire::ArrayGreeting> greeting_to(
        const wire::ArrayConnectionEnd& peer) const override;
    const std::vector<ReadyMemory>& ready_memory() const override { return ready_; }
    void connected(const OutboundPeer& peer) override;
    void connection_ended(const OutboundPeer& peer, bool was_proved,
                          const std::string& why) override;

    InboundLinkOwner& owner_of_links() { return *this; }
    OutboundPeerOwner& owner_of_peers() { return *this; }
    void begin(const TransferJob& job);
    /// The secret by which the one who greets so has to prove itself; or why it cannot, a sentence.
    std::variant<ArraySecret, std::string> judge(const wire::ArrayGreeting& greeting) const;
    template <class Which>
    void cut_inbound(Which which);
    static void end(const std::vector<TransferJob>& jobs);
    void make_room_for_unproved();
    Arrivals& arrivals_of(const wire::ArrayConnectionEnd& peer);
    ArrayLinkFacts facts_of(const Arrivals& arrivals) const;
    void take_back_what_is_due();
    void tell(Event::Kind kind, const wire::ArrayConnectionEnd& peer, const std::string& why);

    World& world_;
    verbs::Device& device_;
    Options options_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    std::vector<ReadyMemory> ready_;
    wire::ClusterIdentity cluster_{};
    wire::Epoch epoch_{};
    std::vector<Name> names_;
    std::map<Key, std::unique_ptr<OutboundPeer>> peers_;
    std::map<Key, Arrivals> arrivals_;                 ///< no more than peers_max
    std::list<std::unique_ptr<InboundLink>> inbound_;  ///< the oldest first
    std::function<void(const Event&)> hear_;
    std::deque<std::pair<Instant, SteeringTag>> lent_;  ///< to be taken back, the soonest first
    std::unique_ptr<Timer> lent_timer_;
};

}  // namespace weft::node
