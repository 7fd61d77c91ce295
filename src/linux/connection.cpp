// SPDX-License-Identifier: Apache-2.0
#include "linux/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.hpp"
#include "linux/stream_condition.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {
namespace {

class Handle final : public Stream {
public:
    Handle(EventLoop& loop, std::unique_ptr<Connection> connection)
        : loop_(loop), connection_(std::move(connection)) {}
    ~Handle() override {
        connection_->abandon();
        loop_.free_later(std::move(connection_));
    }
    void drive(StreamEngine& engine) override { connection_->drive(engine); }
    void wake() override { connection_->wake(); }
    std::string peer() const override { return connection_->peer(); }
    Address local() const override { return connection_->local(); }
    Address remote() const override { return connection_->remote(); }
    std::size_t segment_size() const override { return connection_->segment_size(); }
    std::optional<StreamCondition> condition() const override { return connection_->condition(); }
    void set_traffic_class(std::uint8_t octet) override { connection_->set_traffic_class(octet); }

private:
    EventLoop& loop_;
    std::unique_ptr<Connection> connection_;
};

constexpr std::uint32_t always = EPOLLIN | EPOLLRDHUP | EPOLLET;

}  // namespace

Connection::Connection(SocketCommons& commons)
    : TimerEntry(commons.loop.timers()), commons_(commons) {}

std::unique_ptr<Stream> Connection::accepted(SocketCommons& commons, Descriptor socket,
                                             const SocketAddress& peer) {
    auto connection = std::make_unique<Connection>(commons);
    connection->peer_ = describe_peer(socket.number(), peer);
    connection->local_ = own_address(socket.number()).address();
    connection->remote_ = peer.address();
    connection->socket_ = std::move(socket);
    return std::make_unique<Handle>(commons.loop, std::move(connection));
}

std::unique_ptr<Stream> Connection::connecting(SocketCommons& commons,
                                               std::vector<SocketAddress> addresses,
                                               StreamEngine& engine,
                                               std::optional<SocketAddress> from) {
    WEFT_CHECK(!addresses.empty());
    auto connection = std::make_unique<Connection>(commons);
    connection->stage_ = Stage::connecting;
    connection->use(engine);
    connection->peer_ = addresses.front().text();
    std::reverse(addresses.begin(), addresses.end());
    connection->addresses_ = std::move(addresses);
    connection->from_ = from;
    commons.loop.make_ready(*connection);  // the first attempt too is made from the loop
    return std::make_unique<Handle>(commons.loop, std::move(connection));
}

void Connection::drive(StreamEngine& engine) {
    WEFT_CHECK(stage_ == Stage::waiting || stage_ == Stage::open);
    bool is_the_first = stage_ == Stage::waiting;
    use(engine);
    // What was read ahead for the one before is in leftover_, or being handed out: it is not lost.
    is_the_first ? begin() : wake();
}

void Connection::use(StreamEngine& engine) {
    engine_ = &engine;
    takes_ahead_ = dynamic_cast<TakesAhead*>(&engine);
}

void Connection::begin() {
    stage_ = Stage::open;
    bool watched_already = interest_ != 0;
    interest_ = always;
    if (watched_already) {
        commons_.loop.change(socket_.number(), interest_, *this);
    } else if (auto watched = commons_.loop.watch(socket_.number(), interest_, *this); !watched) {
        // No room in epoll. The engine learns it from the loop, as it learns of every end.
        last_failure_ = watched.error();
        stage_ = Stage::connecting;
        socket_.close();
        interest_ = 0;
    }
    commons_.loop.make_ready(*this);
}

void Connection::wake() {
    if (engine_ && !serving_) commons_.loop.make_ready(*this);
}

std::size_t Connection::segment_size() const {
    if (stage_ != Stage::waiting && stage_ != Stage::open) return 0;
    int bytes = 0;
    socklen_t size = sizeof bytes;
    // A Unix socket has no such option, and so no such size.
    if (::getsockopt(socket_.number(), IPPROTO_TCP, TCP_MAXSEG, &bytes, &size) < 0) return 0;
    return static_cast<std::size_t>(bytes);
}

std::optional<StreamCondition> Connection::condition() const {
    return stage_ == Stage::open ? condition_of(socket_.number()) : std::nullopt;
}

void Connection::set_traffic_class(std::uint8_t octet) {
    traffic_class_ = octet;
    mark_packets();
}

