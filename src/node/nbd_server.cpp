// SPDX-License-Identifier: Apache-2.0
#include "node/nbd_server.hpp"

#include <algorithm>

#include "node/connection_room.hpp"

namespace weft::node {

struct NbdServer::Connection {
    std::unique_ptr<Stream> stream;
    std::optional<nbd::ServerConnection> engine;
    std::string peer;

    bool is_open() const { return stream != nullptr; }
    bool is_unfinished() const { return engine->shaking_hands(); }
    void hang_up() {
        stream.reset();
        engine->closed(std::nullopt);
    }
};

NbdServer::NbdServer(World& world, Options options)
    : world_(world),
      options_(options),
      pool_({.bytes = std::max(options.buffer_bytes, nbd::pool_bytes_min),
             .reserve_bytes = nbd::reserve_bytes,
             .idle_bytes = options.idle_buffer_bytes}) {}

NbdServer::~NbdServer() {
    *alive_ = false;
}

Result<Address> NbdServer::listen(const Address& address) {
    WEFT_TRY(auto listener, world_.listen(address, [this](std::unique_ptr<Stream> stream) {
        accepted(std::move(stream));
    }));
    listeners_.push_back(std::move(listener));
    return listeners_.back()->address();
}

void NbdServer::accepted(std::unique_ptr<Stream> stream) {
    const auto admission =
        make_room(connections_, {options_.connections_max, options_.handshakes_max},
                  [](const Connection&) { return false; });
    if (admission != Admission::granted) {
        tell({Event::Kind::refused, stream->peer(), {}, Error{.code = Code::exhausted}});
        return;
    }
    if (listeners_.empty()) return;  // stopped by who heard that somebody had to make room
    auto which = connections_.emplace(connections_.end());
    which->peer = stream->peer();
    which->stream = std::move(stream);
    which->engine.emplace(exports_, pool_, statistics_, world_.now(),
                          nbd::ServerConnection::Holder{
                              .wake = [which] { which->stream->wake(); },
                              .gone = [this, which] { gone(which); },
                          });
    which->stream->drive(*which->engine);
    tell({Event::Kind::connected, which->peer, {}, {}});  // last: who hears may call stop()
}

void NbdServer::gone(std::list<Connection>::iterator which) {
    const auto* chosen = which->engine->chosen();
    tell({Event::Kind::left, which->peer, chosen ? chosen->name : "", which->engine->fault()});
    // We are being called from inside the connection: it can only be destroyed later.
    world_.defer([this, which, alive = alive_] {
        if (*alive) connections_.erase(which);
    });
}

void NbdServer::drain() {
    listeners_.clear();
    for (auto& connection : connections_) connection.engine->dismiss();
}

void NbdServer::stop() {
    listeners_.clear();
    for (auto& connection : connections_) connection.hang_up();
}

}  // namespace weft::node
