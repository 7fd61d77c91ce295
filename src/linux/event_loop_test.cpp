// SPDX-License-Identifier: Apache-2.0
#include "linux/event_loop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <random>
#include <set>

#include "linux/loop_timer.hpp"
#include "linux/signals.hpp"
#include "linux/timer_heap.hpp"

namespace weft::linux {
namespace {

using namespace std::chrono_literals;

struct Fixture : testing::Test {
    std::unique_ptr<EventLoop> loop = std::move(*EventLoop::make());
};
using EventLoopTest = Fixture;
using TimerTest = Fixture;
using SignalsTest = Fixture;

TEST_F(EventLoopTest, CallsDeferredTasksInOrderAndNotFromInside) {
    std::vector<int> order;
    loop->defer([&] {
        loop->defer([&] {
            order.push_back(3);
            loop->stop();
        });
        order.push_back(1);
    });
    loop->defer([&] { order.push_back(2); });
    EXPECT_TRUE(order.empty());
    loop->run();
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST_F(EventLoopTest, IsNotStarvedByATaskThatDefersItselfForEver) {
    std::function<void()> again = [&] { loop->defer(again); };
    again();
    auto timer = make_timer(*loop, [&] { loop->stop(); });
    timer->set(loop->now() + 5ms);
    loop->run();  // the test is that it returns
}

TEST_F(EventLoopTest, RunsUntilThePredicateHolds) {
    int count = 0;
    std::function<void()> again = [&] { ++count, loop->defer(again); };
    again();
    loop->run_until([&] { return count >= 10; });
    EXPECT_EQ(count, 10);
}

TEST_F(EventLoopTest, KeepsTheTimeStillDuringATurn) {
    Instant first, second;
    loop->defer([&] {
        first = loop->now();
        timespec nap{0, 3'000'000};
        ::nanosleep(&nap, nullptr);
        second = loop->now();
        loop->stop();
    });
    loop->run();
    EXPECT_EQ(first, second);
    EXPECT_GE(loop->now() - first, Duration(3ms));  // outside a turn it goes on
}

struct Pipe {
    Descriptor reader, writer;
    Pipe() {
        int both[2];
        if (::pipe2(both, O_CLOEXEC | O_NONBLOCK) == 0)
            reader = Descriptor(both[0]), writer = Descriptor(both[1]);
    }
    void poke() { ASSERT_EQ(::write(writer.number(), "x", 1), 1); }
};

struct Recorder final : DescriptorHandler {
    std::function<void()> task;
    int calls = 0;
    void ready(std::uint32_t) override {
        ++calls;
        if (task) task();
    }
};

TEST_F(EventLoopTest, CallsNoHandlerThatWasForgottenInTheSameTurn) {
    std::array<Pipe, 2> pipes;
    std::array<Recorder, 2> handlers;
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(loop->watch(pipes[i].reader.number(), EPOLLIN, handlers[i]));
        pipes[i].poke();
        handlers[i].task = [&, i] { loop->forget(pipes[1 - i].reader.number(), handlers[1 - i]); };
    }
    loop->run_until([&] { return handlers[0].calls + handlers[1].calls > 0; });
    EXPECT_EQ(handlers[0].calls + handlers[1].calls, 1);
}

TEST_F(EventLoopTest, FreesWhatWasDroppedOnlyAtTheEndOfTheTurn) {
    struct Noted final : LateFreed {
        explicit Noted(bool& freed) : freed_(freed) {}
        ~Noted() override { freed_ = true; }
        bool& freed_;
    };
    bool freed = false, freed_in_turn = true;
    loop->defer([&] {
        loop->free_later(std::make_unique<Noted>(freed));
        freed_in_turn = freed;
        loop->stop();
    });
    loop->run();
    EXPECT_FALSE(freed_in_turn);
    EXPECT_TRUE(freed);
}

TEST_F(EventLoopTest, FreesWhatItsTasksDropWhenItEndsBeforeThem) {
    struct Noted final : LateFreed {
        explicit Noted(int& freed) : freed_(freed) {}
        ~Noted() override { ++freed_; }
        int& freed_;
    };
    // What a stream or a timer does at its end, wherever that is.
    struct Dropper {
        Dropper(EventLoop& the_loop, int& freed) : loop(the_loop), freed_(freed) {}
        ~Dropper() { loop.free_later(std::make_unique<Noted>(freed_)); }
        EventLoop& loop;
        int& freed_;
    };
    int freed = 0;
    for (int i = 0; i < 3; ++i) loop->defer([held = std::make_shared<Dropper>(*loop, freed)] {});
    loop.reset();
    EXPECT_EQ(freed, 3);
}

struct Served final : ReadyItem {
    std::function<void()> task;
    int calls = 0;
    void serve() override {
        ++calls;
        if (task) task();
    }
    using ReadyItem::leave_list;
};

TEST(ReadyList, ServesEachItemOncePerListing) {
    ReadyList list;
    Served one, two;
    list.add(one), list.add(two), list.add(one);
    list.serve_all();
    EXPECT_EQ(one.calls, 1);
    EXPECT_EQ(two.calls, 1);
    EXPECT_TRUE(list.empty());
}

TEST(ReadyList, LeavesWhatIsListedMeanwhileForTheNextTime) {
    ReadyList list;
    Served one;
    one.task = [&] { list.add(one); };
    list.add(one);
    list.serve_all();
    EXPECT_EQ(one.calls, 1);
    EXPECT_FALSE(list.empty());
    list.serve_all();
    EXPECT_EQ(one.calls, 2);
    one.leave_list();
}

TEST(ReadyList, LetsAnItemTakeAnotherOff) {
    ReadyList list;
    Served one, two;
    one.task = [&] { two.leave_list(); };
    list.add(one), list.add(two);
    list.serve_all();
    EXPECT_EQ(two.calls, 0);
}

TEST_F(TimerTest, GoesOffInOrderOfTime) {
    std::vector<int> order;
    auto at = loop->now();
    std::vector<std::unique_ptr<Timer>> timers;
    for (int i : {3, 1, 4, 2}) {
        timers.push_back(make_timer(*loop, [&order, i] { order.push_back(i); }));
        timers.back()->set(at + i * 1ms);
    }
    loop->run_until([&] { return order.size() == 4; });
    EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
    EXPECT_GE(loop->now() - at, Duration(4ms));
}

TEST_F(TimerTest, CanBeMovedAndCancelled) {
    bool moved = false, cancelled = false, dropped = false;
    auto one = make_timer(*loop, [&] { moved = true; });
    auto two = make_timer(*loop, [&] { cancelled = true; });
    auto three = make_timer(*loop, [&] { dropped = true; });
    auto end = make_timer(*loop, [&] { loop->stop(); });
    auto at = loop->now();
    one->set(at + 1h), two->set(at + 1ms), three->set(at + 1ms), end->set(at + 5ms);
    one->set(at + 2ms), two->cancel(), three.reset();
    loop->run();
    EXPECT_TRUE(moved);
    EXPECT_FALSE(cancelled);
    EXPECT_FALSE(dropped);
}

TEST_F(TimerTest, MayBeDroppedFromItsOwnTask) {
    std::unique_ptr<Timer> timer;
    auto kept = std::make_shared<int>(7);
    int seen = 0;
    timer = make_timer(*loop, [&, kept] {
        timer.reset();
        seen = *kept;  // what the task captured must still be there
        loop->stop();
    });
    timer->set(loop->now());
    loop->run();
    EXPECT_EQ(seen, 7);
    EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(TimerTest, DoesNotStarveOthersBySettingItselfToNow) {
    bool task_ran = false;
    std::unique_ptr<Timer> timer = make_timer(*loop, [&] { timer->set(loop->now()); });
    timer->set(loop->now());
    loop->defer([&] { task_ran = true; });
    loop->run_until([&] { return task_ran; });
    EXPECT_TRUE(task_ran);
}

TEST_F(TimerTest, DoesNotStarveOthersBySettingItselfToThePast) {
    int firings = 0;
    bool other_fired = false;
    std::unique_ptr<Timer> greedy = make_timer(*loop, [&] {
        ++firings;
        greedy->set(Instant{1});
    });
    auto other = make_timer(*loop, [&] { other_fired = true; });
    greedy->set(Instant{1});
    other->set(loop->now() + 1ms);
    auto give_up_at = loop->now() + 5s;
    loop->run_until([&] { return other_fired || loop->now() > give_up_at; });
    EXPECT_TRUE(other_fired) << "while the greedy one went off " << firings << " times";
}

TEST(TimerHeap, FiresAllThatIsDueThoughTheFirstIsSetBackBeforeTheOthers) {
    struct Entry final : TimerEntry {
        using TimerEntry::TimerEntry;
        int fired = 0;
        std::optional<Instant> again;
        void expired() override {
            ++fired;
            if (again) set_timer(*again);
        }
    };
    TimerHeap heap;
    Entry greedy(heap), others[3] = {Entry(heap), Entry(heap), Entry(heap)};
    greedy.again = Instant{1};
    greedy.set_timer({10});
    for (auto& other : others) other.set_timer({20});
    heap.fire({20});
    EXPECT_EQ(greedy.fired, 1) << "it waits for the next call";
    for (auto& other : others) EXPECT_EQ(other.fired, 1);
    heap.fire({20});
    EXPECT_EQ(greedy.fired, 2);
}

TEST(TimerHeap, AgreesWithASortedSetWhateverIsDoneToIt) {
    struct Entry final : TimerEntry {
        using TimerEntry::TimerEntry;
        int fired = 0;
        void expired() override { ++fired; }
    };
    TimerHeap heap;
    std::vector<std::unique_ptr<Entry>> entries;
    for (int i = 0; i < 50; ++i) entries.push_back(std::make_unique<Entry>(heap));
    std::mt19937 random(1);
    for (int step = 0; step < 5000; ++step) {
        auto& entry = *entries[random() % entries.size()];
        if (random() % 3)
            entry.set_timer({static_cast<std::int64_t>(random() % 100)});
        else
            entry.cancel_timer();
        std::optional<Instant> earliest;
        for (auto& each : entries)
            if (each->timer() && (!earliest || *each->timer() < *earliest))
                earliest = each->timer();
        ASSERT_EQ(heap.next(), earliest) << "after step " << step;
    }
    heap.fire({49});
    for (auto& each : entries) {
        if (each->timer()) {
            EXPECT_GT(each->timer()->nanoseconds, 49);
        }
    }
}

TEST_F(SignalsTest, ArriveAsEventsAndAreLetThroughAgainAtTheEnd) {
    int seen = 0;
    {
        Signals signals(*loop);
        ASSERT_TRUE(signals.on_signal(SIGUSR1, [&] { ++seen; }));
        ASSERT_TRUE(signals.on_signal(SIGUSR2, [&] { loop->stop(); }));
        ::raise(SIGUSR1);
        EXPECT_EQ(seen, 0);
        ::raise(SIGUSR2);
        loop->run();
        EXPECT_EQ(seen, 1);
    }
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_FALSE(sigismember(&mask, SIGUSR1));
}

TEST_F(SignalsTest, RefuseANumberThatIsNone) {
    Signals signals(*loop);
    EXPECT_FALSE(signals.on_signal(4711, [] {}));
}

}  // namespace
}  // namespace weft::linux