/// Of both families: a socket of the newer one may have a peer of the older. What is not the
/// socket's is refused, and that is no loss.
void Connection::mark_packets() {
    if (!traffic_class_ || !socket_.is_open()) return;
    int octet = *traffic_class_;
    ::setsockopt(socket_.number(), IPPROTO_IPV6, IPV6_TCLASS, &octet, sizeof octet);
    ::setsockopt(socket_.number(), IPPROTO_IP, IP_TOS, &octet, sizeof octet);
}

Result<void> Connection::bind_own_end() {
    if (!from_) return {};
    // The port may be one that is kept for us, bound and not listening.
    int on = 1;
    ::setsockopt(socket_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket_.number(), from_->data(), from_->size) < 0) return system_error(errno);
    return {};
}

void Connection::try_next_address() {
    while (!addresses_.empty()) {
        SocketAddress address = addresses_.back();
        addresses_.pop_back();
        auto made = make_socket(address, commons_.options);
        if (!made) {
            last_failure_ = made.error();
            continue;
        }
        socket_ = std::move(*made);
        peer_ = address.text();
        remote_ = address.address();
        mark_packets();
        if (auto bound = bind_own_end(); !bound) {
            last_failure_ = bound.error();
            socket_.close();
            continue;
        }
        if (::connect(socket_.number(), address.data(), address.size) < 0 && errno != EINPROGRESS) {
            last_failure_ = system_error(errno);
            socket_.close();
            continue;
        }
        interest_ = EPOLLOUT | EPOLLET;
        auto watched = commons_.loop.watch(socket_.number(), interest_, *this);
        if (watched) return;  // ready() hears how it ended
        last_failure_ = watched.error();
        interest_ = 0;
        socket_.close();
    }
    end(last_failure_);
}

void Connection::attempt_ended() {
    if (int number = pending_error(socket_.number()); number != 0) {
        last_failure_ = system_error(number);
        close();
        try_next_address();
        return;
    }
    addresses_.clear();
    local_ = own_address(socket_.number()).address();
    begin();
    engine_->opened();
}

void Connection::ready(std::uint32_t events) {
    if (stage_ == Stage::connecting) return attempt_ended();
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) at_end_ = true;
    if (events & EPOLLERR) broken_ = true;
    if (blocked_) {
        if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) blocked_ = false;
    } else if (events == EPOLLOUT) {
        // Nobody waits for room any more. Only now is it worth a call to say so: a stream that
        // blocks again and again keeps its registration.
        interest_ = always;
        commons_.loop.change(socket_.number(), interest_, *this);
        return;
    }
    receive();
    if (engine_) commons_.loop.make_ready(*this);
}

void Connection::serve() {
    if (!engine_) return;
    if (stage_ == Stage::connecting) {
        std::array<ConstBuffer, limits::send_pieces> pieces;
        if (engine_->finished() && engine_->pending(pieces) == 0)
            return engine_ ? end(std::nullopt) : void();
        if (!socket_.is_open()) try_next_address();
    } else {
        serving_ = true;
        receive();
        serving_ = false;
        if (engine_) send();
    }
    if (engine_) follow_deadline();
}

void Connection::follow_deadline() {
    // The timer is moved only when it would ring too late. Ringing too early is cheap and rare;
    // moving it with every message is neither.
    auto wanted = engine_->deadline();
    if (!wanted) return;
    auto set = timer();
    if (!set || *wanted < *set) set_timer(*wanted);
}

void Connection::expired() {
    if (!engine_) return;
    auto wanted = engine_->deadline();
    if (!wanted || *wanted > commons_.loop.now()) return follow_deadline();
    engine_->tick(commons_.loop.now());
    if (engine_) commons_.loop.make_ready(*this);
}

void Connection::finish() {
    // The engine is told at once; what the peer still sends is no matter of its.
    stop_watching();
    commons_.lingering.add(std::move(socket_));
    end(std::nullopt);
}

void Connection::stop_watching() {
    if (interest_ != 0) commons_.loop.forget(socket_.number(), *this);
    interest_ = 0;
}

void Connection::close() {
    stop_watching();
    socket_.close();
}

void Connection::end(std::optional<Error> why) {
    auto* engine = engine_;
    abandon();
    engine->closed(why);
}

void Connection::abandon() {
    stage_ = Stage::closed;
    engine_ = nullptr;
    takes_ahead_ = nullptr;
    close();
    leave_list();
    cool_down();
    cancel_timer();
    leftover_ = {};
}

}  // namespace weft::linux
