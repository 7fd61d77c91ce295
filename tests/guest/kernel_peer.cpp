// SPDX-License-Identifier: Apache-2.0
// The guest's end of peer_script.hpp: the stock libibverbs and librdmacm on the kernel's siw. Each
// connection has a thread of its own.
#include <arpa/inet.h>
#include <netdb.h>

#include <atomic>

#include "kernel_connection.hpp"

namespace {

using namespace peer;

sockaddr_storage address_of(const Options& options) {
    addrinfo wish{}, *found = nullptr;
    wish.ai_flags = AI_NUMERICHOST;
    auto port = std::to_string(options.port);
    must(getaddrinfo(options.host.c_str(), port.c_str(), &wish, &found), "getaddrinfo");
    sockaddr_storage address{};
    std::memcpy(&address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return address;
}

/// Waits for that event. Others are reported with what the other side said, and give null.
rdma_cm_event* await(rdma_event_channel* channel, rdma_cm_event_type wanted) {
    rdma_cm_event* event = nullptr;
    if (!is_readable(channel->fd, patience_ms)) die("nothing happens");
    must(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    if (event->event == wanted) return event;
    report(std::string("connection ") + (rdma_event_str(event->event) + 14));
    const auto& said = event->param.conn;
    report("private " +
           std::string(static_cast<const char*>(said.private_data), said.private_data_len));
    rdma_ack_cm_event(event);
    return nullptr;
}

rdma_conn_param parameters(std::string_view private_data) {
    rdma_conn_param wish{};
    wish.private_data = private_data.data();
    wish.private_data_len = static_cast<std::uint8_t>(private_data.size());
    wish.responder_resources = wish.initiator_depth = 16;
    return wish;
}

/// Everything of one client connection; `all` says when to begin.
bool connect_and_run(const Options& options, pthread_barrier_t& all) {
    auto address = address_of(options);
    auto* channel = must(rdma_create_event_channel(), "rdma_create_event_channel");
    rdma_cm_id* id = nullptr;
    must(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
    must(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&address), 5000), "resolve");
    rdma_ack_cm_event(must(await(channel, RDMA_CM_EVENT_ADDR_RESOLVED), "no address"));
    must(rdma_resolve_route(id, 5000), "rdma_resolve_route");
    rdma_ack_cm_event(must(await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), "no route"));
    Connection connection(id, options);
    auto wish = parameters(options.private_data);
    must(rdma_connect(id, &wish), "rdma_connect");
    auto* event = await(channel, RDMA_CM_EVENT_ESTABLISHED);
    if (event) {
        const auto& said = event->param.conn;
        report("established");
        report("private " +
               std::string(static_cast<const char*>(said.private_data), said.private_data_len));
        rdma_ack_cm_event(event);
    }
    bool good = event && connection.begin();
    pthread_barrier_wait(&all);
    good = good && connection.run();
    pthread_barrier_wait(&all);
    if (event) connection.leave();
    return good;
}

int connect_all(const Options& options) {
    pthread_barrier_t all;
    pthread_barrier_init(&all, nullptr, options.connections);
    std::atomic<bool> good = true;
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < options.connections; ++i)
        threads.emplace_back([&] {
            if (!connect_and_run(options, all)) good = false;
        });
    for (auto& thread : threads) thread.join();
    return good ? 0 : 1;
}

/// Everything of one accepted connection, but for its beginning: then its channel was the server's.
bool accept_and_serve(const Options& options, rdma_cm_id* id, const std::string& said) {
    must(rdma_migrate_id(id, must(rdma_create_event_channel(), "channel")), "rdma_migrate_id");
    Connection connection(id, options);
    auto wish = parameters(said);
    must(rdma_accept(id, &wish), "rdma_accept");
    auto* event = await(id->channel, RDMA_CM_EVENT_ESTABLISHED);
    if (!event) return false;
    rdma_ack_cm_event(event);
    report("established");
    return connection.begin() && connection.serve();
}

int serve(const Options& options) {
    auto address = address_of(options);
    auto* channel = must(rdma_create_event_channel(), "rdma_create_event_channel");
    rdma_cm_id* id = nullptr;
    must(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
    must(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)), "rdma_bind_addr");
    must(rdma_listen(id, 128), "rdma_listen");
    std::atomic<bool> good = true;
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < options.connections; ++i) {
        auto* event = must(await(channel, RDMA_CM_EVENT_CONNECT_REQUEST), "no request");
        auto* client = event->id;
        const auto& conn = event->param.conn;
        std::string said(static_cast<const char*>(conn.private_data), conn.private_data_len);
        rdma_ack_cm_event(event);
        report("private " + said);
        if (asks_for_rejection(said)) {
            auto why = rejection_of(said);
            must(rdma_reject(client, why.data(), static_cast<std::uint8_t>(why.size())), "reject");
        } else {
            threads.emplace_back([&, client, said] {
                if (!accept_and_serve(options, client, said)) good = false;
            });
        }
    }
    for (auto& thread : threads) thread.join();
    return good ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    auto options = parse_options(count, words);
    return options.serves ? serve(options) : connect_all(options);
}
