// SPDX-License-Identifier: Apache-2.0
// Programs that become daemons close all descriptors they find, and ours with them. What they made
// before fails from then on as documented; what they make afterwards works.
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/counting.hpp"
#include "abi/verbs_fixture.hpp"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

/// In a child, since gtest's own descriptors go as well.
class ClosedDescriptors : public ConnectedTest {
protected:
    void SetUp() override {
        if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow a fork";
    }
    static void close_all() { ::close_range(3, ~0u, 0); }

    /// `story` tells what went wrong by a number of its own; 0 is a good end.
    static void expect_good_end(const std::function<int()>& story) {
        auto child = ::fork();
        if (child == 0) ::_exit(story());
        int status = -1;
        for (int i = 0; i < 2'000; ++i) {
            if (::waitpid(child, &status, WNOHANG) == child) {
                EXPECT_TRUE(WIFEXITED(status)) << "by signal " << WTERMSIG(status);
                EXPECT_EQ(WEXITSTATUS(status), 0);
                return;
            }
            std::this_thread::sleep_for(10ms);
        }
        ADD_FAILURE() << "it does not end";
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, 0);
    }
    bool exchange() {
        connect({});
        if (HasFailure()) return false;
        a->write(0, "hello");
        return b->receive(1, 0, 100) == 0 && a->send(2, 0, 5) == 0 &&
               a->completion().status == IBV_WC_SUCCESS && b->completion().status == IBV_WC_SUCCESS;
    }
    /// A destroyed side says by EXPECT_EQ if that failed.
    void leave_behind() {
        (void)a.release();
        (void)b.release();
    }
};

TEST_F(ClosedDescriptors, EndWorkAndNotTheProcess) {
    expect_good_end([&] {
        if (!exchange()) return 1;
        close_all();
        // It is taken and flushed, or refused; and so it goes on.
        for (int i = 0; i < 50; ++i) {
            auto posted = a->send(static_cast<std::uint64_t>(i), 0, 5);
            if (posted != 0 && posted != EIO && posted != ENOMEM) return 2;
            ibv_wc found{};
            auto count = ibv_poll_cq(a->completions, 1, &found);
            if (count < 0 && errno != EIO) return 3;
            if (count > 0 && found.status == IBV_WC_SUCCESS && i > 0) return 4;
        }
        ibv_wc last{};
        while (ibv_poll_cq(a->completions, 1, &last) >= 0) {
        }
        if (errno != EIO || a->send(99, 0, 5) != EIO) return 5;
        ibv_cq* queue = nullptr;
        void* context = nullptr;
        if (ibv_get_cq_event(a->channel, &queue, &context) != -1) return 6;
        return ibv_alloc_pd(a->id->verbs) == nullptr && errno == EIO ? 0 : 7;
    });
}

TEST_F(ClosedDescriptors, LeaveADescriptorAloneThatHasTheNumberNow) {
    expect_good_end([&] {
        if (!exchange()) return 1;
        close_all();
        std::vector<int> theirs;
        for (int i = 0; i < 64; ++i) theirs.push_back(::dup(0));
        ibv_wc found{};
        for (int i = 0; i < 10; ++i) ibv_poll_cq(a->completions, 1, &found);
        a.reset();
        b.reset();
        for (int one : theirs)
            if (::fcntl(one, F_GETFD) < 0) return 2;
        return HasFailure() ? 3 : 0;
    });
}

TEST_F(ClosedDescriptors, DoNotKeepAProgramFromBeginningAnew) {
    expect_good_end([&] {
        if (!exchange()) return 1;
        auto before = rsocket(AF_INET, SOCK_STREAM, 0);
        close_all();
        leave_behind();
        if (!exchange()) return 2;
        a.reset();
        b.reset();
        if (HasFailure()) return 3;
        char one = 0;
        if (rrecv(before, &one, 1, 0) != -1) return 4;
        auto after = rsocket(AF_INET, SOCK_STREAM, 0);
        return after >= 0 && rclose(after) == 0 ? 0 : 5;
    });
}

TEST_F(ClosedDescriptors, LetSocketsListenAgain) {
    expect_good_end([&] {
        sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto listen = [&] {
            auto made = rsocket(AF_INET, SOCK_STREAM, 0);
            auto* at = reinterpret_cast<sockaddr*>(&any);
            return rbind(made, at, sizeof any) == 0 && rlisten(made, 1) == 0 ? made : -1;
        };
        if (listen() < 0) return 1;
        close_all();
        auto listener = listen();
        if (listener < 0) return 2;
        socklen_t size = sizeof any;
        rgetsockname(listener, reinterpret_cast<sockaddr*>(&any), &size);
        auto client = rsocket(AF_INET, SOCK_STREAM, 0);
        if (rconnect(client, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) return 3;
        auto served = raccept(listener, nullptr, nullptr);
        char octet = 'w';
        if (served < 0 || rsend(client, &octet, 1, 0) != 1) return 4;
        return rrecv(served, &octet, 1, MSG_WAITALL) == 1 ? 0 : 5;
    });
}

}  // namespace
}  // namespace weft::test
