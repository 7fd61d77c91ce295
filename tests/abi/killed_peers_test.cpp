// SPDX-License-Identifier: Apache-2.0
// Peers that are killed while they send: whoever served them hears of it, gets back every receive,
// and has afterwards what it had before.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "abi/cm_fixture.hpp"

namespace weft::test {
namespace {

constexpr std::size_t message_bytes = 64 << 10;
constexpr int receives = 8;

/// In a process of its own: connects, and sends until it dies.
[[noreturn]] void send_for_ever(std::uint16_t port) {
    static std::array<char, message_bytes> memory;
    EndAddress to("127.0.0.1", port);
    auto wish = small_queue_pair();
    rdma_cm_id* id = nullptr;
    bool is_connected = rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) == 0 &&
                        rdma_resolve_addr(id, nullptr, to.raw(), 2000) == 0 &&
                        rdma_resolve_route(id, 2000) == 0 &&
                        rdma_create_qp(id, nullptr, &wish) == 0 && rdma_connect(id, nullptr) == 0;
    auto* region = is_connected ? rdma_reg_msgs(id, memory.data(), memory.size()) : nullptr;
    ibv_wc done{};
    while (region && rdma_post_send(id, nullptr, memory.data(), memory.size(), region,
                                    IBV_SEND_SIGNALED) == 0)
        if (rdma_get_send_comp(id, &done) != 1 || done.status != IBV_WC_SUCCESS) break;
    ::_exit(1);
}

class KilledPeers : public Meeting {
protected:
    /// Serves one peer, and kills it when it has sent `messages`.
    void serve_and_kill(int messages) {
        auto child = ::fork();
        if (child == 0) send_for_ever(port);
        auto request = server.next();
        ASSERT_EQ(request.kind(), "RDMA_CM_EVENT_CONNECT_REQUEST");
        Id peer(request->id);
        request.acknowledge();
        give_queue_pair(*peer);
        auto* region = rdma_reg_msgs(peer.get(), memory.data(), memory.size());
        for (int i = 0; i < receives; ++i) post_receive(*peer, *region);
        ASSERT_EQ(rdma_accept(peer.get(), nullptr), 0);
        EXPECT_EQ(server.next().kind(), "RDMA_CM_EVENT_ESTABLISHED");
        for (int i = 0; i < messages; ++i) {
            ASSERT_EQ(next_receive(*peer), IBV_WC_SUCCESS);
            post_receive(*peer, *region);
        }
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        // What had been sent whole is received; without receives nobody would look further.
        auto status = next_receive(*peer);
        for (; status == IBV_WC_SUCCESS; status = next_receive(*peer)) post_receive(*peer, *region);
        EXPECT_EQ(status, IBV_WC_WR_FLUSH_ERR);
        for (int i = 1; i < receives; ++i) EXPECT_EQ(next_receive(*peer), IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(server.next().kind(), "RDMA_CM_EVENT_DISCONNECTED");
        EXPECT_EQ(rdma_dereg_mr(region), 0);
    }

    static ibv_wc_status next_receive(rdma_cm_id& id) {
        ibv_wc done{};
        return rdma_get_recv_comp(&id, &done) == 1 ? done.status : IBV_WC_GENERAL_ERR;
    }
    void post_receive(rdma_cm_id& id, ibv_mr& region) {
        EXPECT_EQ(rdma_post_recv(&id, nullptr, memory.data(), memory.size(), &region), 0);
    }

    std::vector<char> memory = std::vector<char>(message_bytes);
};

TEST_F(KilledPeers, LeaveNothingBehind) {
    for (int messages = 0; messages < 4; ++messages) serve_and_kill(messages);
    auto descriptors = open_descriptors();
    // Less than the smallest of what a connection has. A queue or the allocator may take a larger
    // piece now and then, and keep it; what is left behind is left behind every time.
    constexpr std::size_t rounds = 50, allowed = rounds * 80, series_max = 4;
    auto least_growth = std::numeric_limits<std::size_t>::max();
    for (std::size_t series = 0; series < series_max && least_growth > allowed; ++series) {
        auto before = bytes_in_use();
        for (std::size_t round = 0; round < rounds; ++round)
            serve_and_kill(static_cast<int>(round % 4));
        auto after = bytes_in_use();
        least_growth = std::min(least_growth, after > before ? after - before : 0);
    }
    EXPECT_LE(least_growth, allowed);
    EXPECT_EQ(open_descriptors(), descriptors);
}

}  // namespace
}  // namespace weft::test
