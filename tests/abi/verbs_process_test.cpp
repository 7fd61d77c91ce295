// SPDX-License-Identifier: Apache-2.0
// What a process does around the library: fork(), exit(), and running out of what it needs.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/verbs_fixture.hpp"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

/// How the child has ended; -1 if it has not, and had to be killed.
int outcome_of(pid_t child, std::chrono::milliseconds patience) {
    int status = -1;
    auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
        if (::waitpid(child, &status, WNOHANG) == child) return status;
        std::this_thread::sleep_for(2ms);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return -1;
}

/// In a child: never comes back.
void poll_until_a_signal_ends_it(int after_us) {
    ::signal(SIGALRM, [](int) { std::exit(0); });
    auto** list = ibv_get_device_list(nullptr);
    auto* own = ibv_open_device(loopback(list));
    auto* queue = ibv_create_cq(own, 4, nullptr, nullptr, 0);
    itimerval soon{{}, {0, after_us}};
    ::setitimer(ITIMER_REAL, &soon, nullptr);
    for (ibv_wc none{};;) ibv_poll_cq(queue, 1, &none);
}

TEST_F(VerbsTest, LetsAHandlerOfASignalEndTheProcess) {
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow a fork";
    for (int i = 0; i < 10; ++i) {
        auto child = ::fork();
        if (child == 0) poll_until_a_signal_ends_it(5'000 + 137 * i);
        ASSERT_EQ(outcome_of(child, 10s), 0) << i;
    }
}

}  // namespace
}  // namespace weft::test
