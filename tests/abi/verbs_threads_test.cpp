// SPDX-License-Identifier: Apache-2.0
// Eight threads, each with a connection of its own, all in the one engine of a process; built with
// the thread sanitizer too. And memory that goes away while it is registered.
#include <sys/mman.h>

#include <atomic>

#include "abi/verbs_fixture.hpp"

namespace weft::test {
namespace {

/// A connection that belongs to a thread: sends, writes and reads, some waited for by events.
class Conversation : public ConnectedTest {
public:
    void TestBody() override {}

    void hold(unsigned thread) {
        connect({});
        for (unsigned round = 0; round < 200 && !HasFailure(); ++round) {
            ASSERT_EQ(b->receive(round, 1024, 1024), 0);
            if (round % 4 == 0) {
                ASSERT_EQ(ibv_req_notify_cq(b->completions, 0), 0);
            }
            ASSERT_EQ(a->send(round, 0, 1 + (round * 7 + thread) % 1024), 0);
            if (round % 4 == 0) wait_for_event();
            EXPECT_EQ(b->completion().status, IBV_WC_SUCCESS);
            EXPECT_EQ(a->completion().status, IBV_WC_SUCCESS);
            act(IBV_WR_RDMA_WRITE, 16'384);
            act(IBV_WR_RDMA_READ, 16'384);
        }
        a.reset();
        b.reset();
    }

private:
    void wait_for_event() {
        ibv_cq* queue = nullptr;
        void* context = nullptr;
        ASSERT_EQ(ibv_get_cq_event(b->channel, &queue, &context), 0);
        ibv_ack_cq_events(queue, 1);
    }
    void act(ibv_wr_opcode opcode, std::uint32_t size) {
        auto one = a->piece(32'768, size);
        auto work = a->work(1, opcode, one);
        work.wr.rdma.remote_addr = b->address(32'768);
        work.wr.rdma.rkey = b->region->rkey;
        ASSERT_EQ(a->post(work), 0);
        EXPECT_EQ(a->completion().status, IBV_WC_SUCCESS);
    }
};

TEST(Threads, WorkBesideEachOther) {
    std::vector<std::thread> threads;
    std::array<Conversation, 8> all;  // made here: googletest's fixtures are not for threads
    for (unsigned i = 0; i < all.size(); ++i) threads.emplace_back([&, i] { all[i].hold(i); });
    for (auto& thread : threads) thread.join();
}

TEST_F(ConnectedTest, LetsTwoThreadsReadOneQueueInTurns) {
    constexpr std::uint64_t rounds = 200, batch = 32;
    connect({});
    ibv_qp_attr error{};
    error.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(a->queue_pair(), &error, IBV_QP_STATE), 0);
    std::vector<std::atomic<int>> seen(rounds * batch);
    std::atomic<std::uint64_t> taken{0};
    std::atomic<int> torn{0};
    auto reads = [&] {
        ibv_poll_cq_attr none{};
        while (taken < seen.size()) {
            if (ibv_start_poll(a->extended, &none) != 0) continue;
            auto id = a->extended->wr_id;
            std::this_thread::yield();
            if (a->extended->wr_id != id || a->extended->status != IBV_WC_WR_FLUSH_ERR) ++torn;
            if (id < seen.size()) ++seen[id];
            ibv_end_poll(a->extended);
            ++taken;
        }
    };
    std::thread one(reads), other(reads);
    // What is posted now is flushed at once.
    for (std::uint64_t id = 0; id < seen.size(); ++id) {
        while (taken + batch <= id) std::this_thread::yield();
        ASSERT_EQ(a->receive(id, 0, 8), 0);
    }
    one.join();
    other.join();
    EXPECT_EQ(torn, 0);
    for (auto& times : seen) ASSERT_EQ(times, 1);
}

/// Pages of b's, registered, that a may write to and read from.
class Unmapped : public ConnectedTest {
protected:
    static constexpr std::size_t size = 1 << 20;

    void SetUp() override {
        if (watched_by_thread_sanitizer) GTEST_SKIP() << "it cannot be left by a jump";
        connect({});
        pages = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(pages, MAP_FAILED);
        gone = ibv_reg_mr(b->domain, pages, size, Side::every_right);
        ASSERT_NE(gone, nullptr);
        ASSERT_EQ(::munmap(pages, size), 0);
    }
    void TearDown() override { EXPECT_TRUE(!gone || ibv_dereg_mr(gone) == 0); }

    /// It fails, and a and b are still there to say so.
    void expect_failure(ibv_wr_opcode opcode, std::uint32_t bytes) {
        auto one = a->piece(0, bytes);
        auto work = a->work(1, opcode, one);
        work.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(pages);
        work.wr.rdma.rkey = gone->rkey;
        if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            work.wr.atomic.remote_addr = reinterpret_cast<std::uintptr_t>(pages);
            work.wr.atomic.rkey = gone->rkey;
        }
        ASSERT_EQ(a->post(work), 0);
        // A Write may have left before its peer could refuse it: then the one behind it fails.
        auto first = a->completion();
        if (first.status == IBV_WC_SUCCESS) {
            auto behind = a->work(2, IBV_WR_RDMA_READ, one);
            behind.wr.rdma.remote_addr = b->address(0);
            behind.wr.rdma.rkey = b->region->rkey;
            (void)a->post(behind);
            first = a->completion();
        }
        EXPECT_NE(first.status, IBV_WC_SUCCESS);
        EXPECT_NE(first.status, IBV_WC_RESP_TIMEOUT_ERR) << "nothing came";
    }

    void* pages = nullptr;
    ibv_mr* gone = nullptr;
};

TEST_F(Unmapped, MemoryFailsAWrite) {
    expect_failure(IBV_WR_RDMA_WRITE, 60'000);
}
TEST_F(Unmapped, MemoryFailsAShortWrite) {
    expect_failure(IBV_WR_RDMA_WRITE, 8);
}
TEST_F(Unmapped, MemoryFailsARead) {
    expect_failure(IBV_WR_RDMA_READ, 60'000);
}
TEST_F(Unmapped, MemoryFailsAnAtomic) {
    expect_failure(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
}

TEST_F(Unmapped, MemoryFailsASend) {
    ASSERT_EQ(a->receive(1, 0, 60'000), 0);
    ibv_sge one{reinterpret_cast<std::uintptr_t>(pages), 60'000, gone->lkey};
    auto work = b->work(2, IBV_WR_SEND, one);
    ASSERT_EQ(b->post(work), 0);
    auto sent = b->completion();
    EXPECT_NE(sent.status, IBV_WC_SUCCESS);
    EXPECT_EQ(sent.wr_id, 2u) << "nothing came";
}

}  // namespace
}  // namespace weft::test
