// SPDX-License-Identifier: Apache-2.0
// Events and lives: what is told to whom, what vanishes, who waits for whom, and fork().
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "abi/cm_fixture.hpp"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using Lives = Meeting;

TEST_F(Lives, OfEventsEndWithTheirIdentifier) {
    auto active = ready_to_connect();
    auto param = saying("");
    ASSERT_EQ(rdma_connect(active.get(), &param), 0);
    ASSERT_TRUE(becomes_readable(server.raw->fd, 3000)) << "a request waits";
    listener.reset();
    EXPECT_FALSE(becomes_readable(server.raw->fd, 0)) << "and waits no more";
    EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_REJECTED");
}

TEST_F(Lives, OfIdentifiersLastUntilTheirEventsAreAcknowledged) {
    auto [active, passive] = connected();
    ASSERT_EQ(rdma_disconnect(active.get()), 0);
    auto event = client.next();
    ASSERT_TRUE(event);
    std::atomic<bool> destroyed = false;
    std::thread destroying([&, id = active.release()] {
        DestroyId()(id);
        destroyed = true;
    });
    std::this_thread::sleep_for(30ms);
    EXPECT_FALSE(destroyed);
    event.acknowledge();
    destroying.join();
}

TEST_F(Lives, OfRequestsCountForTheListener) {
    auto active = ready_to_connect();
    auto param = saying("");
    ASSERT_EQ(rdma_connect(active.get(), &param), 0);
    auto request = server.next();
    Id passive(request->id);
    passive.reset();  // does not wait for the event that brought it
    request.acknowledge();
}

TEST_F(Lives, OfConnectionsGoOnInAnotherChannel) {
    auto [active, passive] = connected();
    ASSERT_EQ(rdma_disconnect(active.get()), 0);
    ASSERT_TRUE(becomes_readable(server.raw->fd, 3000));
    Channel elsewhere;
    ASSERT_EQ(rdma_migrate_id(passive.get(), elsewhere.raw), 0);
    EXPECT_FALSE(becomes_readable(server.raw->fd, 0));
    EXPECT_EQ(passive->channel, elsewhere.raw);
    EXPECT_EQ(elsewhere.next().kind(), "RDMA_CM_EVENT_DISCONNECTED");
    passive.reset();
}

TEST_F(Lives, OfIdentifiersMayBecomeSynchronousAndBack) {
    auto id = make_id(client.raw);
    ASSERT_EQ(rdma_migrate_id(id.get(), nullptr), 0);
    EXPECT_NE(id->channel, client.raw);
    EndAddress to("127.0.0.1", port);
    EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, to.raw(), 2000), 0);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(rdma_migrate_id(id.get(), client.raw), 0);
    EXPECT_EQ(id->event, nullptr);
    EXPECT_EQ(rdma_resolve_route(id.get(), 2000), 0);
    EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_ROUTE_RESOLVED");
}

TEST_F(Lives, OfChannelsMayEndBeforeTheirIdentifiers) {
    auto* channel = rdma_create_event_channel();
    auto id = make_id(channel);
    rdma_destroy_event_channel(channel);
    EndAddress any("127.0.0.1");
    EXPECT_EQ(rdma_bind_addr(id.get(), any.raw()), 0);
}

