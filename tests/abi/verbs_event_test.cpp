// SPDX-License-Identifier: Apache-2.0
// Events of completion queues and of the device; ends, threads that are cancelled, and fork().
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "abi/verbs_fixture.hpp"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

class Events : public ConnectedTest {
protected:
    void fetch_and_acknowledge(Side& side) {
        ibv_cq* queue = nullptr;
        void* owner = nullptr;
        ASSERT_EQ(ibv_get_cq_event(side.channel, &queue, &owner), 0);
        EXPECT_EQ(queue, side.completions);
        EXPECT_EQ(owner, &side);
        ibv_ack_cq_events(queue, 1);
    }
};

TEST_F(Events, ComeOnceForEachTimeTheQueueIsArmed) {
    connect({});
    for (std::uint64_t id = 1; id <= 4; ++id) ASSERT_EQ(b->receive(id, 1024, 100), 0);
    ASSERT_EQ(ibv_req_notify_cq(b->completions, 0), 0);
    EXPECT_FALSE(is_readable(b->channel->fd, 20));
    ASSERT_EQ(a->send(1, 0, 8), 0);
    ASSERT_EQ(a->send(2, 0, 8), 0);
    fetch_and_acknowledge(*b);
    EXPECT_EQ(b->completion().wr_id, 1u);
    EXPECT_EQ(b->completion().wr_id, 2u);
    EXPECT_FALSE(is_readable(b->channel->fd, 20)) << "it was armed once";
    ASSERT_EQ(ibv_req_notify_cq(b->completions, 0), 0);
    ASSERT_EQ(a->send(3, 0, 8), 0);
    EXPECT_TRUE(is_readable(b->channel->fd, 3000)) << "also for who waits in a poll() of its own";
    fetch_and_acknowledge(*b);
}

TEST_F(Events, ComeForSolicitedMessagesAloneWhereThatWasAsked) {
    connect({});
    for (std::uint64_t id = 1; id <= 2; ++id) ASSERT_EQ(b->receive(id, 1024, 100), 0);
    ASSERT_EQ(ibv_req_notify_cq(b->completions, 1), 0);
    ASSERT_EQ(a->send(1, 0, 8), 0);
    EXPECT_FALSE(is_readable(b->channel->fd, 50));
    ASSERT_EQ(a->send(2, 0, 8, IBV_SEND_SOLICITED), 0);
    fetch_and_acknowledge(*b);
}

TEST_F(Events, AreNotWaitedForWhereTheDescriptorSaysSo) {
    connect({});
    ibv_cq* queue = nullptr;
    void* owner = nullptr;
    ::fcntl(b->channel->fd, F_SETFL, O_NONBLOCK);
    EXPECT_EQ(ibv_get_cq_event(b->channel, &queue, &owner), -1);
    EXPECT_EQ(errno, EAGAIN);
    ::fcntl(b->id->verbs->async_fd, F_SETFL, O_NONBLOCK);
    ibv_async_event event{};
    EXPECT_EQ(ibv_get_async_event(b->id->verbs, &event), -1);
    EXPECT_EQ(errno, EAGAIN);
    ::fcntl(b->id->verbs->async_fd, F_SETFL, 0);
}

