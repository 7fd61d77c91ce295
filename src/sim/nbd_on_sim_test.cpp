// SPDX-License-Identifier: Apache-2.0
// The production NBD server and client in a simulated world: what the world is for.
//
// A machine writes and reads another's disk while connections break and the disk fails. A read
// that succeeds gives what was last written there, and every request completes exactly once.
#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <memory>

#include "node/nbd_disk.hpp"
#include "node/nbd_server.hpp"
#include "sim/durability_checker.hpp"
#include "sim/faults.hpp"
#include "sim/world.hpp"
#include "support/seeds.hpp"
#include "support/test_request.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::TestRequest;

constexpr std::uint64_t plenty = 5'000'000;  // events
const Address elm = Address::tcp("elm", 10809);

/// The server on "elm", and clients on "oak" that connect again when they must.
struct RemoteDisk {
    static constexpr std::uint64_t size = 64 * 1024;

    explicit RemoteDisk(std::uint64_t seed) : world(seed), faults(world, plan()) {
        LinkOptions options;
        options.give_up_after = 500ms;
        world.network().set_options(options);
        world.make_disk("disk", {.size = size});
        disk = std::move(*world.host("elm").open_disk({.path = "disk"}));
        server = std::make_unique<node::NbdServer>(world.host("elm"), node::NbdServer::Options{});
        EXPECT_TRUE(server->add({"disk", "", disk.get()}));
        EXPECT_TRUE(server->listen(elm));
        connect();
    }
    ~RemoteDisk() {
        client.reset();
        server->stop();
        EXPECT_TRUE(world.run_until_quiet(plenty));
        EXPECT_TRUE(server->quiet());
        server.reset();
    }
    static FaultPlan plan() { return {.longest_outage = 300ms}; }
    void connect() {
        client = std::move(*node::NbdDisk::connect(world.host("oak"), elm, "", [](auto) {}));
    }
    /// False: it failed.
    bool run(TestRequest& request) {
        client->device().submit(request);
        Instant last_moment = world.now() + 200s;  // a silent server is given up before
        while (!request.outcome && world.now() < last_moment && world.step()) continue;
        EXPECT_TRUE(request.outcome) << "a request never completed";
        return request.succeeded();
    }

    World world;
    Faults faults;
    std::unique_ptr<BlockDevice> disk;
    std::unique_ptr<node::NbdServer> server;
    std::unique_ptr<node::NbdDisk> client;
};

void write_and_read(RemoteDisk& remote, DurabilityChecker& checker, int& succeeded, int& failed) {
    auto offset = remote.world.chance().below(RemoteDisk::size / sector_bytes - 16) * sector_bytes;
    auto length = remote.world.chance().between(1, 16) * sector_bytes;
    TestRequest write(BlockOperation::write, offset, length);
    for (std::byte& octet : write.octets) octet = static_cast<std::byte>(remote.world.random());
    checker.write_asked(offset, write.octets);
    bool wrote = remote.run(write);
    checker.write_answered(offset, length, DurabilityChecker::Lasting::until_crash, *write.outcome);

    TestRequest read(BlockOperation::read, offset, length);
    checker.read_asked(offset, length);
    bool has_read = remote.run(read);
    auto wrong = checker.read_answered(offset, read.octets, *read.outcome);
    EXPECT_FALSE(wrong) << *wrong;
    ++(wrote && has_read ? succeeded : failed);
    if (wrote && has_read) return;
    // The server may still hold the old connection's requests: let it finish them first.
    remote.client.reset();
    remote.world.run_for(5s);
    remote.connect();
}

TEST(NbdInASimulatedWorld, ReadsBackWhatItWroteWhateverBreaks) {
    int failed = 0, succeeded = 0;
    test::for_each_seed(60, [&](std::uint64_t seed) {
        RemoteDisk remote(seed);
        DurabilityChecker checker;
        remote.faults.start(10s);
        Instant end = remote.world.now() + 10s;
        while (remote.world.now() < end && !::testing::Test::HasFailure()) {
            write_and_read(remote, checker, succeeded, failed);
            remote.world.run_for(remote.world.chance().between(0ms, 100ms));
        }
        remote.world.run_for(20s);
        remote.connect();
        int failed_before = failed;
        for (int i = 0; i < 5; ++i) write_and_read(remote, checker, succeeded, failed);
        EXPECT_EQ(failed, failed_before) << "the faults are over";
    });
    if (!test::runs_all_seeds()) return;
    EXPECT_GT(succeeded, failed);
    EXPECT_GT(failed, 20) << "the faults did reach it";
}

}  // namespace
}  // namespace weft::sim
