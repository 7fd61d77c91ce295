// SPDX-License-Identifier: Apache-2.0
#include "linux/in_place_file_io.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "linux/loop_timer.hpp"
#include "linux/thread_file_io.hpp"

namespace weft::linux {
namespace {

using namespace std::chrono_literals;

/// Stands for a write that takes as long as it is told.
struct Nap final : FileOperation {
    explicit Nap(std::chrono::milliseconds how_long) : length_of_nap(how_long) {
        kind = Kind::call;
        brief = true;
    }
    std::chrono::milliseconds length_of_nap;
    std::thread::id where;
    bool done = false;
    std::int64_t on_thread() override {
        where = std::this_thread::get_id();
        std::this_thread::sleep_for(length_of_nap);
        return 0;
    }
    void finished(std::int64_t) override { done = true; }
};

class InPlaceFileIoTest : public testing::Test {
protected:
    InPlaceFileIoTest() {
        auto engine = std::move(*ThreadFileIo::make(*loop, 1));
        io = std::make_unique<InPlaceFileIo>(*loop, std::move(engine),
                                             InPlaceFileIo::Reads::try_in_place);
    }
    std::thread::id where_is_done(Nap nap) {
        io->start(nap);
        EXPECT_FALSE(nap.done) << "never from inside start()";
        loop->run_until([&] { return nap.done; });
        return nap.where;
    }
    std::unique_ptr<EventLoop> loop = std::move(*EventLoop::make());
    std::unique_ptr<InPlaceFileIo> io;
    std::thread::id here = std::this_thread::get_id();
};

TEST_F(InPlaceFileIoTest, DoesBriefOperationsHereAndTheOthersElsewhere) {
    EXPECT_EQ(where_is_done(Nap(0ms)), here);
    Nap longer(0ms);
    longer.brief = false;
    EXPECT_NE(where_is_done(longer), here);
}

TEST_F(InPlaceFileIoTest, LeavesThemToTheEngineForFiftyTimesAsLongAsOneWasSlow) {
    EXPECT_EQ(where_is_done(Nap(3ms)), here);
    EXPECT_NE(where_is_done(Nap(0ms)), here);
    auto timer = make_timer(*loop, [&] { loop->stop(); });
    timer->set(loop->now() + 50ms);
    loop->run();
    EXPECT_NE(where_is_done(Nap(0ms)), here);
    std::this_thread::sleep_for(150ms);
    while (where_is_done(Nap(0ms)) != here) {
    }
}

TEST_F(InPlaceFileIoTest, PassesOnWhatWasGatheredBeforeTheSlowOne) {
    Nap slow(3ms), next(0ms);
    io->start(slow), io->start(next);
    loop->run_until([&] { return next.done; });
    EXPECT_EQ(slow.where, here);
    EXPECT_NE(next.where, here);
}

}  // namespace
}  // namespace weft::linux