/// A queue pair without a connection: what is posted to it ends when it is told to fail, and the
/// network has nothing to do with it.
struct Unconnected {
    explicit Unconnected(Side& side) : channel(ibv_create_comp_channel(side.id->verbs)) {
        queue = ibv_create_cq(side.id->verbs, 4, nullptr, channel, 0);
        ibv_qp_init_attr wish{nullptr, queue, queue, nullptr, {1, 1, 1, 1, 0}, IBV_QPT_RC, 0};
        pair = ibv_create_qp(side.domain, &wish);
        ibv_recv_wr receive{1, nullptr, nullptr, 0};
        ibv_recv_wr* bad = nullptr;
        EXPECT_EQ(ibv_post_recv(pair, &receive, &bad), 0);
        EXPECT_EQ(ibv_req_notify_cq(queue, 0), 0);
    }
    void fail() {
        ibv_qp_attr error{};
        error.qp_state = IBV_QPS_ERR;
        EXPECT_EQ(ibv_modify_qp(pair, &error, IBV_QP_STATE), 0);
    }
    ibv_cq* fetch() {
        ibv_cq* told = nullptr;
        void* owner = nullptr;
        EXPECT_EQ(ibv_get_cq_event(channel, &told, &owner), 0);
        return told;
    }
    ibv_comp_channel* channel;
    ibv_cq* queue = nullptr;
    ibv_qp* pair = nullptr;
};

TEST_F(Events, WakeAThreadThatSleepsWhileAnotherCausesThem) {
    connect({});
    Unconnected one(*a);
    std::thread waits([&] { ibv_ack_cq_events(one.fetch(), 1); });
    std::this_thread::sleep_for(20ms);
    one.fail();
    waits.join();
    EXPECT_EQ(ibv_destroy_qp(one.pair), 0);
    EXPECT_EQ(ibv_destroy_cq(one.queue), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(one.channel), 0);
}

TEST_F(Events, ComeWithoutACompletionToWhoWaitsForAPeersWrite) {
    connect({});
    ASSERT_EQ(ibv_req_notify_cq(b->completions, 0), 0);
    std::thread waits([&] { fetch_and_acknowledge(*b); });
    std::this_thread::sleep_for(20ms);
    a->write(0, "credit");
    auto one = a->piece(0, 6);
    auto write = a->work(1, IBV_WR_RDMA_WRITE, one);
    write.wr.rdma = {b->address(0), b->region->rkey};
    ASSERT_EQ(a->post(write), 0);
    waits.join();
    EXPECT_EQ(b->text(0, 6), "credit");
    ibv_wc none{};
    EXPECT_EQ(ibv_poll_cq(b->completions, 1, &none), 0);
}

TEST_F(Events, ComeWithoutACompletionAlsoForAWriteOfBeforeTheWait) {
    connect({});
    a->write(0, "credit");
    auto one = a->piece(0, 6);
    auto write = a->work(1, IBV_WR_RDMA_WRITE, one);
    write.wr.rdma = {b->address(0), b->region->rkey};
    for (int round = 0; round < 100; ++round) {
        ASSERT_EQ(ibv_req_notify_cq(b->completions, 0), 0);
        ASSERT_EQ(a->post(write), 0);
        ASSERT_EQ(a->completion().status, IBV_WC_SUCCESS);
        // Whoever moves the network first has the Write: this thread, or the helper.
        if (round % 2) std::this_thread::sleep_for(1ms);
        fetch_and_acknowledge(*b);
        ibv_wc none{};
        ASSERT_EQ(ibv_poll_cq(b->completions, 1, &none), 0);
    }
}

TEST_F(Events, KeepTheirQueueUntilTheyAreAcknowledged) {
    connect({});
    Unconnected one(*a);
    one.fail();
    auto* told = one.fetch();
    EXPECT_EQ(ibv_destroy_qp(one.pair), 0);
    std::atomic<bool> gone{false};
    std::thread destroys([&] {
        EXPECT_EQ(ibv_destroy_cq(one.queue), 0);
        gone = true;
    });
    std::this_thread::sleep_for(30ms);
    EXPECT_FALSE(gone);
    ibv_wc none{};
    EXPECT_EQ(ibv_poll_cq(told, 1, &none), 0) << "who has the event may go on for a while";
    EXPECT_EQ(ibv_req_notify_cq(told, 0), 0);
    EXPECT_EQ(ibv_resize_cq(told, 8), EINVAL);
    ibv_ack_cq_events(told, 1);
    destroys.join();
    EXPECT_EQ(ibv_destroy_comp_channel(one.channel), 0);
}

