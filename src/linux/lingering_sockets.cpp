// SPDX-License-Identifier: Apache-2.0
#include "linux/lingering_sockets.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace weft::linux {

class LingeringSockets::Socket final : public DescriptorHandler,
                                       public TimerEntry,
                                       public LateFreed {
public:
    Socket(LingeringSockets& all, Descriptor socket)
        : TimerEntry(all.loop_.timers()), all_(all), socket_(std::move(socket)) {}
    ~Socket() override { close(); }

    /// False if there is nothing to wait for: the peer has ended already.
    bool begin() {
        ::shutdown(socket_.number(), SHUT_WR);
        if (!discard()) return false;
        if (!all_.loop_.watch(socket_.number(), EPOLLIN, *this)) return false;
        set_timer(all_.loop_.now() + limits::linger_time);
        return true;
    }

    void close() {
        if (!socket_.is_open()) return;
        all_.loop_.forget(socket_.number(), *this);
        socket_.close();
        cancel_timer();
    }

    void ready(std::uint32_t) override {
        if (!discard()) all_.remove(*this);
    }
    void expired() override { all_.remove(*this); }

private:
    /// False when no more can come, or no more is taken. MSG_TRUNC spares TCP the copying.
    bool discard() {
        auto left = std::min(limits::linger_bytes_per_turn, bytes_left_);
        bytes_left_ -= left;
        while (left > 0) {
            auto room = std::min(all_.trash_.size(), left);
            auto got = ::recv(socket_.number(), all_.trash_.data(), room, MSG_TRUNC | MSG_DONTWAIT);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) break;
            if (got <= 0) return false;
            left -= std::min(static_cast<std::size_t>(got), left);
        }
        bytes_left_ += left;
        return bytes_left_ > 0;
    }

    LingeringSockets& all_;
    Descriptor socket_;
    std::size_t bytes_left_ = limits::linger_bytes;
};

LingeringSockets::LingeringSockets(EventLoop& loop, std::vector<std::byte>& trash)
    : loop_(loop), trash_(trash) {}

LingeringSockets::~LingeringSockets() = default;

void LingeringSockets::add(Descriptor socket) {
    auto made = std::make_unique<Socket>(*this, std::move(socket));
    if (!made->begin()) return;
    if (sockets_.size() >= limits::lingering_sockets) remove(*sockets_.front());
    sockets_.push_back(std::move(made));
}

void LingeringSockets::remove(Socket& socket) {
    auto place = std::find_if(sockets_.begin(), sockets_.end(),
                              [&](const auto& one) { return one.get() == &socket; });
    socket.close();
    loop_.free_later(std::move(*place));  // it may be in a call
    sockets_.erase(place);
}

}  // namespace weft::linux
