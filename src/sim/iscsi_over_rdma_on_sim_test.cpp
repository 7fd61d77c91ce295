// SPDX-License-Identifier: Apache-2.0
// The production iSCSI target and initiator with RDMA between them, in both ways there are to begin
// it, and where the target does not know how; over links that are reset now and then.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "node/iscsi_disk.hpp"
#include "node/iscsi_iser_transport.hpp"
#include "node/iscsi_server.hpp"
#include "sim/world.hpp"
#include "support/seeds.hpp"
#include "support/test_request.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::TestRequest;

constexpr std::uint64_t plenty = 20'000'000;  // events
const Address elm = Address::tcp("elm", 3260);
constexpr const char* target_name = "iqn.2026-11.io.weft:disk";

enum class Way { rdma_first, after_login, refused };

/// The target on "elm", the initiator on "oak".
struct RemoteDisk {
    RemoteDisk(std::uint64_t seed, Way way) : world(seed) {
        world.network().set_options(
            {.kept_lent_percent = static_cast<unsigned>(seed % 3 * 50), .give_up_after = 500ms});
        world.make_disk("disk", {.size = 1u << 20});
        disk = std::move(*world.host("elm").open_disk({.path = "disk"}));
        node::IscsiServer::Options serving;
        serving.iser = way != Way::refused;
        server = std::make_unique<node::IscsiServer>(world.host("elm"), serving);
        EXPECT_TRUE(server->add_target(target_name, {}));
        EXPECT_TRUE(server->add_unit(target_name, 1, *disk, {}));
        EXPECT_TRUE(server->listen(elm));
        node::IscsiInitiatorOptions asking;
        asking.url.over_rdma = true;
        asking.url.address = elm;
        asking.url.target_name = target_name;
        asking.url.unit = 1;
        asking.initiator_name = "iqn.2026-11.io.weft:oak";
        if (way == Way::rdma_first)
            transport = std::make_unique<node::IscsiIserTransport>(world.host("oak"),
                                                                   iscsi::IserInitiator::Options{});
        else
            transport = std::make_unique<node::IscsiTurningTransport>(
                world.host("oak"), iscsi::IserInitiator::Options{});
        client = std::make_unique<node::IscsiDisk>(world.host("oak"), *transport, asking,
                                                   [this](Result<void> how) { opened = how; });
        while (!opened && world.step()) continue;
        EXPECT_TRUE(opened && *opened);
    }
    ~RemoteDisk() {
        client->disconnect();
        while (!client->finished() && world.step()) continue;
        client.reset();
        server->stop();
        EXPECT_TRUE(world.run_until_quiet(plenty));
        EXPECT_TRUE(server->quiet());
        server.reset();
    }
    void finish(TestRequest& request) {
        client->device().submit(request);
        while (!request.outcome && world.step()) continue;
        ASSERT_TRUE(request.outcome);
        EXPECT_TRUE(*request.outcome);
    }
    /// Writes somewhere and reads it back.
    void round() {
        auto& chance = world.chance();
        auto length = 512 * chance.between(1, 256), offset = 512 * chance.below(1024);
        TestRequest write(BlockOperation::write, offset, length);
        for (auto& octet : write.octets) octet = static_cast<std::byte>(world.random());
        finish(write);
        TestRequest read(BlockOperation::read, offset, length);
        finish(read);
        EXPECT_EQ(read.octets, write.octets);
    }

    World world;
    std::unique_ptr<BlockDevice> disk;
    std::unique_ptr<node::IscsiServer> server;
    std::unique_ptr<node::IscsiTransport> transport;
    std::unique_ptr<node::IscsiDisk> client;
    std::optional<Result<void>> opened;
};

class IscsiOverRdma : public testing::TestWithParam<Way> {};

TEST_P(IscsiOverRdma, ReadsBackWhatItWrote) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        RemoteDisk remote(seed, GetParam());
        EXPECT_EQ(remote.client->session().terms().rdma_extensions, GetParam() != Way::refused);
        for (int i = 0; i < 20; ++i) remote.round();
    });
}

TEST_P(IscsiOverRdma, GoesOnWhenItsLinkWasReset) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        RemoteDisk remote(seed, GetParam());
        for (int i = 0; i < 10; ++i) {
            auto steps = remote.world.chance().below(200);
            TestRequest read(BlockOperation::read, 0, 128 * 1024);
            remote.client->device().submit(read);
            for (std::uint64_t step = 0; step < steps; ++step) remote.world.step();
            for (auto link : remote.world.network().links()) remote.world.network().reset(link);
            while (!read.outcome && remote.world.step()) continue;
            ASSERT_TRUE(read.outcome && *read.outcome);
            remote.round();
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Ways, IscsiOverRdma,
                         testing::Values(Way::rdma_first, Way::after_login, Way::refused),
                         [](const auto& way) {
                             return way.param == Way::rdma_first    ? "RdmaFirst"
                                    : way.param == Way::after_login ? "AfterLogin"
                                                                    : "Refused";
                         });

}  // namespace
}  // namespace weft::sim