TEST_F(Events, KeepTheirQueuePairUntilTheyAreAcknowledged) {
    connect({});
    ibv_qp_attr error{};
    error.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(a->queue_pair(), &error, IBV_QP_STATE), 0);
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(b->id->verbs, &event), 0);
    ASSERT_EQ(event.element.qp, b->queue_pair());
    std::atomic<bool> gone{false};
    std::thread destroys([&] {
        rdma_destroy_qp(b->id);
        gone = true;
    });
    std::this_thread::sleep_for(30ms);
    EXPECT_FALSE(gone);
    auto* told = event.element.qp;
    ibv_qp_attr now{};
    ibv_qp_init_attr made{};
    EXPECT_EQ(ibv_query_qp(told, &now, IBV_QP_STATE, &made), EINVAL);
    EXPECT_EQ(ibv_modify_qp(told, &error, IBV_QP_STATE), EINVAL);
    ibv_recv_wr receive{1, nullptr, nullptr, 0};
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_recv(told, &receive, &bad), EINVAL);
    EXPECT_EQ(bad, &receive);
    ibv_ack_async_event(&event);
    destroys.join();
}

TEST_F(Events, DoNotKeepAThreadThatIsCancelled) {
    connect({});
    for (int i = 0; i < 20; ++i) {
        std::thread waits([&] {
            ibv_cq* queue = nullptr;
            void* owner = nullptr;
            ibv_get_cq_event(b->channel, &queue, &owner);
            ADD_FAILURE() << "there was no event";
        });
        if (i % 2) std::this_thread::sleep_for(2ms);
        ::pthread_cancel(waits.native_handle());
        waits.join();
    }
    // Everything works as before, in a wait too.
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    ASSERT_EQ(ibv_req_notify_cq(b->completions, 0), 0);
    ASSERT_EQ(a->send(1, 0, 8), 0);
    fetch_and_acknowledge(*b);
}

TEST_F(Events, MayBeWaitedForWhileAllTheyComeFromGoes) {
    if (watched_by_thread_sanitizer)
        GTEST_SKIP() << "it seems to see no lock of a cancelled thread";
    connect({});
    auto** list = ibv_get_device_list(nullptr);
    auto* context = ibv_open_device(loopback(list));
    ibv_free_device_list(list);
    auto* channel = ibv_create_comp_channel(context);
    std::thread of_completions([&] {
        ibv_cq* queue = nullptr;
        void* owner = nullptr;
        ibv_get_cq_event(channel, &queue, &owner);
    });
    std::thread of_the_device([&] {
        ibv_async_event event{};
        ibv_get_async_event(context, &event);
    });
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
    // The network moves, and whoever drives it looks at what it waits for.
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    ASSERT_EQ(a->send(1, 0, 8), 0);
    std::this_thread::sleep_for(30ms);
    ::pthread_cancel(of_completions.native_handle());
    ::pthread_cancel(of_the_device.native_handle());
    of_completions.join();
    of_the_device.join();
    EXPECT_EQ(b->completion().wr_id, 1u);
}

TEST_F(Events, AreInterruptedBySignalsAsAReadWouldBe) {
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it puts handlers of its own in between";
    connect({});
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, nullptr);
    std::atomic<int> why{0};
    std::thread waits([&] {
        ibv_cq* queue = nullptr;
        void* owner = nullptr;
        if (ibv_get_cq_event(b->channel, &queue, &owner) < 0) why = errno;
    });
    std::this_thread::sleep_for(20ms);
    ::pthread_kill(waits.native_handle(), SIGUSR1);
    waits.join();
    EXPECT_EQ(why, EINTR);
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGUSR1, &action, nullptr);
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    ASSERT_EQ(ibv_req_notify_cq(b->completions, 0), 0);
    std::thread goes_on([&] { fetch_and_acknowledge(*b); });
    std::this_thread::sleep_for(20ms);
    ::pthread_kill(goes_on.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(20ms);
    ASSERT_EQ(a->send(1, 0, 8), 0);
    goes_on.join();
}

