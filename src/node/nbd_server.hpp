// SPDX-License-Identifier: Apache-2.0
// An NBD server in a world: listens, accepts, and keeps the connections.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "nbd/server_connection.hpp"
#include "weft/world.hpp"

namespace weft::node {

class NbdServer {
public:
    struct Options {
        std::size_t connections_max = 1024;
        /// Of them, those that have not chosen an export yet: the oldest makes room for a newcomer.
        std::size_t handshakes_max = nbd::handshakes_max;
        /// Payload held for all clients together, pool_bytes_min at the least; each may hold
        /// reserve_bytes beyond it. Devices that lend their memory need none of it.
        std::size_t buffer_bytes = nbd::pool_bytes;
        /// Payload buffers kept for reuse when nobody needs them.
        std::size_t idle_buffer_bytes = 64u << 20;
    };
    struct Event {
        enum class Kind : std::uint8_t { connected, left, refused } kind;
        std::string peer;
        std::string export_name;     ///< left: what it used
        std::optional<Error> fault;  ///< left: why it was dropped, if it was
    };

    NbdServer(World& world, Options options);
    NbdServer(const NbdServer&) = delete;
    NbdServer& operator=(const NbdServer&) = delete;
    /// The devices must be done with every request: run the world until quiet() after stop().
    ~NbdServer();

    /// The device must outlive the server.
    Result<void> add(nbd::Export offered) { return exports_.add(std::move(offered)); }
    Result<Address> listen(const Address& address);
    void on_event(std::function<void(const Event&)> hear) { hear_ = std::move(hear); }

    /// Stops listening and takes no further request; each connection closes when it is answered.
    void drain();
    /// Stops listening and closes every connection at once.
    void stop();
    /// No connection is left, closed ones included.
    bool quiet() const { return connections_.empty(); }

    std::size_t connection_count() const { return connections_.size(); }
    const nbd::Statistics& statistics() const { return statistics_; }

private:
    struct Connection;

    void accepted(std::unique_ptr<Stream> stream);
    void gone(std::list<Connection>::iterator which);
    void tell(Event event) {
        if (hear_) hear_(event);
    }

    World& world_;
    Options options_;
    nbd::Exports exports_;
    nbd::Statistics statistics_;
    block::BufferPool pool_;
    std::function<void(const Event&)> hear_;
    std::vector<std::unique_ptr<Listener>> listeners_;
    std::list<Connection> connections_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
