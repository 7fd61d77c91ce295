// SPDX-License-Identifier: Apache-2.0
// Addresses, ports, devices and options of identifiers, and what rdma_getaddrinfo() says.
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>

#include "abi/cm_fixture.hpp"

namespace weft::test {
namespace {

class Identifiers : public testing::Test {
protected:
    Id bound(const char* number, std::uint16_t port = 0) {
        auto id = make_id(channel.raw);
        EndAddress at(number, port);
        EXPECT_EQ(rdma_bind_addr(id.get(), at.raw()), 0) << std::strerror(errno);
        return id;
    }

    Channel channel;
};

TEST_F(Identifiers, BoundToAnyAddressHaveAPortOfTheirOwnAndNoDevice) {
    auto one = bound("0.0.0.0"), another = bound("0.0.0.0");
    EXPECT_EQ(one->verbs, nullptr);
    EXPECT_NE(rdma_get_src_port(one.get()), 0);
    EXPECT_NE(rdma_get_src_port(one.get()), rdma_get_src_port(another.get()));

    int plain = ::socket(AF_INET, SOCK_STREAM, 0);
    EndAddress same("127.0.0.1", ntohs(rdma_get_src_port(one.get())));
    EXPECT_EQ(::bind(plain, same.raw(), sizeof(sockaddr_in)), -1) << "the port is taken";
    ::close(plain);
}

TEST_F(Identifiers, BoundToTheLoopbackHaveNoDeviceEither) {
    EXPECT_EQ(bound("127.0.0.1")->verbs, nullptr);
    EXPECT_EQ(bound("::1")->verbs, nullptr);
}

TEST_F(Identifiers, AreRefusedWhatCannotBeBound) {
    auto id = bound("127.0.0.1");
    EndAddress again("127.0.0.1"), elsewhere("192.0.2.1");
    EXPECT_EQ(rdma_bind_addr(id.get(), again.raw()), -1);
    EXPECT_EQ(errno, EINVAL);
    auto other = make_id(channel.raw);
    EXPECT_EQ(rdma_bind_addr(other.get(), elsewhere.raw()), -1);
    EXPECT_EQ(errno, EADDRNOTAVAIL);
    sockaddr_storage strange{};
    strange.ss_family = AF_UNIX;
    EXPECT_EQ(rdma_bind_addr(other.get(), reinterpret_cast<sockaddr*>(&strange)), -1);
    EXPECT_EQ(errno, EAFNOSUPPORT);
}

TEST_F(Identifiers, LearnTheirDeviceAndTheirOwnEndByResolving) {
    for (auto* number : {"127.0.0.1", "::1"}) {
        auto id = make_id(channel.raw);
        EndAddress to(number, 4711);
        ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, to.raw(), 2000), 0) << number;
        ASSERT_EQ(channel.next().kind(), "RDMA_CM_EVENT_ADDR_RESOLVED");
        ASSERT_NE(id->verbs, nullptr);
        EXPECT_STREQ(ibv_get_device_name(id->verbs->device), "weft_lo");
        EXPECT_EQ(id->port_num, 1);
        EXPECT_NE(id->pd, nullptr);
        EXPECT_NE(rdma_get_src_port(id.get()), 0);
        EXPECT_EQ(ntohs(rdma_get_dst_port(id.get())), 4711);
        EXPECT_EQ(rdma_get_local_addr(id.get())->sa_family, to.storage.ss_family);
        EXPECT_EQ(rdma_resolve_route(id.get(), 2000), 0);
        EXPECT_EQ(channel.next().kind(), "RDMA_CM_EVENT_ROUTE_RESOLVED");
    }
}

TEST_F(Identifiers, KeepTheEndThatTheyWereBoundTo) {
    auto port = rdma_get_src_port(bound("0.0.0.0").get());
    auto id = bound("0.0.0.0", ntohs(port));
    EndAddress to("127.0.0.1", 4711);
    ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, to.raw(), 2000), 0);
    EXPECT_EQ(channel.next().kind(), "RDMA_CM_EVENT_ADDR_RESOLVED");
    EXPECT_EQ(rdma_get_src_port(id.get()), port);
    EXPECT_EQ(reinterpret_cast<sockaddr_in*>(rdma_get_local_addr(id.get()))->sin_addr.s_addr,
              htonl(INADDR_LOOPBACK));
}

