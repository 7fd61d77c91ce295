// SPDX-License-Identifier: Apache-2.0
// What a test of librdmacm starts from, as a program of others would write it: channels, and
// identifiers of this process that speak to each other over the loopback.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "abi/counting.hpp"

namespace weft::test {

struct EndAddress {
    sockaddr_storage storage{};

    explicit EndAddress(const char* number, std::uint16_t port = 0) {
        if (std::strchr(number, ':')) {
            auto& name = reinterpret_cast<sockaddr_in6&>(storage);
            name.sin6_family = AF_INET6;
            name.sin6_port = htons(port);
            ::inet_pton(AF_INET6, number, &name.sin6_addr);
        } else {
            auto& name = reinterpret_cast<sockaddr_in&>(storage);
            name.sin_family = AF_INET;
            name.sin_port = htons(port);
            ::inet_pton(AF_INET, number, &name.sin_addr);
        }
    }
    sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
};

inline bool becomes_readable(int descriptor, int timeout_ms) {
    pollfd source{descriptor, POLLIN, 0};
    return ::poll(&source, 1, timeout_ms) == 1;
}

/// An event that is acknowledged when this goes.
class Event {
public:
    explicit Event(rdma_cm_event* event) : event_(event) {}
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    ~Event() { acknowledge(); }
    void acknowledge() {
        if (!event_) return;
        EXPECT_EQ(rdma_ack_cm_event(std::exchange(event_, nullptr)), 0);
    }
    rdma_cm_event* operator->() const { return event_; }
    explicit operator bool() const { return event_; }
    /// "RDMA_CM_EVENT_ESTABLISHED", or "nothing".
    std::string kind() const { return event_ ? rdma_event_str(event_->event) : "nothing"; }
    std::string_view told() const {
        return {static_cast<const char*>(event_->param.conn.private_data),
                event_->param.conn.private_data_len};
    }

private:
    rdma_cm_event* event_;
};

class Channel {
public:
    Channel() : raw(rdma_create_event_channel()) { EXPECT_NE(raw, nullptr); }
    ~Channel() { rdma_destroy_event_channel(raw); }
    Channel(const Channel&) = delete;

    Event next(int timeout_ms = 5000) {
        rdma_cm_event* event = nullptr;
        if (!becomes_readable(raw->fd, timeout_ms)) return Event(nullptr);
        EXPECT_EQ(rdma_get_cm_event(raw, &event), 0);
        return Event(event);
    }

    rdma_event_channel* raw;
};

struct DestroyId {
    void operator()(rdma_cm_id* id) const {
        if (id->qp) rdma_destroy_qp(id);
        EXPECT_EQ(rdma_destroy_id(id), 0);
    }
};
using Id = std::unique_ptr<rdma_cm_id, DestroyId>;

inline Id make_id(rdma_event_channel* channel, void* context = nullptr) {
    rdma_cm_id* made = nullptr;
    EXPECT_EQ(rdma_create_id(channel, &made, context, RDMA_PS_TCP), 0) << std::strerror(errno);
    return Id(made);
}

inline ibv_qp_init_attr small_queue_pair() {
    ibv_qp_init_attr wish{};
    wish.cap = {8, 8, 2, 2, 32};
    wish.qp_type = IBV_QPT_RC;
    return wish;
}

inline void give_queue_pair(rdma_cm_id& id) {
    auto wish = small_queue_pair();
    ASSERT_EQ(rdma_create_qp(&id, nullptr, &wish), 0) << std::strerror(errno);
}

inline rdma_conn_param saying(std::string_view words) {
    rdma_conn_param param{};
    param.private_data = words.data();
    param.private_data_len = static_cast<std::uint8_t>(words.size());
    param.responder_resources = 4;
    param.initiator_depth = 2;
    return param;
}

/// A listener, and what is needed to connect to it. Each side has a channel.
class Meeting : public testing::Test {
protected:
    Meeting() { listen("127.0.0.1"); }

    void listen(const char* number) {
        host = number;
        EndAddress at(number);
        listener = make_id(server.raw);
        ASSERT_EQ(rdma_bind_addr(listener.get(), at.raw()), 0) << std::strerror(errno);
        ASSERT_EQ(rdma_listen(listener.get(), 0), 0) << std::strerror(errno);
        port = ntohs(rdma_get_src_port(listener.get()));
    }
    /// With the route resolved, and a queue pair.
    Id ready_to_connect() { return ready_to_connect(port); }
    Id ready_to_connect(std::uint16_t to) {
        auto id = make_id(client.raw, this);
        EndAddress at(host.c_str(), to);
        EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, at.raw(), 2000), 0) << std::strerror(errno);
        EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_ADDR_RESOLVED");
        EXPECT_EQ(rdma_resolve_route(id.get(), 2000), 0) << std::strerror(errno);
        EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_ROUTE_RESOLVED");
        give_queue_pair(*id);
        return id;
    }
    /// `active` has connected, and the other is what the listener made of it, with a queue pair.
    Id request_of(rdma_cm_id& active) {
        auto param = saying("");
        EXPECT_EQ(rdma_connect(&active, &param), 0) << std::strerror(errno);
        auto event = server.next();
        EXPECT_EQ(event.kind(), "RDMA_CM_EVENT_CONNECT_REQUEST");
        Id passive(event->id);
        give_queue_pair(*passive);
        return passive;
    }
    std::pair<Id, Id> connected() {
        auto active = ready_to_connect();
        auto passive = request_of(*active);
        EXPECT_EQ(rdma_accept(passive.get(), nullptr), 0) << std::strerror(errno);
        EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_ESTABLISHED");
        EXPECT_EQ(server.next().kind(), "RDMA_CM_EVENT_ESTABLISHED");
        return {std::move(active), std::move(passive)};
    }

    Channel server, client;
    std::string host;
    std::uint16_t port = 0;
    Id listener;
};

}  // namespace weft::test
