// SPDX-License-Identifier: Apache-2.0
// The production iSCSI target and initiator with RDMA between them, in both ways there are to begin
// it, and where the target does not know how; over links that are reset now and then.
#include <gtest/gtest.h>

#include <chrono>

#include "support/remote_disk.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::TestRequest;

using Way = RemoteDisk::Way;

RemoteDisk::Options options(std::uint64_t seed, Way way) {
    return {.way = way,
            .size = 1u << 20,
            .links = {.kept_lent_percent = static_cast<unsigned>(seed % 3 * 50),
                      .give_up_after = 500ms}};
}

/// Writes somewhere and reads it back.
void round(RemoteDisk& remote) {
    auto& chance = remote.world.chance();
    auto length = 512 * chance.between(1, 256), offset = 512 * chance.below(1024);
    TestRequest write(BlockOperation::write, offset, length);
    for (auto& octet : write.octets) octet = static_cast<std::byte>(remote.world.random());
    remote.finish(write);
    TestRequest read(BlockOperation::read, offset, length);
    remote.finish(read);
    EXPECT_EQ(read.octets, write.octets);
}

class IscsiOverRdma : public testing::TestWithParam<Way> {};

TEST_P(IscsiOverRdma, ReadsBackWhatItWrote) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        RemoteDisk remote(seed, options(seed, GetParam()));
        EXPECT_EQ(remote.client->session().terms().rdma_extensions,
                  GetParam() != Way::rdma_refused);
        for (int i = 0; i < 20; ++i) round(remote);
    });
}

TEST_P(IscsiOverRdma, GoesOnWhenItsLinkWasReset) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        RemoteDisk remote(seed, options(seed, GetParam()));
        for (int i = 0; i < 10; ++i) {
            auto steps = remote.world.chance().below(200);
            TestRequest read(BlockOperation::read, 0, 128 * 1024);
            remote.client->device().submit(read);
            for (std::uint64_t step = 0; step < steps; ++step) remote.world.step();
            for (auto link : remote.world.network().links()) remote.world.network().reset(link);
            while (!read.outcome && remote.world.step()) continue;
            ASSERT_TRUE(read.outcome && *read.outcome);
            round(remote);
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Ways, IscsiOverRdma,
                         testing::Values(Way::rdma_first, Way::rdma_after_login, Way::rdma_refused),
                         [](const auto& way) {
                             return way.param == Way::rdma_first         ? "RdmaFirst"
                                    : way.param == Way::rdma_after_login ? "AfterLogin"
                                                                         : "Refused";
                         });

}  // namespace
}  // namespace weft::sim