TEST_F(Identifiers, AreOfOneFamily) {
    auto id = bound("127.0.0.1");
    EndAddress to("::1", 4711);
    EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, to.raw(), 2000), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Identifiers, GoTheirWayStepByStep) {
    auto id = make_id(channel.raw);
    rdma_conn_param param{};
    EXPECT_EQ(rdma_resolve_route(id.get(), 2000), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(rdma_connect(id.get(), &param), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(rdma_accept(id.get(), &param), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(rdma_reject(id.get(), nullptr, 0), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(rdma_disconnect(id.get()), -1);
    EXPECT_EQ(errno, EINVAL);
    auto wish = small_queue_pair();
    EXPECT_EQ(rdma_create_qp(id.get(), nullptr, &wish), -1) << "there is no device yet";
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(rdma_listen(id.get(), 1), 0) << "binds by itself";
    EXPECT_NE(rdma_get_src_port(id.get()), 0);
    EXPECT_EQ(rdma_listen(id.get(), 1), -1);
    EXPECT_EQ(errno, EINVAL);
    rdma_cm_id* strange = nullptr;
    EXPECT_EQ(rdma_create_id(channel.raw, &strange, nullptr, static_cast<rdma_port_space>(7)), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Identifiers, DoNotListenWhereAnotherDoes) {
    auto first = bound("127.0.0.1");
    auto port = ntohs(rdma_get_src_port(first.get()));
    ASSERT_EQ(rdma_listen(first.get(), 1), 0);
    auto second = make_id(channel.raw);
    EndAddress same("127.0.0.1", port);
    EXPECT_EQ(rdma_bind_addr(second.get(), same.raw()), -1);
    EXPECT_EQ(errno, EADDRINUSE);
    first.reset();
    EXPECT_EQ(rdma_bind_addr(second.get(), same.raw()), 0) << "the port is free again";
    EXPECT_EQ(rdma_listen(second.get(), 1), 0);
}

bool accepts(const char* number, std::uint16_t port) {
    EndAddress to(number, port);
    int plain = ::socket(to.storage.ss_family, SOCK_STREAM, 0);
    bool accepted = ::connect(plain, to.raw(), sizeof to.storage) == 0;
    ::close(plain);
    return accepted;
}

TEST_F(Identifiers, ListenForBothFamiliesUnlessToldOtherwise) {
    for (int only : {0, 1}) {
        auto id = make_id(channel.raw);
        ASSERT_EQ(
            rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof only),
            0);
        EndAddress any("::");
        ASSERT_EQ(rdma_bind_addr(id.get(), any.raw()), 0);
        ASSERT_EQ(rdma_listen(id.get(), 1), 0);
        auto port = ntohs(rdma_get_src_port(id.get()));
        EXPECT_TRUE(accepts("::1", port));
        EXPECT_EQ(accepts("127.0.0.1", port), only == 0);
    }
}

TEST_F(Identifiers, HaveOptions) {
    auto id = make_id(channel.raw);
    std::uint8_t small = 16;
    int wide = 1;
    auto set = [&](int level, int name, void* value, std::size_t size) {
        return rdma_set_option(id.get(), level, name, value, size) == 0 ? 0 : errno;
    };
    EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &small, 1), 0);
    EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &wide, 4), EINVAL);
    EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &wide, sizeof wide), 0);
    EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &small, 1), 0);
    EXPECT_EQ(set(RDMA_OPTION_ID, 77, &wide, sizeof wide), ENOSYS);
    EXPECT_EQ(set(77, 0, &wide, sizeof wide), ENOSYS);
    ASSERT_EQ(rdma_listen(id.get(), 1), 0);
    EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &wide, sizeof wide), EINVAL);
}

