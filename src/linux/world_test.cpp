// SPDX-License-Identifier: Apache-2.0
#include "linux/world.hpp"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "support/stream_engines.hpp"
#include "support/test_request.hpp"

namespace weft::linux {
namespace {

TEST(World, DrawsDifferentNumbers) {
    auto one = std::move(*World::make());
    auto two = std::move(*World::make());
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 1000; ++i) seen.insert({one->random(), two->random()});
    EXPECT_EQ(seen.size(), 2000u);
}

TEST(World, CountsTimeFromBoot) {
    auto world = std::move(*World::make());
    double uptime = 0;
    std::ifstream("/proc/uptime") >> uptime;
    EXPECT_NEAR(static_cast<double>(world->now().nanoseconds) / 1e9, uptime, 5);
}

TEST(World, StopsOnASignal) {
    auto world = std::move(*World::make());
    ASSERT_TRUE(world->on_signal(SIGTERM, [&] { world->stop(); }));
    world->defer([] { ::raise(SIGTERM); });
    world->run();  // the test is that it returns, and that we live
}

TEST(World, MayEndWhileItsTasksStillHoldStreams) {
    test::TestEngine engine;
    auto world = std::move(*World::make());
    std::shared_ptr<Stream> stream =
        std::move(*world->connect(Address::unix_socket("/nobody"), engine));
    world->defer([stream = std::move(stream)] {});
    world.reset();
    EXPECT_FALSE(engine.was_closed) << "a dropped stream's engine hears nothing more";
}

TEST(World, RunsOnAnotherThreadThanTheOneThatMadeIt) {
    auto world = std::move(*World::make());
    auto disk = std::move(*world->open_disk({.path = "/proc/self/exe", .read_only = true}));
    test::TestRequest request(BlockOperation::read, 0, 4);
    std::thread([&] {
        disk->submit(request);
        world->run_until([&] { return request.done(); });
    }).join();
    EXPECT_TRUE(*request.outcome);
    EXPECT_EQ(request.octets[1], std::byte{'E'});
}

/// From here on this process may not have a ring, as in many containers.
bool forbid_io_uring() {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program{4, rules};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void use_a_world_without_io_uring() {
    if (!forbid_io_uring()) std::_Exit(2);
    auto ring = World::make({.files = FileEngine::ring});
    if (ring || ring.error() != Error{.code = Code::access_denied, .detail = EPERM}) std::_Exit(3);
    auto made = World::make();
    if (!made || (*made)->file_engine() != FileEngine::threads) std::_Exit(4);
    auto disk = std::move(*(*made)->open_disk({.path = "/proc/self/exe", .read_only = true}));
    test::TestRequest request(BlockOperation::read, 0, 4);
    disk->submit(request);
    (*made)->run_until([&] { return request.done(); });
    disk.reset();
    made->reset();
    std::_Exit(request.octets[1] == std::byte{'E'} ? 0 : 5);
}

TEST(WorldDeathTest, UsesThreadsWhereIoUringIsRefused) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // the kernel may still keep a ring worker
    EXPECT_EXIT(use_a_world_without_io_uring(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::linux
