// SPDX-License-Identifier: Apache-2.0
// What a test of libibverbs starts from, as a program of others would write it: an opened RNIC, and
// two queue pairs of this process that librdmacm has connected over the loopback.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace weft::test {

// One compiler says it by a macro, the other by a feature.
#ifdef __SANITIZE_THREAD__
inline constexpr bool watched_by_thread_sanitizer = true;
#else
inline constexpr bool watched_by_thread_sanitizer = false;
#endif

#if defined(__has_feature)
inline constexpr bool watched_by_address_sanitizer = __has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool watched_by_address_sanitizer = true;
#else
inline constexpr bool watched_by_address_sanitizer = false;
#endif

inline ibv_device* loopback(ibv_device** list) {
    for (; *list; ++list)
        if (std::strcmp(ibv_get_device_name(*list), "weft_lo") == 0) return *list;
    return nullptr;
}

/// The loopback's RNIC, opened.
class VerbsTest : public testing::Test {
protected:
    VerbsTest() {
        auto** list = ibv_get_device_list(nullptr);
        context = ibv_open_device(loopback(list));
        ibv_free_device_list(list);
    }
    ~VerbsTest() override { EXPECT_EQ(ibv_close_device(context), 0); }

    void SetUp() override { ASSERT_NE(context, nullptr); }

    ibv_context* context = nullptr;
};

inline bool is_readable(int descriptor, int timeout_ms) {
    pollfd source{descriptor, POLLIN, 0};
    return ::poll(&source, 1, timeout_ms) == 1;
}

/// How a side of a connection is to be made.
struct SideOptions {
    int completions = 64;
    ibv_qp_cap cap{32, 32, 4, 4, 64};
    bool shared_receives = false;
    bool all_signalled = false;
    std::uint64_t builder = 0;  ///< IBV_QP_EX_WITH_*
};

/// One side: its identifier, its queues, and 64 KiB that the peer may do everything with.
class Side {
public:
    static constexpr int every_right = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
                                       IBV_ACCESS_MW_BIND;

