// SPDX-License-Identifier: Apache-2.0
#include "linux/in_place_file_io.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "linux/thread_file_io.hpp"

namespace weft::linux {
namespace {

using namespace std::chrono_literals;

/// Stands for a write that takes as long as it is told, by a clock that only such writes and the
/// test itself move.
struct Nap final : FileOperation {
    Nap(Instant& the_clock, Duration how_long) : clock(the_clock), length_of_nap(how_long) {
        kind = Kind::call;
        brief = true;
    }
    Instant& clock;
    Duration length_of_nap;
    std::thread::id where;
    bool done = false;
    std::int64_t on_thread() override {
        where = std::this_thread::get_id();
        if (length_of_nap > 0ns) clock = clock + length_of_nap;  // never on the engine's thread
        return 0;
    }
    void finished(std::int64_t) override { done = true; }
};

class InPlaceFileIoTest : public testing::Test {
protected:
    InPlaceFileIoTest() {
        auto engine = std::move(*ThreadFileIo::make(*loop, 1));
        io = std::make_unique<InPlaceFileIo>(
            *loop, std::move(engine), InPlaceFileIo::Reads::try_in_place, [this] { return clock; });
    }
    Nap nap_of(Duration length) { return Nap(clock, length); }
    std::thread::id where_is_done(Nap nap) {
        io->start(nap);
        EXPECT_FALSE(nap.done) << "never from inside start()";
        loop->run_until([&] { return nap.done; });
        return nap.where;
    }
    Instant clock{1'000'000'000};
    std::unique_ptr<EventLoop> loop = std::move(*EventLoop::make());
    std::unique_ptr<InPlaceFileIo> io;
    std::thread::id here = std::this_thread::get_id();
};

TEST_F(InPlaceFileIoTest, DoesBriefOperationsHereAndTheOthersElsewhere) {
    EXPECT_EQ(where_is_done(nap_of(0ms)), here);
    auto longer = nap_of(0ms);
    longer.brief = false;
    EXPECT_NE(where_is_done(longer), here);
}

TEST_F(InPlaceFileIoTest, LeavesThemToTheEngineForFiftyTimesAsLongAsOneWasSlow) {
    EXPECT_EQ(where_is_done(nap_of(3ms)), here);
    EXPECT_NE(where_is_done(nap_of(0ms)), here);
    clock = clock + Duration(150ms - 1ns);
    EXPECT_NE(where_is_done(nap_of(0ms)), here);
    clock = clock + 1ns;
    EXPECT_EQ(where_is_done(nap_of(0ms)), here);
    EXPECT_EQ(where_is_done(nap_of(0ms)), here);
}

TEST_F(InPlaceFileIoTest, DoesNotMindAMillisecondThatIsNotFull) {
    EXPECT_EQ(where_is_done(nap_of(1ms - 1ns)), here);
    EXPECT_EQ(where_is_done(nap_of(1ms)), here);
    EXPECT_NE(where_is_done(nap_of(0ms)), here);
}

TEST_F(InPlaceFileIoTest, PassesOnWhatWasGatheredBeforeTheSlowOne) {
    auto slow = nap_of(3ms), next = nap_of(0ms);
    io->start(slow), io->start(next);
    loop->run_until([&] { return next.done; });
    EXPECT_EQ(slow.where, here);
    EXPECT_NE(next.where, here);
}

}  // namespace
}  // namespace weft::linux
