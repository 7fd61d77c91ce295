// SPDX-License-Identifier: Apache-2.0
// The production iSCSI target on the simulated machine "elm" and an initiator's disk on "oak", with
// a simulated disk behind them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

#include "node/iscsi_disk.hpp"
#include "node/iscsi_iser_transport.hpp"
#include "node/iscsi_server.hpp"
#include "sim/world.hpp"
#include "support/test_request.hpp"

namespace weft::sim {

/// Shows every request before it is passed on.
class WatchedDisk final : public BlockDevice {
public:
    explicit WatchedDisk(std::unique_ptr<BlockDevice> below) : below_(std::move(below)) {}
    BlockTraits traits() const override { return below_->traits(); }
    void submit(BlockRequest& request) override {
        if (seen) seen(request);
        below_->submit(request);
    }
    std::function<void(const BlockRequest&)> seen;

private:
    std::unique_ptr<BlockDevice> below_;
};

struct RemoteDisk {
    enum class Way : std::uint8_t {
        tcp,
        rdma_first,
        rdma_after_login,
        rdma_refused,  ///< the initiator asks for it and the target does not know how
    };
    struct Options {
        Way way = Way::tcp;
        std::size_t connections = 1;
        bool digests = false;
        std::uint64_t size = 256 * 1024;
        LinkOptions links{};
    };

    static constexpr std::uint64_t plenty = 20'000'000;  ///< events
    static constexpr const char* target_name = "iqn.2026-11.io.weft:disk";

    RemoteDisk(std::uint64_t seed, const Options& options) : world(seed) {
        world.network().set_options(options.links);
        world.make_disk("disk", {.size = options.size});
        disk = std::make_unique<WatchedDisk>(
            std::move(*world.host("elm").open_disk({.path = "disk"})));
        serve(options);
        node::IscsiInitiatorOptions asking;
        asking.url.address = Address::tcp("elm", 3260);
        asking.url.target_name = target_name;
        asking.url.unit = 1;
        asking.url.over_rdma = options.way != Way::tcp;
        asking.url.header_digest = asking.url.data_digest = options.digests;
        asking.initiator_name = "iqn.2026-11.io.weft:oak";
        asking.connections = options.connections;
        transport = make_transport(options.way);
        client = std::make_unique<node::IscsiDisk>(world.host("oak"), *transport, asking,
                                                   [this](Result<void> how) { opened = how; });
        while (!opened && world.step()) continue;
        EXPECT_TRUE(opened && *opened);
    }
    RemoteDisk(const RemoteDisk&) = delete;
    RemoteDisk& operator=(const RemoteDisk&) = delete;
    ~RemoteDisk() {
        client->disconnect();
        while (!client->finished() && world.step()) continue;
        client.reset();
        server->stop();
        EXPECT_TRUE(world.run_until_quiet(plenty));
        EXPECT_TRUE(server->quiet());
        server.reset();
    }

    /// Submits it and lets time pass until it is done, which must be well.
    void finish(test::TestRequest& request) {
        client->device().submit(request);
        while (!request.outcome && world.step()) continue;
        ASSERT_TRUE(request.outcome);
        EXPECT_TRUE(*request.outcome);
    }

    World world;
    std::unique_ptr<WatchedDisk> disk;
    std::unique_ptr<node::IscsiServer> server;
    std::unique_ptr<node::IscsiTransport> transport;
    std::unique_ptr<node::IscsiDisk> client;
    std::optional<Result<void>> opened;

private:
    void serve(const Options& options) {
        node::IscsiServer::Options serving;
        serving.iser = options.way != Way::rdma_refused;
        serving.wishes.terms.max_connections = 4;
        server = std::make_unique<node::IscsiServer>(world.host("elm"), serving);
        EXPECT_TRUE(server->add_target(target_name, {}));
        EXPECT_TRUE(server->add_unit(target_name, 1, *disk, {}));
        EXPECT_TRUE(server->listen(Address::tcp("elm", 3260)));
    }
    std::unique_ptr<node::IscsiTransport> make_transport(Way way) {
        auto& oak = world.host("oak");
        if (way == Way::tcp) return std::make_unique<node::IscsiTcpTransport>(oak);
        const iscsi::IserInitiator::Options usual{};
        if (way == Way::rdma_first) return std::make_unique<node::IscsiIserTransport>(oak, usual);
        return std::make_unique<node::IscsiTurningTransport>(oak, usual);
    }
};

}  // namespace weft::sim