    Side(rdma_cm_id* made, const SideOptions& options) : id(made) {
        domain = ibv_alloc_pd(id->verbs);
        channel = ibv_create_comp_channel(id->verbs);
        ibv_cq_init_attr_ex wish{};
        wish.cqe = static_cast<std::uint32_t>(options.completions);
        wish.cq_context = this;
        wish.channel = channel;
        wish.wc_flags = IBV_WC_STANDARD_FLAGS;
        extended = ibv_create_cq_ex(id->verbs, &wish);
        completions = ibv_cq_ex_to_cq(extended);
        region = ibv_reg_mr(domain, memory.data(), memory.size(), every_right);
        if (options.shared_receives) {
            ibv_srq_init_attr shared{nullptr, {32, 4, 0}};
            receives = ibv_create_srq(domain, &shared);
        }
        ibv_qp_init_attr_ex pair{};
        pair.send_cq = pair.recv_cq = completions;
        pair.srq = receives;
        pair.cap = options.cap;
        pair.qp_type = IBV_QPT_RC;
        pair.sq_sig_all = options.all_signalled;
        pair.comp_mask = IBV_QP_INIT_ATTR_PD;
        pair.pd = domain;
        if (options.builder) pair.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        pair.send_ops_flags = options.builder;
        EXPECT_EQ(rdma_create_qp_ex(id, &pair), 0) << std::strerror(errno);
    }
    ~Side() {
        if (id->qp) rdma_destroy_qp(id);
        EXPECT_TRUE(!receives || ibv_destroy_srq(receives) == 0);
        EXPECT_EQ(ibv_dereg_mr(region), 0);
        EXPECT_EQ(ibv_destroy_cq(completions), 0);
        EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
        EXPECT_EQ(ibv_dealloc_pd(domain), 0);
        EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    std::uint64_t address(std::size_t offset) const {
        return reinterpret_cast<std::uintptr_t>(memory.data() + offset);
    }
    ibv_sge piece(std::size_t offset, std::uint32_t length) const {
        return {address(offset), length, region->lkey};
    }
    ibv_qp* queue_pair() const { return id->qp; }

    int receive(std::uint64_t number, std::size_t offset, std::uint32_t length) {
        auto one = piece(offset, length);
        ibv_recv_wr work{number, nullptr, &one, 1};
        ibv_recv_wr* bad = nullptr;
        return receives ? ibv_post_srq_recv(receives, &work, &bad)
                        : ibv_post_recv(queue_pair(), &work, &bad);
    }
    /// A signalled request about one piece of memory, to be refined.
    ibv_send_wr work(std::uint64_t number, ibv_wr_opcode opcode, ibv_sge& one) const {
        ibv_send_wr made{};
        made.wr_id = number;
        made.sg_list = &one;
        made.num_sge = one.length > 0 ? 1 : 0;
        made.opcode = opcode;
        made.send_flags = IBV_SEND_SIGNALED;
        return made;
    }
    int post(ibv_send_wr& one) {
        ibv_send_wr* bad = nullptr;
        return ibv_post_send(queue_pair(), &one, &bad);
    }
    int send(std::uint64_t number, std::size_t offset, std::uint32_t length, unsigned flags = 0) {
        auto one = piece(offset, length);
        auto made = work(number, IBV_WR_SEND, one);
        made.send_flags |= flags;
        return post(made);
    }
    /// The next completion, or one that says it did not come.
    ibv_wc completion(std::chrono::milliseconds patience = std::chrono::seconds(5)) {
        ibv_wc found{};
        auto end = std::chrono::steady_clock::now() + patience;
        while (std::chrono::steady_clock::now() < end)
            if (ibv_poll_cq(completions, 1, &found) == 1) return found;
        found.wr_id = UINT64_MAX;
        found.status = IBV_WC_RESP_TIMEOUT_ERR;
        return found;
    }
    std::string_view text(std::size_t offset, std::size_t length) const {
        return {reinterpret_cast<const char*>(memory.data() + offset), length};
    }
    void write(std::size_t offset, std::string_view text) {
        std::memcpy(memory.data() + offset, text.data(), text.size());
    }

    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(64 << 10);
    rdma_cm_id* id;
    ibv_pd* domain = nullptr;
    ibv_comp_channel* channel = nullptr;
    ibv_cq_ex* extended = nullptr;
    ibv_cq* completions = nullptr;
    ibv_srq* receives = nullptr;
    ibv_mr* region = nullptr;
};

/// Two sides, connected. `a` has connected, `b` has accepted.
class ConnectedTest : public testing::Test {
protected:
    void connect(const SideOptions& options) { connect(options, options); }
    void connect(const SideOptions& of_a, const SideOptions& of_b) {
        rdma_cm_id *listener = nullptr, *connecting = nullptr, *accepted = nullptr;
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(rdma_create_id(nullptr, &listener, nullptr, RDMA_PS_TCP), 0);
        ASSERT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&at)), 0);
        ASSERT_EQ(rdma_listen(listener, 1), 0);
        at.sin_port = rdma_get_src_port(listener);
        ASSERT_EQ(rdma_create_id(nullptr, &connecting, nullptr, RDMA_PS_TCP), 0);
        ASSERT_EQ(rdma_resolve_addr(connecting, nullptr, reinterpret_cast<sockaddr*>(&at), 2000),
                  0);
        ASSERT_EQ(rdma_resolve_route(connecting, 2000), 0);
        a = std::make_unique<Side>(connecting, of_a);
        rdma_conn_param wishes{};
        wishes.initiator_depth = wishes.responder_resources = 8;
        std::thread other([&] { EXPECT_EQ(rdma_connect(a->id, &wishes), 0); });
        EXPECT_EQ(rdma_get_request(listener, &accepted), 0);
        b = std::make_unique<Side>(accepted, of_b);
        EXPECT_EQ(rdma_accept(b->id, &wishes), 0);
        other.join();
        EXPECT_EQ(rdma_destroy_id(listener), 0);
    }
    /// The next asynchronous event of both sides' RNIC, acknowledged; or -1.
    int async_event(int timeout_ms = 3000) {
        if (!is_readable(a->id->verbs->async_fd, timeout_ms)) return -1;
        ibv_async_event event{};
        EXPECT_EQ(ibv_get_async_event(a->id->verbs, &event), 0);
        ibv_ack_async_event(&event);
        return event.event_type;
    }

    std::unique_ptr<Side> a, b;
};

}  // namespace weft::test
