// SPDX-License-Identifier: Apache-2.0
// weft/export.hpp as a program outside uses it: one disk, served by NBD and by iSCSI at once.
#include "weft/export.hpp"

#include <gtest/gtest.h>

#include "node/iscsi_disk.hpp"
#include "node/nbd_disk.hpp"
#include "sim/world.hpp"
#include "support/test_request.hpp"

namespace weft::sim {
namespace {

using test::TestRequest;

constexpr std::uint64_t plenty = 1'000'000;  // events
constexpr const char* target = "iqn.2026-11.io.weft:disk";

class Exports : public testing::Test {
protected:
    Exports() {
        world.make_disk("disk", {.size = 64 * 1024});
        disk = std::move(*world.host("elm").open_disk({.path = "disk"}));
        nbd = make_nbd_exports(world.host("elm"));
        iscsi = make_iscsi_exports(world.host("elm"));
        EXPECT_TRUE(nbd->add("disk", *disk, false));
        EXPECT_TRUE(iscsi->add_target(target, {}));
        EXPECT_TRUE(iscsi->add_unit(target, 0, *disk, {}));
        EXPECT_TRUE(nbd->listen(Address::tcp("elm", 10809)));
        EXPECT_TRUE(iscsi->listen(Address::tcp("elm", 3260)));
    }
    ~Exports() override {
        for (Server* server : {static_cast<Server*>(nbd.get()), static_cast<Server*>(iscsi.get())})
            server->stop();
        EXPECT_TRUE(world.run_until_quiet(plenty));
        EXPECT_TRUE(nbd->quiet());
        EXPECT_TRUE(iscsi->quiet());
    }

    World world{1};
    std::unique_ptr<BlockDevice> disk;
    std::unique_ptr<NbdExports> nbd;
    std::unique_ptr<IscsiExports> iscsi;
};

TEST_F(Exports, serve_one_disk_in_two_ways) {
    std::optional<Result<void>> nbd_opened, iscsi_opened;
    auto by_nbd =
        std::move(*node::NbdDisk::connect(world.host("oak"), Address::tcp("elm", 10809), "disk",
                                          [&](Result<void> how) { nbd_opened = how; }));
    node::IscsiInitiatorOptions asking;
    asking.url.address = Address::tcp("elm", 3260);
    asking.url.target_name = target;
    asking.url.unit = 0;
    asking.initiator_name = "iqn.2026-11.io.weft:oak";
    node::IscsiTcpTransport transport(world.host("oak"));
    node::IscsiDisk by_iscsi(world.host("oak"), transport, asking,
                             [&](Result<void> how) { iscsi_opened = how; });
    while (!(nbd_opened && iscsi_opened) && world.step()) continue;
    ASSERT_TRUE(nbd_opened && *nbd_opened);
    ASSERT_TRUE(iscsi_opened && *iscsi_opened);

    TestRequest write(BlockOperation::write, 4096, 4096);
    for (auto& octet : write.octets) octet = std::byte{0x5a};
    by_iscsi.device().submit(write);
    while (!write.outcome && world.step()) continue;
    EXPECT_TRUE(write.succeeded());
    TestRequest read(BlockOperation::read, 4096, 4096);
    by_nbd->device().submit(read);
    while (!read.outcome && world.step()) continue;
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(read.octets, write.octets);

    by_iscsi.disconnect();
    while (!by_iscsi.finished() && world.step()) continue;
}

TEST_F(Exports, say_when_a_disk_is_not_used_any_more) {
    bool gone = false;
    EXPECT_FALSE(iscsi->remove_unit(target, 7, {}));
    EXPECT_TRUE(iscsi->remove_unit(target, 0, [&] { gone = true; }));
    EXPECT_TRUE(world.run_until_quiet(plenty));
    EXPECT_TRUE(gone);
    gone = false;
    EXPECT_TRUE(iscsi->remove_target(target, [&] { gone = true; }));
    EXPECT_TRUE(world.run_until_quiet(plenty));
    EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace weft::sim
