// SPDX-License-Identifier: Apache-2.0
// Two machines of a simulated world, each with a software RNIC, and what a test needs on each side:
// a queue pair, registered memory, a record of all that was told.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "sim/world.hpp"
#include "weft/rdma.hpp"

namespace weft::test {

inline constexpr auto every_right = Rights::local_write | Rights::remote_read |
                                    Rights::remote_write | Rights::remote_atomic |
                                    Rights::bind_windows;

/// Writes down what a connection says, and may do something about it.
class ConnectionRecord final : public verbs::ConnectionEvents {
public:
    std::vector<std::string> told;
    Error failure{};
    std::function<void()> then;  ///< after each; may destroy the connection, but not this

    void established() override { note("established"); }
    void rejected() override { note("rejected"); }
    void failed(Error why) override {
        failure = why;
        note("failed");
    }
    void disconnected() override { note("disconnected"); }

private:
    void note(const char* what) {
        told.push_back(what);
        if (then) then();
    }
};
using Told = std::vector<std::string>;

/// One side: what an application of one connection has. Destroyed in an order that is not the one
/// of its making, on purpose.
class RdmaSide {
public:
    static constexpr std::size_t memory_size = 4096;

    explicit RdmaSide(verbs::Device& the_device) : RdmaSide(the_device, the_device.make_domain()) {}
    RdmaSide(verbs::Device& the_device, std::shared_ptr<verbs::ProtectionDomain> in_domain)
        : device(the_device), domain(std::move(in_domain)) {
        completions = *device.make_completion_queue(256, {});
        region = std::move(*domain->register_memory(memory, every_right, Addressing::from_zero));
        make_queue_pair({});
    }

    void make_queue_pair(verbs::QueuePairOptions options) {
        options.domain = domain;
        if (!options.send_completions) options.send_completions = completions;
        if (!options.receive_completions) options.receive_completions = completions;
        queue_pair = std::move(*device.make_queue_pair(options));
    }
    Result<void> connect(const Address& address, const verbs::ConnectOptions& options = {}) {
        WEFT_TRY(connection, device.connect(address, *queue_pair, options, record));
        return {};
    }
    Result<void> accept(verbs::ConnectionRequest& request,
                        const verbs::ConnectOptions& options = {}) {
        WEFT_TRY(connection, request.accept(*queue_pair, options, record));
        return {};
    }
    Result<void> send(std::uint64_t id, std::uint32_t size = 8) {
        std::array local{region->local(0, size)};
        return queue_pair->post(verbs::SendRequest{.id = id, .local = local});
    }
    Result<void> receive(std::uint64_t id, std::uint32_t size = 64) {
        std::array local{region->local(1024, size)};
        return queue_pair->post(verbs::ReceiveRequest{id, local});
    }
    /// An operation on the peer's memory, from or to the first bytes of ours.
    Result<void> act(std::uint64_t id, verbs::Operation operation, verbs::RemoteMemory remote,
                     std::uint32_t size = 8) {
        std::array local{region->local(0, size)};
        return queue_pair->post(
            verbs::SendRequest{.id = id, .operation = operation, .local = local, .remote = remote});
    }
    std::vector<verbs::Completion> poll() { return poll(*completions); }
    static std::vector<verbs::Completion> poll(verbs::CompletionQueue& queue) {
        std::vector<verbs::Completion> into(256);
        into.resize(queue.poll(into));
        return into;
    }
    /// What has completed since, as "id:status".
    std::string ends() {
        std::string text;
        for (auto& each : poll())
            text += (text.empty() ? "" : " ") + std::to_string(each.id) + ":" + name(each.status);
        return text;
    }
    static const char* name(verbs::Status status) {
        static constexpr std::array names{"success",          "local_length",   "local_operation",
                                          "local_protection", "window_binding", "remote_access",
                                          "remote_operation", "remote_invalid", "flushed"};
        return names[static_cast<std::size_t>(status)];
    }
    verbs::QueuePairState state() const { return queue_pair->state(); }

    verbs::Device& device;
    ConnectionRecord record;
    std::vector<std::byte> memory = std::vector<std::byte>(memory_size);
    std::unique_ptr<verbs::Connection> connection;
    std::shared_ptr<verbs::ProtectionDomain> domain;
    std::shared_ptr<verbs::CompletionQueue> completions;
    std::unique_ptr<verbs::QueuePair> queue_pair;
    std::unique_ptr<verbs::MemoryRegion> region;
};

class RdmaTest : public testing::Test {
protected:
    static constexpr std::uint64_t plenty = 10'000'000;  ///< of events
    const Address elm = Address::tcp("elm", 7174);

    std::unique_ptr<verbs::Device> make_device(const char* host,
                                               std::vector<verbs::AsyncEvent>& events) {
        return verbs::make_device(
            world.host(host),
            {.on_event = [&events](const verbs::AsyncEvent& event) { events.push_back(event); }});
    }
    /// Listens, and keeps what comes.
    void listen() {
        listener = std::move(
            *there->listen(elm, [this](std::unique_ptr<verbs::ConnectionRequest> request) {
                requests.push_back(std::move(request));
            }));
    }
    /// Connects the two and accepts.
    void join(RdmaSide& from, RdmaSide& to, const verbs::ConnectOptions& options = {}) {
        if (!listener) listen();
        ASSERT_TRUE(from.connect(elm, options));
        run_until([&] { return !requests.empty(); });
        ASSERT_FALSE(requests.empty());
        ASSERT_TRUE(to.accept(*requests.back(), options));
        requests.clear();
        run();
        ASSERT_EQ(from.record.told, Told{"established"});
        ASSERT_EQ(to.record.told, Told{"established"});
    }
    void run() { ASSERT_TRUE(world.run_until_quiet(plenty)); }
    void run_until(const std::function<bool()>& done) {
        for (std::uint64_t i = 0; i < plenty && !done() && world.step(); ++i) {
        }
    }
    static std::size_t count(const std::vector<verbs::AsyncEvent>& events,
                             verbs::AsyncEvent::Kind kind) {
        return static_cast<std::size_t>(
            std::ranges::count(events, kind, [](auto& each) { return each.kind; }));
    }

    sim::World world{1};
    std::vector<verbs::AsyncEvent> events_here, events_there;
    std::unique_ptr<verbs::Device> here = make_device("oak", events_here);
    std::unique_ptr<verbs::Device> there = make_device("elm", events_there);
    std::unique_ptr<Listener> listener;
    std::vector<std::unique_ptr<verbs::ConnectionRequest>> requests;
};

}  // namespace weft::test