TEST_F(Identifiers, DoNotKnowWhatIwarpHasNot) {
    auto id = make_id(channel.raw);
    EndAddress group("239.0.0.1");
    EXPECT_EQ(rdma_join_multicast(id.get(), group.raw(), nullptr), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(rdma_leave_multicast(id.get(), group.raw()), -1);
    EXPECT_EQ(errno, EADDRNOTAVAIL);
    ibv_ece options{1, 0, 0};
    EXPECT_EQ(rdma_set_local_ece(id.get(), &options), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(rdma_get_remote_ece(id.get(), &options), 0);
    EXPECT_EQ(options.vendor_id, 0u) << "the peer has none";
}

TEST(Devices, AreTheSameForEveryIdentifier) {
    int count = 0;
    auto** list = rdma_get_devices(&count);
    ASSERT_GT(count, 0);
    EXPECT_EQ(list[count], nullptr);
    Channel channel;
    auto id = make_id(channel.raw);
    EndAddress to("127.0.0.1", 4711);
    ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, to.raw(), 2000), 0);
    channel.next();
    EXPECT_EQ(std::count(list, list + count, id->verbs), 1);
    rdma_free_devices(list);
}

rdma_addrinfo* found(const char* node, const char* service, int flags, int family = 0) {
    rdma_addrinfo hints{}, *answer = nullptr;
    hints.ai_flags = flags;
    hints.ai_family = family;
    EXPECT_EQ(rdma_getaddrinfo(node, service, &hints, &answer), 0);
    return answer;
}

TEST(AddressInformation, IsAboutTheOwnEndOrTheOther) {
    auto* own = found("127.0.0.1", "4711", RAI_PASSIVE);
    EXPECT_TRUE(own->ai_flags & RAI_PASSIVE);
    ASSERT_NE(own->ai_src_addr, nullptr);
    EXPECT_EQ(own->ai_dst_addr, nullptr);
    EXPECT_EQ(ntohs(reinterpret_cast<sockaddr_in*>(own->ai_src_addr)->sin_port), 4711);
    EXPECT_EQ(own->ai_qp_type, IBV_QPT_RC);
    EXPECT_EQ(own->ai_port_space, RDMA_PS_TCP);
    rdma_freeaddrinfo(own);

    auto* other = found("::1", nullptr, RAI_NUMERICHOST | RAI_FAMILY, AF_INET6);
    EXPECT_EQ(other->ai_src_addr, nullptr);
    ASSERT_NE(other->ai_dst_addr, nullptr);
    EXPECT_EQ(other->ai_family, AF_INET6);
    EXPECT_EQ(other->ai_dst_len, sizeof(sockaddr_in6));
    rdma_freeaddrinfo(other);
}

TEST(AddressInformation, RepeatsWhatItWasToldAndNamesItsErrors) {
    rdma_addrinfo* answer = nullptr;
    EXPECT_EQ(rdma_getaddrinfo(nullptr, nullptr, nullptr, &answer), -1);
    EXPECT_EQ(errno, EINVAL);
    rdma_addrinfo hints{};
    hints.ai_flags = RAI_NUMERICHOST;
    EXPECT_EQ(rdma_getaddrinfo("not a number", nullptr, &hints, &answer), EAI_NONAME);
    EndAddress from("127.0.0.1", 1), to("127.0.0.1", 2);
    hints = {};
    hints.ai_src_addr = from.raw();
    hints.ai_dst_addr = to.raw();
    hints.ai_src_len = hints.ai_dst_len = sizeof(sockaddr_in);
    hints.ai_port_space = RDMA_PS_TCP;
    ASSERT_EQ(rdma_getaddrinfo(nullptr, nullptr, &hints, &answer), 0);
    EXPECT_EQ(std::memcmp(answer->ai_src_addr, from.raw(), sizeof(sockaddr_in)), 0);
    EXPECT_EQ(std::memcmp(answer->ai_dst_addr, to.raw(), sizeof(sockaddr_in)), 0);
    rdma_freeaddrinfo(answer);
}

}  // namespace
}  // namespace weft::test
