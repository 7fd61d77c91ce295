// SPDX-License-Identifier: Apache-2.0
// What our RNICs say of themselves, and objects of one context: how they live, what they refuse.
#include <sys/mman.h>

#include "abi/verbs_fixture.hpp"

namespace weft::test {
namespace {

TEST(DeviceList, ShowsEachInterfaceOnceAndTheLoopbackAmongThem) {
    int count = 0;
    auto** list = ibv_get_device_list(&count);
    ASSERT_NE(list, nullptr);
    ASSERT_GT(count, 0);
    EXPECT_EQ(list[count], nullptr);
    ASSERT_NE(loopback(list), nullptr);
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(list[i]->node_type, IBV_NODE_RNIC);
        EXPECT_EQ(list[i]->transport_type, IBV_TRANSPORT_IWARP);
        EXPECT_NE(ibv_get_device_guid(list[i]), 0u) << list[i]->name;
        EXPECT_EQ(std::string(list[i]->dev_name).rfind("uverbs", 0), 0u);
        for (int j = 0; j < i; ++j) {
            EXPECT_STRNE(list[i]->name, list[j]->name);
            EXPECT_NE(ibv_get_device_index(list[i]), ibv_get_device_index(list[j]));
        }
    }
    auto** again = ibv_get_device_list(nullptr);
    EXPECT_EQ(loopback(again), loopback(list)) << "a device stays where it is";
    ibv_free_device_list(again);
    ibv_free_device_list(list);
}

class Device : public VerbsTest {};

TEST_F(Device, HasOnePortThatIsUp) {
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    EXPECT_EQ(port.gid_tbl_len, 1);
    EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
    EXPECT_EQ(ibv_query_port(context, 0, &port), EINVAL);
    EXPECT_EQ(ibv_query_port(context, 2, &port), EINVAL);
}

TEST_F(Device, FillsTheStructOfOlderProgramsAndNoByteMore) {
    ibv_port_attr port{};
    port.port_cap_flags2 = 0xabcd;
    auto* older = reinterpret_cast<_compat_ibv_port_attr*>(&port);
    ASSERT_EQ((ibv_query_port)(context, 1, older), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.port_cap_flags2, 0xabcd);
}

TEST_F(Device, HasAGidOfItsOwnAndOnePartition) {
    ibv_gid gid{}, none{};
    ASSERT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
    EXPECT_NE(std::memcmp(gid.raw, none.raw, sizeof gid.raw), 0);
    EXPECT_EQ(ibv_query_gid(context, 1, 1, &gid), -1);
    std::array<ibv_gid_entry, 4> table{};
    ASSERT_EQ(ibv_query_gid_table(context, table.data(), table.size(), 0), 1);
    EXPECT_EQ(std::memcmp(table[0].gid.raw, gid.raw, sizeof gid.raw), 0);
    EXPECT_EQ(table[0].port_num, 1u);
    EXPECT_NE(table[0].ndev_ifindex, 0u);
    EXPECT_EQ(ibv_query_gid_ex(context, 1, 1, table.data(), 0), EINVAL);
    __be16 key = 0;
    ASSERT_EQ(ibv_query_pkey(context, 1, 0, &key), 0);
    EXPECT_EQ(key, 0xffff);
    EXPECT_EQ(ibv_get_pkey_index(context, 1, key), 0);
}

TEST_F(Device, SaysTheSameInBothStructsAndNothingItDoesNotHave) {
    ibv_device_attr plain{};
    ibv_device_attr_ex extended{};
    ASSERT_EQ(ibv_query_device(context, &plain), 0);
    ASSERT_EQ(ibv_query_device_ex(context, nullptr, &extended), 0);
    EXPECT_EQ(std::memcmp(&plain, &extended.orig_attr, sizeof plain), 0);
    EXPECT_EQ(plain.max_sge_rd, 1);
    EXPECT_EQ(plain.max_ah, 0);
    EXPECT_EQ(plain.max_mcast_grp, 0);
    EXPECT_EQ(plain.device_cap_flags & (IBV_DEVICE_XRC | IBV_DEVICE_SRQ_RESIZE), 0u);
    EXPECT_EQ(extended.odp_caps.general_caps, 0u);
    EXPECT_EQ(extended.completion_timestamp_mask, 0u);
    EXPECT_EQ(extended.phys_port_cnt_ex, 1u);
}

TEST_F(Device, RefusesWhatIWarpDoesNotHave) {
    auto* domain = ibv_alloc_pd(context);
    ibv_ah_attr handle{};
    EXPECT_EQ(ibv_create_ah(domain, &handle), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_xrcd_init_attr extended_domain{};
    EXPECT_EQ(ibv_open_xrcd(context, &extended_domain), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(ibv_alloc_null_mr(domain), nullptr);
    EXPECT_EQ(ibv_reg_dmabuf_mr(domain, 0, 4096, 0, 0, 0), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    auto* queue = ibv_create_cq(context, 8, nullptr, nullptr, 0);
    for (auto type : {IBV_QPT_UD, IBV_QPT_UC, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND}) {
        ibv_qp_init_attr wish{nullptr, queue, queue, nullptr, {1, 1, 1, 1, 0}, type, 0};
        EXPECT_EQ(ibv_create_qp(domain, &wish), nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP);
    }
    ibv_cq_init_attr_ex with_time{};
    with_time.cqe = 8;
    with_time.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    EXPECT_EQ(ibv_create_cq_ex(context, &with_time), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(ibv_destroy_cq(queue), 0);
    EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

class Objects : public VerbsTest {
protected:
    ibv_pd* domain = ibv_alloc_pd(context);
    ~Objects() override { EXPECT_EQ(ibv_dealloc_pd(domain), 0); }
};

TEST_F(Objects, CannotGoBeforeThoseThatUseThem) {
    auto* channel = ibv_create_comp_channel(context);
    auto* queue = ibv_create_cq(context, 8, nullptr, channel, 0);
    ibv_srq_init_attr shared{nullptr, {4, 1, 0}};
    auto* receives = ibv_create_srq(domain, &shared);
    ibv_qp_init_attr wish{nullptr, queue, queue, receives, {4, 4, 1, 1, 0}, IBV_QPT_RC, 0};
    auto* pair = ibv_create_qp(domain, &wish);
    ASSERT_NE(pair, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(domain), EBUSY);
    EXPECT_EQ(ibv_destroy_cq(queue), EBUSY);
    EXPECT_EQ(ibv_destroy_srq(receives), EBUSY);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(pair), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
    EXPECT_EQ(ibv_destroy_cq(queue), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    EXPECT_EQ(ibv_dealloc_pd(domain), EBUSY);
    EXPECT_EQ(ibv_destroy_srq(receives), 0);
}

TEST_F(Objects, OutliveAContextThatIsClosedUnderThem) {
    auto** list = ibv_get_device_list(nullptr);
    auto* other = ibv_open_device(loopback(list));
    ibv_free_device_list(list);
    auto* queue = ibv_create_cq(other, 8, nullptr, nullptr, 0);
    EXPECT_EQ(ibv_close_device(other), 0);
    ibv_wc none{};
    EXPECT_EQ(ibv_poll_cq(queue, 1, &none), 0);
    EXPECT_EQ(ibv_destroy_cq(queue), 0);
}

TEST_F(Objects, OfMemoryAreRefusedWhereThereIsNone) {
    std::array<char, 64> memory{};
    EXPECT_EQ(ibv_reg_mr(domain, memory.data(), memory.size(), int{IBV_ACCESS_REMOTE_WRITE}),
              nullptr);
    EXPECT_EQ(errno, EINVAL) << "who lets others write must be able to write itself";
    EXPECT_EQ(ibv_reg_mr(domain, memory.data(), memory.size(), int{IBV_ACCESS_ON_DEMAND}), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    constexpr std::size_t page = 4096;
    auto* pages = static_cast<char*>(
        ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::munmap(pages + page, page);
    EXPECT_EQ(ibv_reg_mr(domain, pages, 3 * page, int{IBV_ACCESS_LOCAL_WRITE}), nullptr);
    EXPECT_EQ(errno, EFAULT);
    auto* region = ibv_reg_mr(domain, pages + 100, page - 100, int{IBV_ACCESS_LOCAL_WRITE});
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(region->addr, pages + 100);
    EXPECT_EQ(region->length, page - 100);
    EXPECT_EQ(region->pd, domain);
    EXPECT_EQ(ibv_dereg_mr(region), 0);
    ::munmap(pages, page);
    ::munmap(pages + 2 * page, page);
}

TEST_F(Objects, OfMemoryTakeOptionalRightsAndChange) {
    std::array<char, 4096> first{}, second{};
    unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
    auto* region = ibv_reg_mr(domain, first.data(), first.size(), access);
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(domain), EBUSY);
    auto* other = ibv_alloc_pd(context);
    auto key = region->lkey;
    EXPECT_EQ(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD, other,
                           second.data(), second.size(), 0),
              0);
    EXPECT_EQ(region->addr, second.data());
    EXPECT_EQ(region->pd, other);
    EXPECT_NE(region->lkey, key);
    EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
    EXPECT_EQ(ibv_rereg_mr(region, 0, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                           IBV_ACCESS_REMOTE_WRITE),
              IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(ibv_dereg_mr(region), 0);
    EXPECT_EQ(ibv_dealloc_pd(other), 0);
}

TEST_F(Objects, OfCompletionsHaveASizeThatCanChange) {
    EXPECT_EQ(ibv_create_cq(context, 0, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_create_cq(context, 1 << 30, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_create_cq(context, 8, nullptr, nullptr, context->num_comp_vectors), nullptr);
    EXPECT_EQ(errno, EINVAL);
    auto* queue = ibv_create_cq(context, 8, this, nullptr, 0);
    ASSERT_NE(queue, nullptr);
    EXPECT_EQ(queue->cqe, 8);
    EXPECT_EQ(queue->cq_context, this);
    EXPECT_EQ(ibv_resize_cq(queue, 100), 0);
    EXPECT_EQ(queue->cqe, 100);
    EXPECT_EQ(ibv_resize_cq(queue, 0), EINVAL);
    EXPECT_EQ(ibv_destroy_cq(queue), 0);
}

TEST_F(Objects, OfSharedReceivesSayTheirLimits) {
    ibv_srq_init_attr wish{nullptr, {4, 2, 0}};
    auto* receives = ibv_create_srq(domain, &wish);
    ASSERT_NE(receives, nullptr);
    EXPECT_GE(wish.attr.max_wr, 4u);
    ibv_srq_attr now{};
    ASSERT_EQ(ibv_query_srq(receives, &now), 0);
    EXPECT_EQ(now.max_wr, wish.attr.max_wr);
    EXPECT_EQ(now.max_sge, wish.attr.max_sge);
    EXPECT_EQ(now.srq_limit, 0u);
    now.srq_limit = now.max_wr + 1;
    EXPECT_EQ(ibv_modify_srq(receives, &now, IBV_SRQ_LIMIT), EINVAL);
    EXPECT_NE(ibv_modify_srq(receives, &now, IBV_SRQ_MAX_WR), 0);
    std::uint32_t number = 0;
    EXPECT_EQ(ibv_get_srq_num(receives, &number), 0);
    ibv_recv_wr work{7, nullptr, nullptr, 0};
    ibv_recv_wr* bad = nullptr;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(ibv_post_srq_recv(receives, &work, &bad), 0);
    EXPECT_EQ(ibv_post_srq_recv(receives, &work, &bad), ENOMEM);
    EXPECT_EQ(bad, &work);
    EXPECT_EQ(ibv_destroy_srq(receives), 0);
}

TEST_F(Objects, OfWorkHaveTheSizesTheySay) {
    auto* queue = ibv_create_cq(context, 8, nullptr, nullptr, 0);
    ibv_device_attr device{};
    ibv_query_device(context, &device);
    ibv_qp_init_attr wish{nullptr, queue, queue, nullptr, {3, 2, 1, 1, 10}, IBV_QPT_RC, 1};
    auto* pair = ibv_create_qp(domain, &wish);
    ASSERT_NE(pair, nullptr);
    EXPECT_GE(wish.cap.max_inline_data, 64u);
    ibv_qp_attr attributes{};
    ibv_qp_init_attr made{};
    ASSERT_EQ(ibv_query_qp(pair, &attributes, IBV_QP_CAP, &made), 0);
    EXPECT_EQ(std::memcmp(&attributes.cap, &wish.cap, sizeof wish.cap), 0);
    EXPECT_EQ(made.send_cq, queue);
    EXPECT_EQ(made.sq_sig_all, 1);
    EXPECT_EQ(attributes.qp_state, IBV_QPS_RESET);
    EXPECT_EQ(ibv_qp_to_qp_ex(pair), nullptr) << "it was not made for the extended calls";
    EXPECT_EQ(ibv_destroy_qp(pair), 0);

    for (auto beyond : {ibv_qp_cap{static_cast<std::uint32_t>(device.max_qp_wr) + 1, 1, 1, 1, 0},
                        ibv_qp_cap{1, 1, static_cast<std::uint32_t>(device.max_sge) + 1, 1, 0},
                        ibv_qp_cap{1, 1, 1, 1, 1 << 20}}) {
        wish.cap = beyond;
        EXPECT_EQ(ibv_create_qp(domain, &wish), nullptr);
        EXPECT_EQ(errno, EINVAL);
    }
    EXPECT_EQ(ibv_destroy_cq(queue), 0);
}

TEST_F(Objects, OfWorkTakeTheStepsBetweenTheirStates) {
    auto* queue = ibv_create_cq(context, 8, nullptr, nullptr, 0);
    ibv_qp_init_attr wish{nullptr, queue, queue, nullptr, {2, 2, 1, 1, 0}, IBV_QPT_RC, 0};
    auto* pair = ibv_create_qp(domain, &wish);
    ibv_qp_attr attributes{};
    auto go = [&](ibv_qp_state state) {
        attributes.qp_state = state;
        return ibv_modify_qp(pair, &attributes, IBV_QP_STATE);
    };
    EXPECT_EQ(go(IBV_QPS_RTS), EINVAL);
    EXPECT_EQ(go(IBV_QPS_INIT), 0);
    EXPECT_EQ(pair->state, IBV_QPS_INIT);
    ibv_recv_wr receive{5, nullptr, nullptr, 0};
    ibv_recv_wr* bad_receive = nullptr;
    EXPECT_EQ(ibv_post_recv(pair, &receive, &bad_receive), 0);
    ibv_send_wr send{};
    send.opcode = IBV_WR_SEND;
    ibv_send_wr* bad_send = nullptr;
    EXPECT_EQ(ibv_post_send(pair, &send, &bad_send), ENOTCONN);
    EXPECT_EQ(bad_send, &send);
    EXPECT_EQ(go(IBV_QPS_RTR), 0);
    EXPECT_EQ(go(IBV_QPS_RTS), EINVAL) << "nobody is connected";
    EXPECT_EQ(go(IBV_QPS_ERR), 0);
    ibv_wc flushed{};
    EXPECT_EQ(ibv_poll_cq(queue, 1, &flushed), 1);
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(flushed.wr_id, 5u);
    EXPECT_EQ(go(IBV_QPS_INIT), EINVAL);
    EXPECT_EQ(go(IBV_QPS_RESET), 0);
    EXPECT_EQ(go(IBV_QPS_INIT), 0);
    attributes.cap = wish.cap;
    EXPECT_EQ(ibv_modify_qp(pair, &attributes, IBV_QP_CAP), EOPNOTSUPP);
    EXPECT_EQ(ibv_destroy_qp(pair), 0);
    EXPECT_EQ(ibv_destroy_cq(queue), 0);
}

TEST(Names, AreTheOnesPeopleSearchFor) {
    EXPECT_STREQ(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
    EXPECT_STREQ(ibv_wc_status_str(static_cast<ibv_wc_status>(31)), "unknown");
    EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_SRQ_LIMIT_REACHED), "SRQ limit reached");
    EXPECT_STREQ(ibv_node_type_str(IBV_NODE_RNIC), "iWARP NIC");
    EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103'125);
    EXPECT_EQ(mult_to_ibv_rate(ibv_rate_to_mult(IBV_RATE_40_GBPS)), IBV_RATE_40_GBPS);
    EXPECT_EQ(mbps_to_ibv_rate(10'000), IBV_RATE_10_GBPS);
    EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_56_GBPS), -1);
}

}  // namespace
}  // namespace weft::test