TEST_F(Events, TellOfSharedReceivesThatRunLow) {
    connect({}, {.shared_receives = true});
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(b->receive(id, 1024, 100), 0);
    ibv_srq_attr limit{0, 0, 3};
    ASSERT_EQ(ibv_modify_srq(b->receives, &limit, IBV_SRQ_LIMIT), 0);
    EXPECT_EQ(async_event(50), -1);
    ASSERT_EQ(a->send(1, 0, 8), 0);
    EXPECT_EQ(async_event(), IBV_EVENT_SRQ_LIMIT_REACHED);
    ibv_srq_attr now{};
    ASSERT_EQ(ibv_query_srq(b->receives, &now), 0);
    EXPECT_EQ(now.srq_limit, 0u) << "it is told once";
    EXPECT_EQ(b->completion().wr_id, 1u);
}

TEST_F(Events, TellOfACompletionQueueThatIsTooSmall) {
    connect({}, {.completions = 2});
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(b->receive(id, 1024, 100), 0);
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(a->send(id, 0, 8), 0);
    bool told = false;
    for (int event = async_event(); event != -1 && !told; event = async_event(100))
        told = event == IBV_EVENT_CQ_ERR;
    EXPECT_TRUE(told);
}

TEST_F(Events, TellOfAPeerThatAsksForWhatItMayNotHave) {
    connect({});
    ASSERT_EQ(a->receive(9, 0, 8), 0);
    auto one = a->piece(0, 8);
    auto write = a->work(1, IBV_WR_RDMA_WRITE, one);
    write.wr.rdma = {b->address(0), b->region->rkey + 1};
    ASSERT_EQ(a->post(write), 0);
    EXPECT_EQ(a->completion().wr_id, 1u) << "it was sent: a write is not answered";
    EXPECT_EQ(a->completion().status, IBV_WC_WR_FLUSH_ERR);
    std::array<int, 2> told{async_event(), async_event()};
    std::sort(told.begin(), told.end());
    EXPECT_EQ(told, (std::array<int, 2>{IBV_EVENT_QP_FATAL, IBV_EVENT_QP_ACCESS_ERR}));
    ibv_qp_attr attributes{};
    ibv_qp_init_attr made{};
    ASSERT_EQ(ibv_query_qp(b->queue_pair(), &attributes, IBV_QP_STATE, &made), 0);
    EXPECT_EQ(attributes.qp_state, IBV_QPS_ERR);
    EXPECT_EQ(b->queue_pair()->state, IBV_QPS_ERR);
}

TEST_F(Events, TellOfAPeerThatAsksForWhatTheQueuePairDoesNotAllow) {
    connect({});
    ibv_qp_attr reads_alone{};
    reads_alone.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    ASSERT_EQ(ibv_modify_qp(b->queue_pair(), &reads_alone, IBV_QP_ACCESS_FLAGS), 0);
    b->write(0, "theirs");
    a->write(0, "ours");
    auto one = a->piece(16, 6);
    auto read = a->work(1, IBV_WR_RDMA_READ, one);
    read.wr.rdma = {b->address(0), b->region->rkey};
    ASSERT_EQ(a->post(read), 0);
    EXPECT_EQ(a->completion().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->text(16, 6), "theirs");
    auto from = a->piece(0, 4);
    auto write = a->work(2, IBV_WR_RDMA_WRITE, from);
    write.wr.rdma = {b->address(0), b->region->rkey};
    ASSERT_EQ(a->post(write), 0);
    std::array<int, 2> told{async_event(), async_event()};
    std::sort(told.begin(), told.end());
    EXPECT_EQ(told, (std::array<int, 2>{IBV_EVENT_QP_FATAL, IBV_EVENT_QP_ACCESS_ERR}));
    EXPECT_EQ(b->text(0, 6), "theirs");
}

