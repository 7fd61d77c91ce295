// SPDX-License-Identifier: Apache-2.0
#include "linux/listener.hpp"

#include <linux/filter.h>
#include <netinet/in.h>

#include <cerrno>
#include <span>
#include <vector>

#include "linux/system_error.hpp"
#include "linux/unix_path.hpp"

namespace weft::linux {
namespace {

bool out_of_resources(int number) {
    return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

/// One socket that accepts. Like a connection, it outlives its handle by one turn: the callback
/// it is in may drop the listener.
class ListeningSocket final : public DescriptorHandler, public TimerEntry, public LateFreed {
public:
    ListeningSocket(SocketCommons& commons, Descriptor socket, weft::World::Accepted accepted)
        : TimerEntry(commons.loop.timers()),
          commons_(commons),
          socket_(std::move(socket)),
          accepted_(std::move(accepted)) {}
    ~ListeningSocket() override = default;

    Result<void> begin() { return commons_.loop.watch(socket_.number(), EPOLLIN, *this); }

    void close() {
        commons_.loop.forget(socket_.number(), *this);
        socket_.close();
        cancel_timer();
    }

    void ready(std::uint32_t) override {
        for (int i = 0; i < limits::accepts_per_turn && socket_.is_open(); ++i)
            if (!accept_one()) return;
    }

    void expired() override { commons_.loop.change(socket_.number(), EPOLLIN, *this); }

private:
    bool accept_one() {
        SocketAddress peer;
        peer.size = sizeof peer.storage;
        Descriptor made(
            ::accept4(socket_.number(), peer.data(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (made.is_open()) {
            if (peer.family() == AF_UNIX) make_room_to_send(made);
            accepted_(Connection::accepted(commons_, std::move(made), peer));
            return true;
        }
        if (out_of_resources(errno)) {
            // The connection stays in the backlog and would wake us at once, for ever.
            commons_.loop.change(socket_.number(), 0, *this);
            set_timer(commons_.loop.now() + limits::accept_pause);
        }
        // ECONNABORTED and its like concern one connection that is gone already.
        return errno == ECONNABORTED || errno == EINTR || errno == EPROTO;
    }

    SocketCommons& commons_;
    Descriptor socket_;
    weft::World::Accepted accepted_;
};

class Handle final : public weft::Listener {
public:
    Handle(EventLoop& loop, Address address) : loop_(loop), address_(std::move(address)) {}
    ~Handle() override {
        for (auto& socket : sockets_) {
            socket->close();
            loop_.free_later(std::move(socket));
        }
    }
    Address address() const override { return address_; }

    void set_port(std::uint16_t port) { address_.port = port; }
    void own(OwnedUnixPath path) { path_ = std::move(path); }
    Result<void> add(std::unique_ptr<ListeningSocket> socket) {
        if (auto begun = socket->begin(); !begun) return begun;
        sockets_.push_back(std::move(socket));
        return {};
    }

private:
    EventLoop& loop_;
    Address address_;
    OwnedUnixPath path_;
    std::vector<std::unique_ptr<ListeningSocket>> sockets_;
};

void set_options(int socket, int family) {
    int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // An IPv4 address has its own socket beside this one, and must find the port free.
    if (family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
}

/// Of those who listen on one port together, the kernel gives newcomers to the one a program of
/// ours names by its number: here to the second, whose predecessor had the port to itself.
void take_precedence(int socket) {
    sock_filter second{BPF_RET | BPF_K, 0, 0, 1};
    sock_fprog program{1, &second};
    ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
}

Result<Descriptor> bound_socket(const SocketAddress& address, const LinuxWorldOptions& options) {
    WEFT_TRY(auto socket, make_socket(address, options));
    if (address.family() != AF_UNIX) set_options(socket.number(), address.family());
    auto begin = [&] {
        return ::bind(socket.number(), address.data(), address.size) == 0 &&
               ::listen(socket.number(), SOMAXCONN) == 0;
    };
    if (begin()) return socket;
    if (errno != EADDRINUSE || !options.shares_ports) return system_error(errno);
    int on = 1;
    ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (!begin()) return system_error(errno);
    take_precedence(socket.number());
    return socket;
}

/// A hosts file may name one address twice. `before` may have been given their ports already.
bool is_among(std::span<const SocketAddress> before, SocketAddress place) {
    for (auto& one : before) {
        place.set_port(one.port());
        if (one.text() == place.text()) return true;
    }
    return false;
}

}  // namespace

Result<std::unique_ptr<weft::Listener>> listen(SocketCommons& commons, const Address& address,
                                               weft::World::Accepted accepted) {
    WEFT_TRY(auto places, resolve(address, Purpose::listen));
    if (address.is_unix())
        if (auto clear = clear_unix_path(address.path, places.front()); !clear)
            return clear.error();

    auto listener = std::make_unique<Handle>(commons.loop, address);
    std::uint16_t port = address.port;
    bool any = false;
    Error failure{.code = Code::not_found};
    for (std::size_t i = 0; i < places.size(); ++i) {
        auto& place = places[i];
        if (is_among(std::span(places).first(i), place)) continue;
        place.set_port(port);
        auto socket = bound_socket(place, commons.options);
        if (!socket) {
            // A machine without IPv6 still answers for its IPv4 half of the name.
            failure = socket.error();
            if (failure.detail == EADDRINUSE) return failure;
            continue;
        }
        if (address.is_unix()) listener->own(OwnedUnixPath(address.path));
        if (port == 0) listener->set_port(port = own_address(socket->number()).port());
        auto added =
            listener->add(std::make_unique<ListeningSocket>(commons, std::move(*socket), accepted));
        if (!added) return added.error();
        any = true;
    }
    if (!any) return failure;
    return std::unique_ptr<weft::Listener>(std::move(listener));
}

}  // namespace weft::linux
