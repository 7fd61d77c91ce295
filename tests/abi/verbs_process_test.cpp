// SPDX-License-Identifier: Apache-2.0
// What a process does around the library: fork(), exit(), and running out of what it needs.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/counting.hpp"
#include "abi/scarcity.hpp"
#include "abi/verbs_fixture.hpp"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

/// How the child has ended; -1 if it has not, and had to be killed.
int outcome_of(pid_t child, std::chrono::milliseconds patience) {
    int status = -1;
    auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
        if (::waitpid(child, &status, WNOHANG) == child) return status;
        std::this_thread::sleep_for(2ms);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return -1;
}

/// In a child: never comes back.
void poll_until_a_signal_ends_it(int after_us) {
    ::signal(SIGALRM, [](int) { std::exit(0); });
    auto** list = ibv_get_device_list(nullptr);
    auto* own = ibv_open_device(loopback(list));
    auto* queue = ibv_create_cq(own, 4, nullptr, nullptr, 0);
    itimerval soon{{}, {0, after_us}};
    ::setitimer(ITIMER_REAL, &soon, nullptr);
    for (ibv_wc none{};;) ibv_poll_cq(queue, 1, &none);
}

TEST_F(VerbsTest, LetsAHandlerOfASignalEndTheProcess) {
    if (watched_by_address_sanitizer) GTEST_SKIP() << "it calls what is left at such an end leaked";
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow a fork";
    for (int i = 0; i < 10; ++i) {
        auto child = ::fork();
        if (child == 0) poll_until_a_signal_ends_it(5'000 + 137 * i);
        ASSERT_EQ(outcome_of(child, 10s), 0) << i;
    }
}

TEST_F(VerbsTest, KeepsItsDevicesWhereThereAreNoDescriptorsLeft) {
    int before = 0, now = 0;
    ibv_free_device_list(ibv_get_device_list(&before));
    FewDescriptors none(0);
    auto** list = ibv_get_device_list(&now);
    EXPECT_EQ(now, before);
    ASSERT_NE(list, nullptr);
    ibv_free_device_list(list);
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(ibv_create_comp_channel(context), nullptr);
    EXPECT_EQ(errno, EMFILE);
}

TEST(DeviceList, SaysWhyThereIsNoneWhereItCannotBeHad) {
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow a fork";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has never seen a list
    EXPECT_EXIT(
        {
            FewDescriptors none(0);
            auto** list = ibv_get_device_list(nullptr);
            std::_Exit(list == nullptr && errno == EMFILE ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST_F(VerbsTest, ClosesInAChildWhatTheChildCloses) {
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow a fork";
    auto* channel = ibv_create_comp_channel(context);
    auto child = ::fork();
    if (child == 0) {
        auto before = open_descriptors();
        bool closes = ibv_destroy_comp_channel(channel) == 0 && ibv_close_device(context) == 0;
        ::_exit(closes && open_descriptors() + 2 == before ? 0 : 1);
    }
    EXPECT_EQ(outcome_of(child, 10s), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_F(VerbsTest, SaysOfABatchThatThereIsNoMemoryForIt) {
    if (watched_by_thread_sanitizer || watched_by_address_sanitizer)
        GTEST_SKIP() << "it has its own ideas of memory";
    auto child = ::fork();
    if (child == 0) {
        auto** list = ibv_get_device_list(nullptr);
        auto* own = ibv_open_device(loopback(list));
        constexpr std::uint32_t many = 30'000;
        ibv_qp_init_attr_ex wish{};
        wish.send_cq = wish.recv_cq = ibv_create_cq(own, 1, nullptr, nullptr, 0);
        wish.cap = {many, 1, 1, 1, 64};
        wish.qp_type = IBV_QPT_RC;
        wish.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wish.pd = ibv_alloc_pd(own);
        wish.send_ops_flags = IBV_QP_EX_WITH_SEND;
        auto* pair = ibv_qp_to_qp_ex(ibv_create_qp_ex(own, &wish));
        rlimit none{};
        ::setrlimit(RLIMIT_AS, &none);
        for (std::size_t size = 1u << 24; size >= 16; size /= 2)
            for (void* volatile taken = ::malloc(size); taken; taken = ::malloc(size)) {
            }
        std::array<char, 64> bytes{};
        ibv_wr_start(pair);
        for (std::uint32_t i = 0; i < many; ++i) {
            ibv_wr_send(pair);
            ibv_wr_set_inline_data(pair, bytes.data(), bytes.size());
        }
        ::_exit(ibv_wr_complete(pair) == ENOMEM ? 0 : 1);
    }
    EXPECT_EQ(outcome_of(child, 20s), 0);
}

sockaddr_in on_loopback(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = port;
    return at;
}

/// In a child: accepts one connection, and never comes back.
void accept_and_wait(int tell_port) {
    rdma_cm_id *listener = nullptr, *accepted = nullptr;
    auto at = on_loopback(0);
    rdma_create_id(nullptr, &listener, nullptr, RDMA_PS_TCP);
    rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&at));
    rdma_listen(listener, 1);
    auto port = rdma_get_src_port(listener);
    if (::write(tell_port, &port, sizeof port) != sizeof port) ::_exit(1);
    rdma_get_request(listener, &accepted);
    Side side(accepted, {});
    rdma_accept(accepted, nullptr);
    for (;;) ::pause();
}

/// A peer in a process of its own, which can be made to take nothing.
class ConnectedToAChild : public testing::Test {
protected:
    void SetUp() override {
        if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow a fork";
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        child = ::fork();
        if (child == 0) accept_and_wait(ends[1]);
        std::uint16_t port = 0;
        ASSERT_EQ(::read(ends[0], &port, sizeof port), ssize_t{sizeof port});
        for (int end : ends) ::close(end);
        rdma_cm_id* id = nullptr;
        auto at = on_loopback(port);
        ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
        ASSERT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&at), 2000), 0);
        ASSERT_EQ(rdma_resolve_route(id, 2000), 0);
        side = std::make_unique<Side>(id, SideOptions{});
        ASSERT_EQ(rdma_connect(id, nullptr), 0) << std::strerror(errno);
    }
    void TearDown() override {
        if (child <= 0) return;
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }

    pid_t child = -1;
    std::unique_ptr<Side> side;
};

TEST_F(ConnectedToAChild, TakesMemoryBackFromAPeerThatTakesNothing) {
    ::kill(child, SIGSTOP);
    std::vector<char> much(4 << 20);
    auto* region = ibv_reg_mr(side->domain, much.data(), much.size(), int{IBV_ACCESS_LOCAL_WRITE});
    ASSERT_NE(region, nullptr);
    ibv_sge one{reinterpret_cast<std::uintptr_t>(much.data()),
                static_cast<std::uint32_t>(much.size()), region->lkey};
    for (std::uint64_t id = 1; id <= 16; ++id) {
        auto send = side->work(id, IBV_WR_SEND, one);
        ASSERT_EQ(side->post(send), 0);
    }
    EXPECT_EQ(ibv_dereg_mr(region), 0) << "or the program's next memory would be sent";
    bool is_flushed = false;
    for (int i = 0; i < 16 && !is_flushed; ++i)
        is_flushed = side->completion(100ms).status == IBV_WC_WR_FLUSH_ERR;
    EXPECT_TRUE(is_flushed);
}

}  // namespace
}  // namespace weft::test
