// SPDX-License-Identifier: Apache-2.0
// RDMA in sixty lines: one side offers memory, the other writes into it and says so.
//
// Both sides live in this program, on one event loop; a real one would have one of them. Run it:
//     build/release/bin/hello_rdma
#include <cstdio>
#include <cstring>
#include <vector>

#include "weft/linux_world.hpp"
#include "weft/rdma.hpp"

using namespace weft;

struct Side final : verbs::ConnectionEvents {
    Side(verbs::Device& device, const char* side) : name(side), memory(64) {
        auto domain = device.make_domain();
        region = *domain->register_memory(memory, Rights::local_write | Rights::remote_write);
        completions = *device.make_completion_queue(16, nullptr);
        queue_pair = *device.make_queue_pair({.domain = domain,
                                              .send_completions = completions,
                                              .receive_completions = completions,
                                              .shared_receives = nullptr});
    }
    void established() override { std::printf("%s: connected\n", name), is_up = true; }
    void rejected() override { std::printf("%s: not wanted\n", name), is_over = true; }
    void failed(Error) override { std::printf("%s: nobody there\n", name), is_over = true; }
    void disconnected() override { std::printf("%s: goodbye\n", name), is_over = true; }

    const char* name;
    std::vector<std::byte> memory;
    std::unique_ptr<verbs::MemoryRegion> region;
    std::shared_ptr<verbs::CompletionQueue> completions;
    std::unique_ptr<verbs::QueuePair> queue_pair;
    std::unique_ptr<verbs::Connection> connection;
    bool is_up = false, is_over = false;
};

int main() {
    auto world = *open_linux_world({});
    auto device = verbs::make_device(*world, {});
    Side server(*device, "server"), client(*device, "client");

    // The server posts a receive, and tells whoever connects where its memory is.
    auto offer = server.region->remote();
    (void)server.queue_pair->post(verbs::ReceiveRequest{});
    auto listener = *device->listen(Address::tcp("127.0.0.1", 0), [&](auto request) {
        auto where = std::as_bytes(std::span(&offer, 1));
        server.connection = *request->accept(*server.queue_pair, {.private_data = where}, server);
    });
    client.connection = *device->connect(listener->address(), *client.queue_pair, {}, client);
    world->run_until([&] { return client.is_up || client.is_over; });
    if (!client.is_up) return 1;

    // The client writes straight into that memory. The empty Send behind it says "it is there".
    verbs::RemoteMemory there;
    std::memcpy(&there, client.connection->peer_private_data().data(), sizeof there);
    std::strcpy(reinterpret_cast<char*>(client.memory.data()), "hello from far away");
    auto text = client.region->local(0, 20);
    (void)client.queue_pair->post(verbs::SendRequest{
        .operation = verbs::Operation::write, .local = {&text, 1}, .remote = there});
    (void)client.queue_pair->post(verbs::SendRequest{});

    verbs::Completion received;
    world->run_until([&] { return server.completions->poll({&received, 1}) == 1; });
    std::printf("server: found '%s' in my memory\n", reinterpret_cast<char*>(server.memory.data()));
    client.connection->disconnect();
    world->run_until([&] { return client.is_over && server.is_over; });
}
