// SPDX-License-Identifier: Apache-2.0
// The software RNIC: makes the objects of weft/verbs.hpp and connects queue pairs over any network
// a World has. What the other side runs may be another Weft, Linux, or an RNIC of hardware.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "weft/verbs.hpp"
#include "weft/world.hpp"

namespace weft::verbs {

/// How a connection is to be made. Either side's wish for checksums is enough.
struct ConnectOptions {
    ConstBuffer
        private_data{};  ///< for the other application; at most 508 bytes, 252 towards Linux
    Address from{};      ///< the own end, where it matters; its port may be 0
    std::uint16_t inbound_reads = 16;   ///< of the peer's, that we serve at a time
    std::uint16_t outbound_reads = 16;  ///< of ours, under way at a time
    bool checksums = true;
    bool markers = false;             ///< ask the peer to send them
    bool peer_to_peer = true;         ///< let the accepting side speak first if it likes
    bool plain_startup = false;       ///< RFC 5044 alone: no peer_to_peer, no agreement on reads
    bool place_before_check = false;  ///< faster with checksums, and not what the RFC allows
    bool only_standard = false;  ///< no reserved flags, by which Weft and Linux know each other
    /// What routers see in our packets: the octet of IP's header. None: as the system marks them.
    std::optional<std::uint8_t> traffic_class{};
};

/// What was agreed.
struct ConnectionFacts {
    bool checksums = false;
    bool markers_in = false, markers_out = false;
    std::uint16_t inbound_reads = 0, outbound_reads = 0;
    bool extended = false;  ///< the peer is Weft too: immediate data and atomics work
    Address local, remote;
};

/// What has moved over a connection, its start-up included.
struct ConnectionTraffic {
    std::uint64_t octets_sent = 0;  ///< taken by the network
    std::uint64_t octets_received = 0;
};

/// News of a connection, told from the world's loop. Destroying the connection here is fine.
/// Whoever hears it lives as long as the connection: once that is destroyed, nothing is told.
class ConnectionEvents {
public:
    virtual void established() = 0;
    /// The other application does not want us; its private data may say why.
    virtual void rejected() = 0;
    /// It was never there: nobody answered, or not in our language.
    virtual void failed(Error why) = 0;
    /// It was there and is over; told once, whoever ended it.
    virtual void disconnected() = 0;

protected:
    ~ConnectionEvents() = default;
};

/// Destroying it closes at once.
class Connection {
public:
    virtual ~Connection() = default;
    /// Orderly: what has begun to go out is completed. disconnected() follows.
    virtual void disconnect() = 0;
    virtual ConstBuffer peer_private_data() const = 0;
    virtual const ConnectionFacts& facts() const = 0;
    virtual ConnectionTraffic traffic() const = 0;
    /// What the network says of its stream; none where it does not, or the stream is gone.
    virtual std::optional<StreamCondition> condition() const = 0;
};

/// Someone wants a connection. Destroying it unanswered refuses it.
class ConnectionRequest {
public:
    virtual ~ConnectionRequest() = default;
    virtual ConstBuffer private_data() const = 0;
    virtual Address remote() const = 0;
    virtual Address local() const = 0;
    /// What the peer would like, where it said so.
    virtual std::optional<std::uint16_t> inbound_reads() const = 0;
    virtual std::optional<std::uint16_t> outbound_reads() const = 0;
    /// The queue pair is connected to the peer's. This object has then done its work.
    virtual Result<std::unique_ptr<Connection>> accept(QueuePair& queue_pair,
                                                       const ConnectOptions& options,
                                                       ConnectionEvents& events) = 0;
    virtual Result<void> reject(ConstBuffer private_data) = 0;
};

/// For streams that others have accepted: a listener without a socket. Destroying it drops those
/// whose request is not whole yet.
class Responder {
public:
    virtual ~Responder() = default;
    /// The stream is the device's from now on, and so is what was read of it by whoever told it
    /// apart, which must be no more than the peer's request. May be called from inside the engine
    /// that read it: see Stream::drive(). Refused, the stream is closed.
    virtual Result<void> respond(std::unique_ptr<Stream> stream, ConstBuffer read_already) = 0;
};

struct DeviceOptions {
    std::function<void(const AsyncEvent&)> on_event;
    std::size_t regions_max = 1u << 16;  ///< and windows; 2^20 at most, whatever is asked for
};

/// A software RNIC. It keeps whatever its objects need alive: they may be destroyed in any order.
class Device {
public:
    virtual ~Device() = default;

    virtual std::shared_ptr<ProtectionDomain> make_domain() = 0;
    /// `notify` is called when an armed queue has news.
    virtual Result<std::shared_ptr<CompletionQueue>> make_completion_queue(
        std::size_t capacity, std::function<void()> notify) = 0;
    virtual Result<std::shared_ptr<SharedReceiveQueue>> make_shared_receive_queue(
        std::size_t capacity, std::size_t pieces) = 0;
    virtual Result<std::unique_ptr<QueuePair>> make_queue_pair(const QueuePairOptions& options) = 0;

    /// `events` hears the outcome later, never from inside this call.
    virtual Result<std::unique_ptr<Connection>> connect(const Address& address,
                                                        QueuePair& queue_pair,
                                                        const ConnectOptions& options,
                                                        ConnectionEvents& events) = 0;
    /// The same over a stream that is open, on which another protocol has said its last word: see
    /// Stream::drive(). The other side must expect the same. Refused, the stream is closed.
    virtual Result<std::unique_ptr<Connection>> connect_over(std::unique_ptr<Stream> stream,
                                                             QueuePair& queue_pair,
                                                             const ConnectOptions& options,
                                                             ConnectionEvents& events) = 0;
    using Requested = std::function<void(std::unique_ptr<ConnectionRequest>)>;
    virtual Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                     Requested requested) = 0;
    /// `requested` is told as listen() tells it; `abandoned`, if there is one, of a stream that
    /// ended before its request was whole.
    virtual std::unique_ptr<Responder> make_responder(Requested requested,
                                                      std::function<void()> abandoned) = 0;
};

std::unique_ptr<Device> make_device(World& world, DeviceOptions options);

}  // namespace weft::verbs
