// SPDX-License-Identifier: Apache-2.0
#include "abi/memory_guard.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/foreign_memory.hpp"

namespace weft::abi {
namespace {

constexpr std::size_t page = 4096;

/// Two pages of which the second is gone.
struct HalfGone {
    HalfGone()
        : bytes(static_cast<char*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        ::munmap(bytes + page, page);
    }
    ~HalfGone() { ::munmap(bytes, page); }
    char* bytes;
};

class MemoryGuardTest : public testing::Test {
protected:
    MemoryGuardTest() { install_memory_guard(); }
    ~MemoryGuardTest() override { foreign_memory_guard = nullptr; }
    HalfGone memory;
    char from[2 * page] = {};
};

TEST_F(MemoryGuardTest, LetsWhatIsThereBeTouched) {
    std::memset(from, 'w', sizeof from);
    EXPECT_TRUE(touch_foreign_memory([&] { std::memcpy(memory.bytes, from, page); }));
    EXPECT_EQ(memory.bytes[page - 1], 'w');
}

TEST_F(MemoryGuardTest, BreaksOffWhereMemoryIsGoneAndAgainTheNextTime) {
    for (int time = 0; time < 3; ++time) {
        EXPECT_FALSE(touch_foreign_memory([&] { std::memcpy(memory.bytes, from, 2 * page); }));
        EXPECT_FALSE(touch_foreign_memory([&] { std::memcpy(from, memory.bytes, 2 * page); }));
    }
    EXPECT_TRUE(touch_foreign_memory([&] { memory.bytes[0] = 'x'; }));
}

/// A thread that keeps the signals of accesses out: whoever lets only one thread hear signals often
/// blocks them all in the others.
class WithoutSignals {
public:
    WithoutSignals() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

TEST_F(MemoryGuardTest, BreaksOffInAThreadThatBlocksTheSignals) {
    std::thread([&] {
        WithoutSignals none;
        for (int time = 0; time < 3; ++time)
            EXPECT_FALSE(touch_foreign_memory([&] { std::memcpy(from, memory.bytes, 2 * page); }));
        sigset_t now;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
        EXPECT_EQ(::sigismember(&now, SIGSEGV), 1) << "it is the application's to choose";
        EXPECT_EQ(::sigismember(&now, SIGBUS), 1);
    }).join();
}

TEST_F(MemoryGuardTest, NoticesThatAThreadHasBlockedThemSince) {
    std::thread([&] {
        EXPECT_TRUE(touch_foreign_memory([&] { memory.bytes[0] = 'x'; }));
        WithoutSignals none;
        for (int i = 0; i < 1000; ++i)
            EXPECT_TRUE(touch_foreign_memory([&] { memory.bytes[0] = 'x'; }));
        EXPECT_FALSE(touch_foreign_memory([&] { std::memcpy(from, memory.bytes, 2 * page); }));
    }).join();
}

/// By the signal, or as a sanitizer's handler for it ends a program.
bool ended_badly(int status) {
    return WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
}

TEST_F(MemoryGuardTest, LeavesOtherMistakesTheirSignal) {
    volatile char* gone = memory.bytes + page;
    EXPECT_EXIT(
        {
            (void)touch_foreign_memory([] {});
            *gone = 1;
        },
        ended_badly, "");
}

TEST_F(MemoryGuardTest, LeavesASignalThatSomebodySentItsEffect) {
    EXPECT_EXIT(::kill(::getpid(), SIGSEGV), ended_badly, "");
    EXPECT_EXIT(::kill(::getpid(), SIGBUS), ended_badly, "");
}

TEST(MemoryGuardAndApplication, IgnoresASentSignalThatTheApplicationIgnored) {
    std::signal(SIGBUS, SIG_IGN);
    install_memory_guard();
    EXPECT_EXIT((::kill(::getpid(), SIGBUS), std::_Exit(3)), testing::ExitedWithCode(3), "");
    std::signal(SIGBUS, SIG_DFL);
    foreign_memory_guard = nullptr;
}

sigjmp_buf back;

TEST(MemoryGuardAndApplication, KeepsAHandlerThatWasThereBefore) {
    HalfGone memory;
    volatile char* gone = memory.bytes + page;
    std::signal(SIGSEGV, [](int) { siglongjmp(back, 1); });
    install_memory_guard();
    if (sigsetjmp(back, 1) == 0) {
        *gone = 1;
        ADD_FAILURE() << "that should not have worked";
    }
    char one = 0;
    EXPECT_FALSE(touch_foreign_memory([&] { one = *gone; }));
    std::signal(SIGSEGV, SIG_DFL);
    foreign_memory_guard = nullptr;
}

}  // namespace
}  // namespace weft::abi