TEST_F(Events, AreNotRaisedByAnEndThatWasAskedFor) {
    connect({});
    ASSERT_EQ(a->receive(1, 0, 8), 0);
    ibv_qp_attr wish{};
    wish.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(a->queue_pair(), &wish, IBV_QP_STATE), 0);
    EXPECT_EQ(a->completion().status, IBV_WC_WR_FLUSH_ERR);
    ASSERT_EQ(a->send(2, 0, 8), 0) << "taken, and flushed at once";
    EXPECT_EQ(a->completion().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(async_event(), IBV_EVENT_QP_FATAL) << "b did not ask for it";
    EXPECT_EQ(async_event(50), -1);
    wish.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(ibv_modify_qp(a->queue_pair(), &wish, IBV_QP_STATE), 0);
    EXPECT_EQ(a->queue_pair()->state, IBV_QPS_RESET);
}

TEST_F(Events, DoNotFollowAQueuePairThroughAReset) {
    connect({});
    auto go = [&](ibv_qp_state state) {
        ibv_qp_attr wish{};
        wish.qp_state = state;
        return ibv_modify_qp(a->queue_pair(), &wish, IBV_QP_STATE);
    };
    EXPECT_EQ(go(IBV_QPS_SQD), EOPNOTSUPP);
    ASSERT_EQ(go(IBV_QPS_RESET), 0);
    EXPECT_EQ(async_event(), IBV_EVENT_QP_FATAL) << "b did not ask for it";
    EXPECT_EQ(async_event(50), -1);
    EXPECT_EQ(a->queue_pair()->state, IBV_QPS_RESET);
    EXPECT_EQ(go(IBV_QPS_INIT), 0);
    ASSERT_EQ(a->receive(1, 0, 8), 0);
    ibv_wc none{};
    EXPECT_EQ(ibv_poll_cq(a->completions, 1, &none), 0) << "it waits for another connection";
}

TEST_F(Events, AndAllElseOfAParentAreForgottenInItsChild) {
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow a fork";
    connect({});
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    auto child = ::fork();
    if (child == 0) {
        ibv_cq* queue = nullptr;
        void* owner = nullptr;
        ibv_wc none{};
        bool refuses = a->send(1, 0, 8) == EIO && ibv_poll_cq(a->completions, 1, &none) < 0 &&
                       ibv_get_cq_event(a->channel, &queue, &owner) == -1 && errno == EIO &&
                       ibv_alloc_pd(a->id->verbs) == nullptr && errno == EIO;
        bool forgets = ibv_destroy_qp(a->queue_pair()) == 0 && ibv_dereg_mr(a->region) == 0 &&
                       ibv_destroy_cq(a->completions) == 0 && ibv_dealloc_pd(a->domain) == 0;
        auto** list = ibv_get_device_list(nullptr);
        auto* own = ibv_open_device(loopback(list));
        auto* domain = own ? ibv_alloc_pd(own) : nullptr;
        auto* fresh = own ? ibv_create_cq(own, 4, nullptr, nullptr, 0) : nullptr;
        refuses = refuses && own && !ibv_create_cq(own, 4, nullptr, a->channel, 0) && errno == EIO;
        bool works = domain && fresh && ibv_poll_cq(fresh, 1, &none) == 0 &&
                     ibv_destroy_cq(fresh) == 0 && ibv_dealloc_pd(domain) == 0 &&
                     ibv_close_device(own) == 0;
        ::_exit((refuses ? 0 : 1) | (forgets ? 0 : 2) | (works ? 0 : 4));
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    ASSERT_EQ(a->send(1, 0, 8), 0) << "the parent does not notice";
    EXPECT_EQ(b->completion().wr_id, 1u);
}

}  // namespace
}  // namespace weft::test
