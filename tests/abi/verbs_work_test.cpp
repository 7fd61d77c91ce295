// SPDX-License-Identifier: Apache-2.0
// Work of every kind between two queue pairs, by the plain calls and by the extended ones.
#include "abi/verbs_fixture.hpp"

namespace weft::test {
namespace {

class Work : public ConnectedTest {
protected:
    static void expect(const ibv_wc& found, std::uint64_t id, ibv_wc_opcode opcode,
                       std::uint32_t bytes) {
        EXPECT_EQ(found.status, IBV_WC_SUCCESS) << ibv_wc_status_str(found.status);
        EXPECT_EQ(found.wr_id, id);
        EXPECT_EQ(found.opcode, opcode);
        EXPECT_TRUE(!(opcode & IBV_WC_RECV) || found.byte_len == bytes) << found.byte_len;
    }
    /// Work of a's on the first bytes of b's memory.
    ibv_send_wr remote(std::uint64_t id, ibv_wr_opcode opcode, ibv_sge& one) {
        auto made = a->work(id, opcode, one);
        made.wr.rdma.remote_addr = b->address(0);
        made.wr.rdma.rkey = b->region->rkey;
        return made;
    }
};

TEST_F(Work, SendsWritesAndReads) {
    connect({});
    a->write(0, "over the loopback");
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    ASSERT_EQ(a->send(2, 0, 17), 0);
    auto sent = a->completion();
    expect(sent, 2, IBV_WC_SEND, 17);
    EXPECT_EQ(sent.qp_num, a->queue_pair()->qp_num);
    auto received = b->completion();
    expect(received, 1, IBV_WC_RECV, 17);
    EXPECT_EQ(received.qp_num, b->queue_pair()->qp_num);
    EXPECT_EQ(received.wc_flags, 0u);
    EXPECT_EQ(b->text(1024, 17), "over the loopback");

    auto one = a->piece(0, 17);
    auto write = remote(3, IBV_WR_RDMA_WRITE, one);
    ASSERT_EQ(a->post(write), 0);
    auto back = a->piece(4096, 17);
    auto read = remote(4, IBV_WR_RDMA_READ, back);
    ASSERT_EQ(a->post(read), 0);
    expect(a->completion(), 3, IBV_WC_RDMA_WRITE, 17);
    expect(a->completion(), 4, IBV_WC_RDMA_READ, 17);
    EXPECT_EQ(a->text(4096, 17), "over the loopback");
}

TEST_F(Work, CarriesImmediateDataAndAtomics) {
    connect({});
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    a->write(0, "12345678");
    auto one = a->piece(0, 8);
    auto write = remote(2, IBV_WR_RDMA_WRITE_WITH_IMM, one);
    write.imm_data = htonl(0x01020304);
    ASSERT_EQ(a->post(write), 0);
    expect(a->completion(), 2, IBV_WC_RDMA_WRITE, 8);
    auto told = b->completion();
    expect(told, 1, IBV_WC_RECV_RDMA_WITH_IMM, told.byte_len);
    EXPECT_EQ(told.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(told.imm_data, htonl(0x01020304));
    EXPECT_EQ(b->text(0, 8), "12345678");

    auto value = [](Side& side, std::size_t offset) -> std::uint64_t& {
        return *reinterpret_cast<std::uint64_t*>(side.memory.data() + offset);
    };
    value(*b, 0) = 40;
    auto add = remote(3, IBV_WR_ATOMIC_FETCH_AND_ADD, one);
    add.wr.atomic = {b->address(0), 2, 0, b->region->rkey};
    ASSERT_EQ(a->post(add), 0);
    expect(a->completion(), 3, IBV_WC_FETCH_ADD, 8);
    EXPECT_EQ(value(*a, 0), 40u);
    EXPECT_EQ(value(*b, 0), 42u);
    auto swap = remote(4, IBV_WR_ATOMIC_CMP_AND_SWP, one);
    swap.wr.atomic = {b->address(0), 42, 7, b->region->rkey};
    ASSERT_EQ(a->post(swap), 0);
    expect(a->completion(), 4, IBV_WC_COMP_SWAP, 8);
    EXPECT_EQ(value(*a, 0), 42u);
    EXPECT_EQ(value(*b, 0), 7u);
}

TEST_F(Work, IsTakenAsAChainUpToTheFirstThatCannotBe) {
    connect({});
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(b->receive(id, 1024 * id, 100), 0);
    auto one = a->piece(0, 8);
    std::array<ibv_send_wr, 4> chain;
    for (std::size_t i = 0; i < chain.size(); ++i) {
        chain[i] = a->work(10 + i, IBV_WR_SEND, one);
        chain[i].next = i + 1 < chain.size() ? &chain[i + 1] : nullptr;
    }
    chain[0].send_flags = 0;
    chain[2].opcode = IBV_WR_SEND_WITH_IMM;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(a->queue_pair(), chain.data(), &bad), EOPNOTSUPP);
    EXPECT_EQ(bad, &chain[2]);
    expect(a->completion(), 11, IBV_WC_SEND, 8);
    expect(b->completion(), 1, IBV_WC_RECV, 8);
    expect(b->completion(), 2, IBV_WC_RECV, 8);
    chain[2] = a->work(12, IBV_WR_SEND, one);
    chain[2].num_sge = 5;
    EXPECT_EQ(ibv_post_send(a->queue_pair(), &chain[2], &bad), EINVAL);
    chain[2].num_sge = 1;
    one.length = 65;
    chain[2].send_flags |= IBV_SEND_INLINE;
    EXPECT_EQ(ibv_post_send(a->queue_pair(), &chain[2], &bad), EINVAL);
}

TEST_F(Work, WithoutASignalCompletesInSilence) {
    connect({.cap = {2, 8, 1, 1, 0}});
    for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(b->receive(id, 1024, 100), 0);
    auto one = a->piece(0, 8);
    auto quiet = a->work(1, IBV_WR_SEND, one);
    quiet.send_flags = 0;
    for (int i = 0; i < 6; ++i) ASSERT_EQ(a->post(quiet), 0) << "sent work makes room";
    ASSERT_EQ(a->send(2, 0, 8), 0);
    expect(a->completion(), 2, IBV_WC_SEND, 8);
}

TEST_F(Work, CompletesAlwaysWhereTheQueuePairSaysSo) {
    connect({.all_signalled = true});
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    auto one = a->piece(0, 8);
    auto quiet = a->work(2, IBV_WR_SEND, one);
    quiet.send_flags = IBV_SEND_INLINE;
    ASSERT_EQ(a->post(quiet), 0);
    expect(a->completion(), 2, IBV_WC_SEND, 8);
}

TEST_F(Work, IsRefusedWhenTheQueueIsFull) {
    connect({.cap = {2, 2, 1, 1, 0}});
    ASSERT_EQ(a->receive(1, 0, 8), 0);
    ASSERT_EQ(a->receive(2, 0, 8), 0);
    EXPECT_EQ(a->receive(3, 0, 8), ENOMEM);
    // Reads wait for answers, which b's side of this process gives when somebody drives it.
    auto one = a->piece(0, 8);
    auto read = remote(3, IBV_WR_RDMA_READ, one);
    std::array<ibv_send_wr, 3> chain{read, read, read};
    chain[0].next = &chain[1];
    chain[1].next = &chain[2];
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(a->queue_pair(), chain.data(), &bad), ENOMEM);
    EXPECT_EQ(bad, &chain[2]);
    expect(a->completion(), 3, IBV_WC_RDMA_READ, 8);
    expect(a->completion(), 3, IBV_WC_RDMA_READ, 8);
}

TEST_F(Work, OpensAWindowForThePeerUntilItIsInvalidated) {
    connect({});
    auto* window = ibv_alloc_mw(b->domain, IBV_MW_TYPE_2);
    ASSERT_NE(window, nullptr);
    ibv_sge none{};
    auto bind = b->work(1, IBV_WR_BIND_MW, none);
    bind.bind_mw.mw = window;
    bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
    bind.bind_mw.bind_info = {b->region, b->address(512), 64, IBV_ACCESS_REMOTE_WRITE};
    ASSERT_EQ(b->post(bind), 0);
    expect(b->completion(), 1, IBV_WC_BIND_MW, 0);
    EXPECT_EQ(window->rkey, bind.bind_mw.rkey);

    a->write(0, "through a window");
    auto one = a->piece(0, 16);
    auto write = a->work(2, IBV_WR_RDMA_WRITE, one);
    write.wr.rdma = {b->address(512), window->rkey};
    ASSERT_EQ(a->post(write), 0);
    ASSERT_EQ(b->receive(3, 1024, 100), 0);
    auto send = a->work(4, IBV_WR_SEND_WITH_INV, one);
    send.invalidate_rkey = window->rkey;
    ASSERT_EQ(a->post(send), 0);
    expect(a->completion(), 2, IBV_WC_RDMA_WRITE, 16);
    expect(a->completion(), 4, IBV_WC_SEND, 16);
    auto received = b->completion();
    expect(received, 3, IBV_WC_RECV, 16);
    EXPECT_EQ(received.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
    EXPECT_EQ(received.invalidated_rkey, window->rkey);
    EXPECT_EQ(b->text(512, 16), "through a window");

    // Bound anew, and invalidated by its owner.
    bind.wr_id = 5;
    bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
    ASSERT_EQ(b->post(bind), 0);
    expect(b->completion(), 5, IBV_WC_BIND_MW, 0);
    EXPECT_EQ(ibv_dereg_mr(b->region), EBUSY) << "a window is bound to it";
    auto invalidate = b->work(6, IBV_WR_LOCAL_INV, none);
    invalidate.invalidate_rkey = window->rkey;
    ASSERT_EQ(b->post(invalidate), 0);
    expect(b->completion(), 6, IBV_WC_LOCAL_INV, 0);
    EXPECT_EQ(ibv_dealloc_mw(window), 0);
}

TEST_F(Work, BindsAWindowOfTheFirstKindUnderAKeyKnownAtOnce) {
    connect({});
    auto* window = ibv_alloc_mw(b->domain, IBV_MW_TYPE_1);
    ibv_mw_bind bind{
        1, IBV_SEND_SIGNALED, {b->region, b->address(512), 64, IBV_ACCESS_REMOTE_READ}};
    auto before = window->rkey;
    ASSERT_EQ(ibv_bind_mw(b->queue_pair(), window, &bind), 0);
    EXPECT_NE(window->rkey, before);
    expect(b->completion(), 1, IBV_WC_BIND_MW, 0);
    b->write(512, "shown");
    auto one = a->piece(0, 5);
    auto read = a->work(2, IBV_WR_RDMA_READ, one);
    read.wr.rdma = {b->address(512), window->rkey};
    ASSERT_EQ(a->post(read), 0);
    expect(a->completion(), 2, IBV_WC_RDMA_READ, 5);
    EXPECT_EQ(a->text(0, 5), "shown");
    bind.bind_info = {};
    bind.wr_id = 3;
    ASSERT_EQ(ibv_bind_mw(b->queue_pair(), window, &bind), 0);
    expect(b->completion(), 3, IBV_WC_BIND_MW, 0);
    EXPECT_EQ(ibv_dealloc_mw(window), 0);
}

TEST_F(Work, FindsMemoryByTheAddressesItWasRegisteredUnder) {
    connect({});
    auto* at_zero = ibv_reg_mr(b->domain, b->memory.data() + 256, 64,
                               Side::every_right | IBV_ACCESS_ZERO_BASED);
    auto* elsewhere =
        ibv_reg_mr_iova(b->domain, b->memory.data() + 512, 64, 0x1234000, Side::every_right);
    a->write(0, "first");
    auto one = a->piece(0, 5);
    auto write = a->work(1, IBV_WR_RDMA_WRITE, one);
    write.wr.rdma = {8, at_zero->rkey};
    ASSERT_EQ(a->post(write), 0);
    expect(a->completion(), 1, IBV_WC_RDMA_WRITE, 5);
    write.wr.rdma = {0x1234010, elsewhere->rkey};
    ASSERT_EQ(a->post(write), 0);
    expect(a->completion(), 1, IBV_WC_RDMA_WRITE, 5);
    auto read = a->work(2, IBV_WR_RDMA_READ, one);
    read.wr.rdma = {0x1234010, elsewhere->rkey};
    ASSERT_EQ(a->post(read), 0);
    expect(a->completion(), 2, IBV_WC_RDMA_READ, 5);
    EXPECT_EQ(b->text(256 + 8, 5), "first");
    EXPECT_EQ(b->text(512 + 0x10, 5), "first");
    EXPECT_EQ(ibv_dereg_mr(at_zero), 0);
    EXPECT_EQ(ibv_dereg_mr(elsewhere), 0);
}

TEST_F(Work, CannotOverrunACompletionQueueThatIsAsLongAsTheSendQueue) {
    constexpr int entries = 8;
    connect({.completions = entries, .cap = {entries, 0, 1, 1, 64}}, {});
    auto one = a->piece(0, 8);
    auto write = remote(1, IBV_WR_RDMA_WRITE, one);
    int posted = 0;
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    // What was posted ends meanwhile, and its completions wait.
    while (std::chrono::steady_clock::now() < end) {
        auto outcome = a->post(write);
        if (outcome == 0) ++posted;
        ASSERT_TRUE(outcome == 0 || outcome == ENOMEM) << outcome;
        b->completion(std::chrono::milliseconds(0));
    }
    EXPECT_EQ(posted, entries);
    EXPECT_EQ(async_event(20), -1) << "nothing was lost";
    for (int i = 0; i < entries; ++i) expect(a->completion(), 1, IBV_WC_RDMA_WRITE, 8);
    EXPECT_EQ(a->post(write), 0) << "and what was polled makes room";
    expect(a->completion(), 1, IBV_WC_RDMA_WRITE, 8);
}

TEST_F(Work, ThatIsNotSignalledMakesRoomWhenItHasEnded) {
    connect({.completions = 2, .cap = {2, 0, 1, 1, 64}}, {});
    auto one = a->piece(0, 8);
    auto write = remote(1, IBV_WR_RDMA_WRITE, one);
    write.send_flags = 0;
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(a->post(write), 0) << i;
        a->completion(std::chrono::milliseconds(1));
    }
}

class BuiltWork : public Work {
protected:
    static constexpr std::uint64_t all =
        IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
        IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
        IBV_QP_EX_WITH_SEND_WITH_INV;
    void SetUp() override {
        connect({.cap = {4, 8, 2, 2, 64}, .builder = all}, {});
        pair = ibv_qp_to_qp_ex(a->queue_pair());
        ASSERT_NE(pair, nullptr);
        pair->wr_flags = IBV_SEND_SIGNALED;
    }
    ibv_qp_ex* pair = nullptr;
};

TEST_F(BuiltWork, GoesAsABatch) {
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    ASSERT_EQ(b->receive(2, 2048, 100), 0);
    a->write(0, "gathered here");
    std::array<char, 6> there{'i', 'n', 'l', 'i', 'n', 'e'};
    ibv_wr_start(pair);
    pair->wr_id = 1;
    ibv_wr_send(pair);
    std::array pieces{a->piece(0, 8), a->piece(8, 5)};
    ibv_wr_set_sge_list(pair, pieces.size(), pieces.data());
    pair->wr_id = 2;
    ibv_wr_rdma_write_imm(pair, b->region->rkey, b->address(0), htonl(9));
    std::array buffers{ibv_data_buf{there.data(), 2}, ibv_data_buf{there.data() + 2, 4}};
    ibv_wr_set_inline_data_list(pair, buffers.size(), buffers.data());
    there.fill('x');  // it was copied
    pair->wr_id = 3;
    ibv_wr_rdma_read(pair, b->region->rkey, b->address(0));
    ibv_wr_set_sge(pair, a->region->lkey, a->address(4096), 6);
    EXPECT_EQ(b->completion(std::chrono::milliseconds(20)).wr_id, UINT64_MAX) << "nothing goes yet";
    ASSERT_EQ(ibv_wr_complete(pair), 0);
    expect(a->completion(), 1, IBV_WC_SEND, 13);
    expect(a->completion(), 2, IBV_WC_RDMA_WRITE, 6);
    expect(a->completion(), 3, IBV_WC_RDMA_READ, 6);
    expect(b->completion(), 1, IBV_WC_RECV, 13);
    EXPECT_EQ(b->completion().imm_data, htonl(9));
    EXPECT_EQ(b->text(1024, 13), "gathered here");
    EXPECT_EQ(a->text(4096, 6), "inline");
}

TEST_F(BuiltWork, GoesWholeOrNotAtAll) {
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    ibv_wr_start(pair);
    for (int i = 0; i < 5; ++i) {
        ibv_wr_send(pair);
        ibv_wr_set_sge(pair, a->region->lkey, a->address(0), 8);
    }
    EXPECT_EQ(ibv_wr_complete(pair), ENOMEM) << "its queue has four places";
    ibv_wr_start(pair);
    ibv_wr_send(pair);
    ibv_wr_set_sge(pair, a->region->lkey, a->address(0), 8);
    ibv_wr_send_imm(pair, 1);
    EXPECT_EQ(ibv_wr_complete(pair), EOPNOTSUPP);
    ibv_data_buf lies[] = {{a->memory.data(), SIZE_MAX}, {a->memory.data(), 2}};
    ibv_wr_start(pair);
    ibv_wr_send(pair);
    ibv_wr_set_inline_data_list(pair, 2, lies);
    EXPECT_EQ(ibv_wr_complete(pair), EINVAL) << "their sum is one";
    ibv_wr_start(pair);
    ibv_wr_send(pair);
    ibv_wr_abort(pair);
    EXPECT_EQ(a->completion(std::chrono::milliseconds(20)).wr_id, UINT64_MAX);
    EXPECT_EQ(b->completion(std::chrono::milliseconds(20)).wr_id, UINT64_MAX);
}

TEST_F(BuiltWork, IsNotPromisedWhereItCannotBe) {
    ibv_qp_init_attr_ex wish{};
    wish.send_cq = wish.recv_cq = a->completions;
    wish.cap = {1, 1, 1, 1, 0};
    wish.qp_type = IBV_QPT_RC;
    wish.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wish.pd = a->domain;
    wish.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
    EXPECT_EQ(ibv_create_qp_ex(a->id->verbs, &wish), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    wish.comp_mask = 0;  // and so its domain is not looked at
    wish.pd = reinterpret_cast<ibv_pd*>(1);
    EXPECT_EQ(ibv_create_qp_ex(a->id->verbs, &wish), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(BuiltWork, IsReadByTheExtendedPolling) {
    ASSERT_EQ(b->receive(1, 1024, 100), 0);
    ASSERT_EQ(b->receive(2, 2048, 100), 0);
    ibv_wr_start(pair);
    for (int i = 0; i < 2; ++i) {
        pair->wr_id = 10u + static_cast<unsigned>(i);
        ibv_wr_rdma_write_imm(pair, b->region->rkey, b->address(0), htonl(77));
        ibv_wr_set_sge(pair, a->region->lkey, a->address(0), 8);
    }
    ASSERT_EQ(ibv_wr_complete(pair), 0);
    ibv_poll_cq_attr none{};
    int found = ENOENT;
    for (int i = 0; i < 1'000'000 && found == ENOENT; ++i)
        found = ibv_start_poll(b->extended, &none);
    ASSERT_EQ(found, 0);
    EXPECT_EQ(b->extended->wr_id, 1u);
    EXPECT_EQ(b->extended->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(b->extended), IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(ibv_wc_read_imm_data(b->extended), htonl(77));
    EXPECT_EQ(ibv_wc_read_wc_flags(b->extended), static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(ibv_wc_read_qp_num(b->extended), b->queue_pair()->qp_num);
    found = ENOENT;
    for (int i = 0; i < 1'000'000 && found == ENOENT; ++i) {
        found = ibv_next_poll(b->extended);
        if (found == ENOENT) {
            ibv_end_poll(b->extended);
            found = ibv_start_poll(b->extended, &none);
        }
    }
    ASSERT_EQ(found, 0);
    EXPECT_EQ(b->extended->wr_id, 2u);
    EXPECT_EQ(ibv_next_poll(b->extended), ENOENT);
    ibv_end_poll(b->extended);
    EXPECT_EQ(a->completion().wr_id, 10u);
    EXPECT_EQ(a->completion().wr_id, 11u);
}

}  // namespace
}  // namespace weft::test