TEST_F(Lives, OfThreadsAreNotSpentWaitingWhereTheDescriptorSaysSo) {
    ::fcntl(client.raw->fd, F_SETFL, O_NONBLOCK);
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(rdma_get_cm_event(client.raw, &event), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(rdma_get_cm_event(client.raw, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Lives, OfThreadsThatWaitCanBeCancelled) {
    pthread_t waiting;
    ASSERT_EQ(::pthread_create(
                  &waiting, nullptr,
                  [](void* channel) -> void* {
                      rdma_cm_event* event = nullptr;
                      rdma_get_cm_event(static_cast<rdma_event_channel*>(channel), &event);
                      return nullptr;
                  },
                  client.raw),
              0);
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(::pthread_cancel(waiting), 0);
    void* result = nullptr;
    EXPECT_EQ(::pthread_join(waiting, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    auto [active, passive] = connected();  // all goes on
}

TEST_F(Lives, OfWaitingThreadsOutlastTheChannelInPeace) {
    auto* channel = rdma_create_event_channel();
    std::thread waiting([channel] {
        rdma_cm_event* event = nullptr;
        rdma_get_cm_event(channel, &event);
    });
    std::this_thread::sleep_for(20ms);
    rdma_destroy_event_channel(channel);
    for (int i = 0; i < 200; ++i) rdma_destroy_event_channel(rdma_create_event_channel());
    waiting.detach();
    auto [active, passive] = connected();
}

TEST_F(Lives, OfWaitingThreadsOutlastASynchronousIdentifierToo) {
    auto before = open_descriptors();
    rdma_cm_id* lonely = nullptr;
    ASSERT_EQ(rdma_create_id(nullptr, &lonely, nullptr, RDMA_PS_TCP), 0);
    EndAddress at("127.0.0.1");
    ASSERT_EQ(rdma_bind_addr(lonely, at.raw()), 0);
    ASSERT_EQ(rdma_listen(lonely, 0), 0);
    std::thread waiting([lonely] {
        rdma_cm_id* asked = nullptr;
        rdma_get_request(lonely, &asked);
    });
    std::this_thread::sleep_for(20ms);
    ASSERT_EQ(rdma_destroy_id(lonely), 0);
    for (int i = 0; i < 200; ++i) make_id(nullptr);
    ::pthread_cancel(waiting.native_handle());
    waiting.join();
    for (int i = 0; i < 200; ++i) make_id(nullptr);
    EXPECT_LE(open_descriptors(), before) << "the channel has gone when nobody waited there";
}

TEST_F(Lives, OfRequestsBeyondTheBacklogAreShort) {
    constexpr std::size_t kept = 64;  // the fewest that a listener has room for
    auto busy = make_id(server.raw);
    EndAddress at("127.0.0.1");
    ASSERT_EQ(rdma_bind_addr(busy.get(), at.raw()), 0);
    ASSERT_EQ(rdma_listen(busy.get(), 1), 0);
    std::vector<Id> all;
    for (std::size_t i = 0; i < kept + 8; ++i)
        all.push_back(ready_to_connect(ntohs(rdma_get_src_port(busy.get()))));
    auto param = saying("");
    for (auto& each : all) ASSERT_EQ(rdma_connect(each.get(), &param), 0);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_REJECTED");
    EXPECT_FALSE(client.next(50)) << "the others are let in, if somebody likes";
    all.clear();
}

TEST_F(Lives, OfAParentAreForgottenByTheChild) {
    auto [active, passive] = connected();
    auto* inherited = client.raw;
    auto child = ::fork();
    if (child == 0) {
        rdma_cm_event* event = nullptr;
        rdma_cm_id* id = active.get();
        bool refuses = rdma_get_cm_event(inherited, &event) == -1 && errno == EIO &&
                       rdma_disconnect(id) == -1 && errno == EIO &&
                       rdma_create_id(inherited, &id, nullptr, RDMA_PS_TCP) == -1 && errno == EIO;
        rdma_cm_id* own = nullptr;
        refuses = refuses && rdma_create_id(nullptr, &own, nullptr, RDMA_PS_TCP) == 0 &&
                  rdma_migrate_id(own, inherited) == -1 && errno == EIO;
        bool forgets = rdma_destroy_id(active.get()) == 0;
        rdma_destroy_event_channel(inherited);
        // What is new is its own: a connection to the parent's listener, which rejects it.
        id = nullptr;
        EndAddress to("127.0.0.1", port);
        auto wish = small_queue_pair();
        bool works = rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) == 0 &&
                     rdma_resolve_addr(id, nullptr, to.raw(), 2000) == 0 &&
                     rdma_resolve_route(id, 2000) == 0 && rdma_create_qp(id, nullptr, &wish) == 0 &&
                     rdma_connect(id, nullptr) == -1 && errno == ECONNREFUSED;
        ::_exit((refuses ? 0 : 1) | (forgets ? 0 : 2) | (works ? 0 : 4));
    }
    auto request = server.next();
    EXPECT_EQ(request.kind(), "RDMA_CM_EVENT_CONNECT_REQUEST");
    Id(request->id).reset();
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(client.next(20)) << "the parent's connection has not noticed";
    EXPECT_EQ(rdma_disconnect(active.get()), 0);
    EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_DISCONNECTED");
}

/// Connects to itself and drops everything in an order that differs from time to time.
void connect_and_drop(unsigned seed) {
    Channel channel;
    auto listener = make_id(channel.raw);
    EndAddress at("127.0.0.1");
    ASSERT_EQ(rdma_bind_addr(listener.get(), at.raw()), 0);
    ASSERT_EQ(rdma_listen(listener.get(), 0), 0);
    EndAddress to("127.0.0.1", ntohs(rdma_get_src_port(listener.get())));
    auto active = make_id(channel.raw);
    ASSERT_EQ(rdma_resolve_addr(active.get(), nullptr, to.raw(), 2000), 0);
    channel.next();
    ASSERT_EQ(rdma_resolve_route(active.get(), 2000), 0);
    channel.next();
    give_queue_pair(*active);
    auto param = saying("");
    ASSERT_EQ(rdma_connect(active.get(), &param), 0);
    Id passive;
    if (seed & 1) {
        auto request = channel.next();
        ASSERT_EQ(request.kind(), "RDMA_CM_EVENT_CONNECT_REQUEST");
        passive.reset(request->id);
        request.acknowledge();
        give_queue_pair(*passive);
        if (seed & 2) {
            EXPECT_EQ(rdma_accept(passive.get(), nullptr), 0);
        }
    }
    if (seed & 4) rdma_disconnect(active.get());
    if (seed & 8) rdma_destroy_qp(active.get());
    if (seed & 16) listener.reset();
    if (seed & 32) passive.reset();
}

TEST_F(Lives, LeaveNothingBehind) {
    connect_and_drop(0);  // what is made once
    auto before = open_descriptors();
    for (unsigned seed = 0; seed < 64; ++seed) {
        connect_and_drop(seed);
        auto alone = make_id(nullptr);
    }
    // The peers' ends of the last may still be on their way.
    for (int i = 0; i < 300 && open_descriptors() > before; ++i) std::this_thread::sleep_for(10ms);
    EXPECT_LE(open_descriptors(), before);
}

TEST_F(Lives, MayEndInAnyOrderInManyThreads) {
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number)
        threads.emplace_back([number] {
            for (unsigned seed = 0; seed < 64; ++seed) connect_and_drop(seed + 17 * number);
        });
    for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft::test
