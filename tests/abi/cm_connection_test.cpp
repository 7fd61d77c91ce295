// SPDX-License-Identifier: Apache-2.0
// Connections: how they are asked for, answered, refused and ended.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "abi/cm_fixture.hpp"

namespace weft::test {
namespace {

using Connections = Meeting;

TEST_F(Connections, CarryPrivateDataAndDepthsBothWays) {
    listener->context = this;
    auto active = ready_to_connect();
    auto question = saying("may I?"), answer = saying("do come in");
    question.responder_resources = 7;
    question.initiator_depth = 3;
    ASSERT_EQ(rdma_connect(active.get(), &question), 0) << std::strerror(errno);

    auto request = server.next();
    ASSERT_EQ(request.kind(), "RDMA_CM_EVENT_CONNECT_REQUEST");
    EXPECT_EQ(request.told(), "may I?");
    EXPECT_EQ(request->listen_id, listener.get());
    EXPECT_EQ(request->param.conn.initiator_depth, 7) << "as many as the other lets us have";
    EXPECT_EQ(request->param.conn.responder_resources, 3);
    Id passive(request->id);
    EXPECT_EQ(passive->context, this) << "as its listener's";
    EXPECT_EQ(passive->channel, server.raw);
    EXPECT_EQ(passive->verbs, active->verbs);
    EXPECT_EQ(rdma_get_dst_port(passive.get()), rdma_get_src_port(active.get()));
    EXPECT_EQ(rdma_get_src_port(passive.get()), rdma_get_dst_port(active.get()));
    give_queue_pair(*passive);
    ASSERT_EQ(rdma_accept(passive.get(), &answer), 0) << std::strerror(errno);

    auto established = client.next();
    ASSERT_EQ(established.kind(), "RDMA_CM_EVENT_ESTABLISHED");
    EXPECT_EQ(established->id, active.get());
    EXPECT_EQ(established->listen_id, nullptr);
    EXPECT_EQ(established->status, 0);
    EXPECT_EQ(established.told(), "do come in");
    auto accepted = server.next();
    ASSERT_EQ(accepted.kind(), "RDMA_CM_EVENT_ESTABLISHED");
    EXPECT_EQ(accepted->id, passive.get());
    EXPECT_EQ(active->qp->state, IBV_QPS_RTS);
    EXPECT_EQ(passive->qp->state, IBV_QPS_RTS);
    request.acknowledge();
}

/// Of this process's connected sockets with this port at either end: what it is they mark packets
/// with.
std::vector<int> marks_of_sockets(std::uint16_t port) {
    std::vector<int> marks;
    for (int number = 3; number < 1024; ++number) {
        sockaddr_in own{}, peer{};
        socklen_t own_size = sizeof own, peer_size = sizeof peer, size = sizeof(int);
        if (getpeername(number, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
        getsockname(number, reinterpret_cast<sockaddr*>(&own), &own_size);
        if (own.sin_family != AF_INET) continue;
        if (ntohs(own.sin_port) != port && ntohs(peer.sin_port) != port) continue;
        int mark = -1;
        getsockopt(number, IPPROTO_IP, IP_TOS, &mark, &size);
        marks.push_back(mark);
    }
    return marks;
}

TEST_F(Connections, MarkTheirPacketsAsTheApplicationWishes) {
    std::uint8_t here = 0x28, there = 0x68;
    ASSERT_EQ(rdma_set_option(listener.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &there, 1), 0);
    auto active = ready_to_connect();
    ASSERT_EQ(rdma_set_option(active.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &here, 1), 0);
    auto passive = request_of(*active);
    ASSERT_EQ(rdma_accept(passive.get(), nullptr), 0) << std::strerror(errno);
    EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_ESTABLISHED");
    auto marks = marks_of_sockets(port);
    std::ranges::sort(marks);
    EXPECT_EQ(marks, (std::vector<int>{here, there})) << "the listener's newcomer has its mark";
}

TEST_F(Connections, LetSendsBePostedAsSoonAsTheyAreAccepted) {
    auto active = ready_to_connect();
    char told[8] = "weft", heard[8] = "";
    auto* from = rdma_reg_msgs(active.get(), told, sizeof told);
    auto* to = rdma_reg_msgs(active.get(), heard, sizeof heard);
    ASSERT_EQ(rdma_post_recv(active.get(), nullptr, heard, sizeof heard, to), 0);
    auto passive = request_of(*active);
    ASSERT_EQ(rdma_accept(passive.get(), nullptr), 0);
    // Both are of one device, and so have one default domain.
    ASSERT_EQ(rdma_post_send(passive.get(), nullptr, told, sizeof told, from, 0), 0);
    ibv_wc done{};
    ASSERT_EQ(rdma_get_recv_comp(active.get(), &done), 1);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_STREQ(heard, "weft");
    active.reset();
    passive.reset();
    rdma_dereg_mr(from);
    rdma_dereg_mr(to);
}

TEST_F(Connections, WorkOverBothFamilies) {
    listen("::1");
    auto [active, passive] = connected();
    EXPECT_EQ(rdma_get_peer_addr(passive.get())->sa_family, AF_INET6);
}

TEST_F(Connections, AreRejectedWithAReason) {
    auto active = ready_to_connect();
    auto param = saying("");
    ASSERT_EQ(rdma_connect(active.get(), &param), 0);
    auto request = server.next();
    Id passive(request->id);
    request.acknowledge();
    ASSERT_EQ(rdma_reject(passive.get(), "no", 2), 0) << std::strerror(errno);
    auto rejected = client.next();
    ASSERT_EQ(rejected.kind(), "RDMA_CM_EVENT_REJECTED");
    EXPECT_EQ(rejected->status, -ECONNREFUSED);
    EXPECT_EQ(rejected.told(), "no");
    EXPECT_EQ(active->qp->state, IBV_QPS_ERR);
    EXPECT_EQ(rdma_connect(active.get(), &param), -1) << "it has had its chance";
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Connections, AreRejectedByWhoDropsTheRequest) {
    auto active = ready_to_connect();
    request_of(*active).reset();
    EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_REJECTED");
}

TEST_F(Connections, AreRejectedWhereNobodyListens) {
    listener.reset();
    auto active = ready_to_connect();
    auto param = saying("");
    ASSERT_EQ(rdma_connect(active.get(), &param), 0);
    auto rejected = client.next();
    EXPECT_EQ(rejected.kind(), "RDMA_CM_EVENT_REJECTED");
    EXPECT_EQ(rejected->status, -ECONNREFUSED);
}

TEST_F(Connections, WaitAMomentForWhoDoesNotListenYet) {
    auto late = make_id(server.raw);
    EndAddress at("127.0.0.1");
    ASSERT_EQ(rdma_bind_addr(late.get(), at.raw()), 0);
    auto active = ready_to_connect(ntohs(rdma_get_src_port(late.get())));
    auto param = saying("I am early");
    ASSERT_EQ(rdma_connect(active.get(), &param), 0);
    EXPECT_FALSE(client.next(10));
    ASSERT_EQ(rdma_listen(late.get(), 1), 0);
    auto request = server.next();
    ASSERT_EQ(request.kind(), "RDMA_CM_EVENT_CONNECT_REQUEST");
    EXPECT_EQ(request.told(), "I am early");
    Id(request->id).reset();
}

TEST_F(Connections, DoNotWaitForThemWhenTheyAreGivenUp) {
    listener.reset();
    auto active = ready_to_connect();
    auto param = saying("");
    ASSERT_EQ(rdma_connect(active.get(), &param), 0);
    EXPECT_FALSE(client.next(10));
    ASSERT_EQ(rdma_disconnect(active.get()), 0);
    EXPECT_EQ(client.next(0).kind(), "RDMA_CM_EVENT_REJECTED");
    EXPECT_FALSE(client.next(100)) << "and no more of it";
}

TEST_F(Connections, FlushTheReceivesOfWhoIsRejected) {
    auto active = ready_to_connect();
    char heard[8];
    auto* to = rdma_reg_msgs(active.get(), heard, sizeof heard);
    ASSERT_EQ(rdma_post_recv(active.get(), nullptr, heard, sizeof heard, to), 0);
    request_of(*active).reset();
    EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_REJECTED");
    ibv_wc done{};
    ASSERT_EQ(rdma_get_recv_comp(active.get(), &done), 1);
    EXPECT_EQ(done.status, IBV_WC_WR_FLUSH_ERR);
    active.reset();
    rdma_dereg_mr(to);
}

/// Accepts one connection of TCP, says something and hangs up.
std::uint16_t someone_else(std::thread& thread, std::string words) {
    int plain = ::socket(AF_INET, SOCK_STREAM, 0);
    EndAddress at("127.0.0.1");
    EXPECT_EQ(::bind(plain, at.raw(), sizeof(sockaddr_in)), 0);
    EXPECT_EQ(::listen(plain, 1), 0);
    socklen_t size = sizeof at.storage;
    ::getsockname(plain, at.raw(), &size);
    thread = std::thread([plain, words] {
        int peer = ::accept(plain, nullptr, nullptr);
        char question[20];
        EXPECT_EQ(::recv(peer, question, sizeof question, MSG_WAITALL), 20);
        EXPECT_EQ(::send(peer, words.data(), words.size(), 0), static_cast<ssize_t>(words.size()));
        ::close(peer);
        ::close(plain);
    });
    return ntohs(reinterpret_cast<sockaddr_in&>(at.storage).sin_port);
}

TEST_F(Connections, FailWhereSomeoneElseAnswers) {
    for (auto [words, kind] :
         {std::pair{"", "RDMA_CM_EVENT_REJECTED"},
          std::pair{"HTTP/1.1 400 Bad Request\r\n", "RDMA_CM_EVENT_CONNECT_ERROR"}}) {
        std::thread thread;
        auto active = ready_to_connect(someone_else(thread, words));
        auto param = saying("");
        ASSERT_EQ(rdma_connect(active.get(), &param), 0);
        auto event = client.next();
        EXPECT_EQ(event.kind(), kind) << words;
        EXPECT_LT(event->status, 0);
        thread.join();
    }
}

/// An MPA request (RFC 6581) of one who will show that it is ready, in peer-to-peer mode.
std::string peer_to_peer_request() {
    return std::string("MPA ID Req Frame") + std::string("\x50\x02\x00\x04\x80\x04\xc0\x04", 8);
}

/// A socket connected to a port of the loopback, closed when it goes.
struct PlainPeer {
    explicit PlainPeer(std::uint16_t port) : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
        EndAddress at("127.0.0.1", port);
        EXPECT_EQ(::connect(socket, at.raw(), sizeof(sockaddr_in)), 0) << std::strerror(errno);
    }
    ~PlainPeer() { leave(); }
    void say(const std::string& octets) const {
        EXPECT_EQ(::write(socket, octets.data(), octets.size()),
                  static_cast<ssize_t>(octets.size()));
    }
    void leave() {
        if (socket >= 0) ::close(std::exchange(socket, -1));
    }
    int socket;
};

TEST_F(Connections, AreLostByWhoLeavesBeforeItIsReady) {
    for (bool reads_the_answer : {true, false}) {
        PlainPeer peer(port);
        peer.say(peer_to_peer_request());
        auto request = server.next();
        ASSERT_EQ(request.kind(), "RDMA_CM_EVENT_CONNECT_REQUEST");
        Id passive(request->id);
        request.acknowledge();
        give_queue_pair(*passive);
        ASSERT_EQ(rdma_accept(passive.get(), nullptr), 0) << std::strerror(errno);
        char answer[20];
        if (reads_the_answer) {
            EXPECT_EQ(::recv(peer.socket, answer, sizeof answer, MSG_WAITALL), 20);
        }
        EXPECT_EQ(server.next(100).kind(), "nothing") << "it is not ready yet";
        peer.leave();  // with a reset, where the answer was not read
        auto established = server.next();
        EXPECT_EQ(established.kind(), "RDMA_CM_EVENT_ESTABLISHED");
        EXPECT_EQ(established->id, passive.get());
        EXPECT_EQ(established->status, 0);
        established.acknowledge();
        EXPECT_EQ(server.next().kind(), "RDMA_CM_EVENT_DISCONNECTED");
        EXPECT_EQ(passive->qp->state, IBV_QPS_ERR);
        EXPECT_EQ(rdma_disconnect(passive.get()), 0);
    }
    connected();
}

TEST_F(Connections, TakeNoMoreThanTheDeviceHas) {
    auto active = ready_to_connect();
    auto param = saying("");
    param.initiator_depth = 200;
    EXPECT_EQ(rdma_connect(active.get(), &param), -1);
    EXPECT_EQ(errno, EINVAL);
    param.initiator_depth = RDMA_MAX_INIT_DEPTH;
    EXPECT_EQ(rdma_connect(active.get(), &param), 0) << "which is: as many as there are";
    rdma_destroy_qp(active.get());
}

TEST_F(Connections, EndForBothWhoeverEndsThem) {
    for (bool by_active : {true, false}) {
        auto [active, passive] = connected();
        ASSERT_EQ(rdma_disconnect(by_active ? active.get() : passive.get()), 0);
        for (auto* side : {&client, &server}) {
            EXPECT_EQ(side->next().kind(), "RDMA_CM_EVENT_DISCONNECTED");
            EXPECT_EQ(side->next().kind(), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
            EXPECT_FALSE(side->next(20)) << "no more to be told";
        }
        EXPECT_EQ(active->qp->state, IBV_QPS_ERR);
        EXPECT_EQ(passive->qp->state, IBV_QPS_ERR);
        EXPECT_EQ(rdma_disconnect(active.get()), 0) << "an end twice is an end";
    }
}

TEST_F(Connections, EndWithTheirQueuePairOrTheirIdentifier) {
    {
        auto [active, passive] = connected();
        rdma_destroy_qp(active.get());
        EXPECT_EQ(server.next().kind(), "RDMA_CM_EVENT_DISCONNECTED");
        EXPECT_EQ(client.next().kind(), "RDMA_CM_EVENT_DISCONNECTED");
    }
    auto [active, passive] = connected();
    auto* survivor = active->qp;
    active->qp = nullptr;
    active.reset();
    EXPECT_EQ(server.next().kind(), "RDMA_CM_EVENT_DISCONNECTED");
    EXPECT_EQ(survivor->state, IBV_QPS_ERR);
    EXPECT_EQ(ibv_destroy_qp(survivor), 0);
}

TEST_F(Connections, EndAfterAllThatWasSent) {
    auto active = ready_to_connect();
    char told[4096] = "the last words", heard[4096] = "";
    auto* from = rdma_reg_msgs(active.get(), told, sizeof told);
    auto* to = rdma_reg_msgs(active.get(), heard, sizeof heard);
    auto passive = request_of(*active);
    ASSERT_EQ(rdma_post_recv(passive.get(), nullptr, heard, sizeof heard, to), 0);
    ASSERT_EQ(rdma_accept(passive.get(), nullptr), 0);
    ASSERT_EQ(client.next().kind(), "RDMA_CM_EVENT_ESTABLISHED");
    ASSERT_EQ(rdma_post_send(active.get(), nullptr, told, sizeof told, from, IBV_SEND_SIGNALED), 0);
    ibv_wc done{};
    ASSERT_EQ(rdma_get_send_comp(active.get(), &done), 1);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    ASSERT_EQ(rdma_disconnect(active.get()), 0);
    active.reset();
    ASSERT_EQ(rdma_get_recv_comp(passive.get(), &done), 1);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_STREQ(heard, "the last words");
    passive.reset();
    rdma_dereg_mr(from);
    rdma_dereg_mr(to);
}

TEST_F(Connections, TakeAQueuePairThatTheApplicationMadeItself) {
    auto active = ready_to_connect();
    auto* own = std::exchange(active->qp, nullptr);
    auto param = saying("");
    EXPECT_EQ(rdma_connect(active.get(), &param), -1) << "there is none with that number";
    EXPECT_EQ(errno, EINVAL);
    param.qp_num = own->qp_num;
    ASSERT_EQ(rdma_connect(active.get(), &param), 0) << std::strerror(errno);
    auto request = server.next();
    Id passive(request->id);
    request.acknowledge();
    give_queue_pair(*passive);
    ASSERT_EQ(rdma_accept(passive.get(), nullptr), 0);
    ASSERT_EQ(client.next().kind(), "RDMA_CM_EVENT_ESTABLISHED");
    EXPECT_EQ(rdma_establish(active.get()), 0);
    ibv_qp_attr attributes{};
    int mask = -1;
    attributes.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(rdma_init_qp_attr(active.get(), &attributes, &mask), 0);
    EXPECT_EQ(ibv_modify_qp(own, &attributes, mask), 0);
    active->qp = own;
}

TEST_F(Connections, TakeAQueuePairThatWasReset) {
    auto [first, first_peer] = connected();
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(first->qp, &attributes, IBV_QP_STATE), 0);
    auto second = make_id(client.raw);
    EndAddress at("127.0.0.1", port);
    ASSERT_EQ(rdma_resolve_addr(second.get(), nullptr, at.raw(), 2000), 0);
    std::string told;
    while (told != "RDMA_CM_EVENT_ADDR_RESOLVED") {
        ASSERT_NE(told, "nothing");
        told = client.next().kind();
    }
    ASSERT_EQ(rdma_resolve_route(second.get(), 2000), 0);
    auto param = saying("");
    param.qp_num = first->qp->qp_num;
    ASSERT_EQ(rdma_connect(second.get(), &param), 0) << std::strerror(errno);
    for (;;) {
        auto event = server.next();
        ASSERT_TRUE(event);
        if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) continue;  // of the first one's end
        Id passive(event->id);
        event.acknowledge();
        give_queue_pair(*passive);
        ASSERT_EQ(rdma_accept(passive.get(), nullptr), 0);
        while (told != "RDMA_CM_EVENT_ESTABLISHED") {
            ASSERT_NE(told, "nothing");
            told = client.next().kind();
        }
        // The last of the first connection ends nothing of the second.
        rdma_disconnect(first.get());
        EXPECT_EQ(first->qp->state, IBV_QPS_RTS);
        break;
    }
}

class Endpoints : public testing::Test {
protected:
    Endpoints() {
        rdma_addrinfo hints{};
        hints.ai_flags = RAI_PASSIVE;
        hints.ai_port_space = RDMA_PS_TCP;
        EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "0", &hints, &own), 0);
        auto wish = small_queue_pair();
        EXPECT_EQ(rdma_create_ep(&listener, own, nullptr, &wish), 0) << std::strerror(errno);
        EXPECT_EQ(rdma_listen(listener, 0), 0);
        hints.ai_flags = 0;
        auto port = std::to_string(ntohs(rdma_get_src_port(listener)));
        EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &other), 0);
        wish = small_queue_pair();
        EXPECT_EQ(rdma_create_ep(&active, other, nullptr, &wish), 0) << std::strerror(errno);
    }
    ~Endpoints() override {
        for (auto* each : {active, listener})
            if (each) rdma_destroy_ep(each);
        rdma_freeaddrinfo(own);
        rdma_freeaddrinfo(other);
    }

    rdma_addrinfo *own = nullptr, *other = nullptr;
    rdma_cm_id *listener = nullptr, *active = nullptr;
};

