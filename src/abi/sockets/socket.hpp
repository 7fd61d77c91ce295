// SPDX-License-Identifier: Apache-2.0
// A socket: its life from rsocket() to rclose(), and what its calls share.
//
// Its number is that of its event channel's descriptor, so it cannot be that of anything else.
//
// Who changes or looks at a socket holds its lock, and holds it shortly: never while waiting, and
// not while copying an application's bytes either. One sender and one receiver at a time have the
// turn for as long as their calls last, and so the buffers' parts they copy from and to. What makes
// a descriptor of the socket readable is taken off it only by who has its watch: so a thread that
// has the watch may sleep until the descriptor is readable, and misses nothing. The others sleep
// until it rings for them. The watch is tried for with the lock held, and nobody waits for it.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "abi/bell.hpp"
#include "abi/engine.hpp"
#include "abi/sockets/endpoint.hpp"
#include "abi/sockets/reminder.hpp"
#include "abi/sockets/settings.hpp"

namespace weft::abi::sockets {

class Socket;
using SocketPointer = std::shared_ptr<Socket>;

enum class Stage : std::uint8_t {
    fresh,
    bound,
    listening,
    resolving_address,
    resolving_route,
    connecting,
    accepting,  ///< the peer has not shown itself yet
    open,       ///< also when the stream has ended
    failed,     ///< never became open
    closed,     ///< a listener that was closed
};

/// Memory of the application that the peer may write to, or that is only registered.
struct LocalMapping {
    ibv_mr* region = nullptr;
    std::uint64_t offset = 0;
    std::optional<std::uint32_t> slot{};  ///< of the peer's; without, it is not for the peer
    bool is_told = false;
};

/// Connections that were made for a listener and not taken yet.
struct Backlog {
    explicit Backlog(std::size_t room) : most(room) {}
    bool is_full() const { return sockets.size() >= most; }

    std::size_t most;
    std::deque<SocketPointer> sockets;
    Bell bell{Bell::Kind::each};  ///< rung for each of them
};

class Socket : public std::enable_shared_from_this<Socket> {
public:
    /// Null with errno where it cannot be made.
    static SocketPointer make(int family);
    /// Of a connection that a listener's peer asks for. Null with errno; the identifier is then
    /// still the caller's.
    static SocketPointer adopt(rdma_cm_id& id, Socket& listener);
    ~Socket();
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int number() const { return channel->fd; }
    /// In a child of fork(), of its parent's socket, of which nothing else may be touched.
    void close_descriptors();
    bool is_opening() const {
        return stage >= Stage::resolving_address && stage <= Stage::accepting;
    }
    bool is_open() const { return stage == Stage::open; }
    Stream& stream() { return endpoint->stream(); }

    const unsigned generation;
    rdma_event_channel* channel = nullptr;
    rdma_cm_id* id = nullptr;

    std::mutex sending, receiving;  ///< the turns
    std::mutex watch;
    std::mutex lock;  ///< of all that follows

    int family;
    Stage stage = Stage::fresh;
    int error = 0;  ///< for SO_ERROR
    Settings settings;
    std::unique_ptr<Endpoint> endpoint;  ///< from the time there is a device until the end
    std::vector<Bell*> pollers;          ///< to be rung when news were taken
    std::vector<LocalMapping> mappings;
    Reminder reminder;  ///< until the first word of a peer that was called

    std::unique_ptr<Backlog> backlog;  ///< of a listener

    Socket(int its_family, const Settings& its_settings);

private:
    bool open_channel();
};

/// A socket of another generation is the parent's.
inline unsigned current_generation() {
    return Engine::generation();
}

}  // namespace weft::abi::sockets