TEST_F(Endpoints, AreConnectedByCallsThatWait) {
    rdma_cm_id* passive = nullptr;
    std::thread accepting([&] {
        EXPECT_EQ(rdma_get_request(listener, &passive), 0) << std::strerror(errno);
        EXPECT_NE(passive->qp, nullptr) << "as the listener was told";
        EXPECT_EQ(passive->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
        EXPECT_EQ(rdma_accept(passive, nullptr), 0) << std::strerror(errno);
        EXPECT_EQ(passive->event->event, RDMA_CM_EVENT_ESTABLISHED);
    });
    EXPECT_EQ(rdma_connect(active, nullptr), 0) << std::strerror(errno);
    accepting.join();
    EXPECT_EQ(active->event->event, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(rdma_disconnect(passive), 0);
    EXPECT_EQ(passive->event->event, RDMA_CM_EVENT_DISCONNECTED);
    EXPECT_EQ(rdma_disconnect(active), 0) << "by whomever it was ended";
    EXPECT_EQ(rdma_disconnect(active), 0) << "and nothing is left to wait for";
    rdma_destroy_ep(passive);
}

TEST_F(Endpoints, SayWhyTheyWereNotConnected) {
    std::thread rejecting([&] {
        rdma_cm_id* passive = nullptr;
        EXPECT_EQ(rdma_get_request(listener, &passive), 0);
        EXPECT_EQ(rdma_reject(passive, "no", 2), 0);
        rdma_destroy_ep(passive);
    });
    EXPECT_EQ(rdma_connect(active, nullptr), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    EXPECT_EQ(active->event->event, RDMA_CM_EVENT_REJECTED);
    rejecting.join();
}

TEST_F(Endpoints, MayBeAskedForRequestsByManyThreads) {
    constexpr std::size_t threads_count = 16, each = 8;
    Channel channel;
    std::vector<Id> asking;
    for (std::size_t i = 0; i < threads_count * each; ++i) {
        asking.push_back(make_id(channel.raw));
        ASSERT_EQ(rdma_resolve_addr(asking.back().get(), nullptr, other->ai_dst_addr, 2000), 0);
        ASSERT_EQ(rdma_resolve_route(asking.back().get(), 2000), 0);
        give_queue_pair(*asking.back());
        ASSERT_EQ(rdma_connect(asking.back().get(), nullptr), 0);
    }
    std::array<std::vector<rdma_cm_id*>, threads_count> taken;
    std::vector<std::thread> threads;
    std::atomic<bool> may_begin{false};
    for (auto& mine : taken)
        threads.emplace_back([&] {
            while (!may_begin) std::this_thread::yield();
            while (mine.size() < each) {
                rdma_cm_id* passive = nullptr;
                ASSERT_EQ(rdma_get_request(listener, &passive), 0) << std::strerror(errno);
                ASSERT_EQ(passive->event->id, passive);
                mine.push_back(passive);
            }
        });
    may_begin = true;
    for (auto& thread : threads) thread.join();
    std::set<rdma_cm_id*> all;
    for (auto& mine : taken) all.insert(mine.begin(), mine.end());
    EXPECT_EQ(all.size(), asking.size()) << "none was given twice";
    for (auto* passive : all) rdma_destroy_ep(passive);
}

TEST_F(Endpoints, MayShareReceives) {
    rdma_destroy_qp(active);
    ibv_srq_init_attr shared{nullptr, {8, 1, 0}};
    ASSERT_EQ(rdma_create_srq(active, nullptr, &shared), 0) << std::strerror(errno);
    auto wish = small_queue_pair();
    ASSERT_EQ(rdma_create_qp(active, nullptr, &wish), 0) << std::strerror(errno);
    EXPECT_EQ(active->qp->srq, active->srq);
}

}  // namespace
}  // namespace weft::test
