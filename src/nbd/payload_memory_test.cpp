// SPDX-License-Identifier: Apache-2.0
// What a connection does when other connections hold the server's memory.
#include <gtest/gtest.h>

#include <deque>

#include "support/nbd_server_talk.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;
using test::Bytes;

class PayloadMemoryTest : public test::NbdServerTalk {
protected:
    static constexpr std::uint32_t more_than_the_reserve = 128u << 10;

    PayloadMemoryTest() { disk.lending = false; }
    ~PayloadMemoryTest() override {
        give_back_all();
        if (driver && !driver->closed()) driver->close(std::nullopt);
    }

    /// Others take all the memory there is: first what may be shared, then as reserves what is
    /// left.
    void take_all() {
        for (std::size_t size = block::BufferPool::largest; size >= more_than_the_reserve;)
            if (!another_takes(size)) size /= 2;
        while (pool.lent_bytes() < pool_size) another_takes(reserve);
    }
    bool another_takes(std::size_t size) {
        auto& share = greedy.emplace_back(pool, [] {});
        auto buffer = share.take(size);
        share.stop_waiting();
        if (!buffer.empty()) held.push_back({&share, buffer});
        return !buffer.empty();
    }
    void give_back_all() {
        for (auto [share, buffer] : held) share->give_back(buffer);
        held.clear();
        pool.serve_waiting();
    }
    /// The world's clock: ticks as long as the engine wants to be told.
    void pass(Duration time) {
        now = now + time;
        for (int i = 0; i < 3; ++i)
            if (auto when = connection->deadline(); when && *when <= now) connection->tick(now);
    }

    std::deque<block::BufferShare> greedy;
    std::vector<std::pair<block::BufferShare*, Buffer>> held;
    Instant now{1'000'000'000};
};

TEST_F(PayloadMemoryTest, SmallRequestsAreServedOneAtATimeFromTheReserve) {
    begin(Speech::simple, "disk");
    take_all();
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(reply_to(header(Command::read, 0, 4096)).data.size(), 4096u);
    disk.holding = true;
    say_request(header(Command::read, 0, 4096));
    say_request(header(Command::read, 0, 4096));
    EXPECT_EQ(disk.held.size(), 1u) << "the second waits for the first";
    disk.let_all_go();
    EXPECT_EQ(replies().size(), 1u);
    disk.let_all_go();
    EXPECT_EQ(replies().size(), 1u);
}

TEST_F(PayloadMemoryTest, LargeReadsWaitUntilOthersGiveMemoryBack) {
    begin(Speech::simple, "disk");
    take_all();
    say_request(header(Command::read, 0, more_than_the_reserve));
    EXPECT_TRUE(replies().empty());
    give_back_all();
    EXPECT_EQ(reply().data.size(), more_than_the_reserve);
    EXPECT_FALSE(connection->deadline().has_value());
}

TEST_F(PayloadMemoryTest, LargeWritesWaitUntilOthersGiveMemoryBack) {
    begin(Speech::simple, "disk");
    take_all();
    Bytes payload(more_than_the_reserve, std::byte{0x5a});
    say_write(header(Command::write, 0, more_than_the_reserve), payload);
    EXPECT_EQ(driver->unread(), payload.size());
    give_back_all();
    EXPECT_EQ(reply().error, ErrorNumber::none);
    EXPECT_EQ(test::contents(memory, 0, more_than_the_reserve), payload);
}

TEST_F(PayloadMemoryTest, WaitingEndsWithNoMemoryAndTheConnectionGoesOn) {
    for (auto speech : {Speech::simple, Speech::structured}) {
        SCOPED_TRACE(static_cast<int>(speech));
        if (connection) driver->close(std::nullopt), gone = 0;
        begin(speech, "disk");
        take_all();
        say_request(header(Command::read, 0, more_than_the_reserve));
        pass(Duration{});
        pass(memory_patience - Duration{1});
        EXPECT_TRUE(replies().empty());
        pass(Duration{1});
        EXPECT_EQ(reply().error, ErrorNumber::no_memory);

        Bytes payload(more_than_the_reserve, std::byte{0x77});
        say_write(header(Command::write, 0, more_than_the_reserve), payload);
        pass(Duration{});
        pass(memory_patience);
        EXPECT_EQ(reply().error, ErrorNumber::no_memory) << "its payload is read and forgotten";
        EXPECT_EQ(reply_to(header(Command::read, 0, 1)).data, Bytes(1, std::byte{0}));
        give_back_all();
    }
}

TEST_F(PayloadMemoryTest, PatienceBeginsAnewWithEachRequest) {
    begin(Speech::simple, "disk");
    for (int i = 0; i < 3; ++i) {
        take_all();
        say_request(header(Command::read, 0, more_than_the_reserve));
        pass(Duration{});
        pass(memory_patience - Duration{1});
        give_back_all();
        EXPECT_EQ(reply().error, ErrorNumber::none);
    }
}

TEST_F(PayloadMemoryTest, OneWhoLeavesWhileWaitingIsForgotten) {
    begin(Speech::simple, "disk");
    take_all();
    say_request(header(Command::read, 0, more_than_the_reserve));
    driver->close(std::nullopt);
    EXPECT_EQ(gone, 1);
    give_back_all();
    EXPECT_EQ(pool.lent_bytes(), 0u);
}

TEST_F(PayloadMemoryTest, OneWhoIsDismissedWhileWaitingIsAnswered) {
    begin(Speech::simple, "disk");
    take_all();
    say_request(header(Command::read, 0, more_than_the_reserve));
    connection->dismiss();
    driver->run_if_woken();
    EXPECT_FALSE(driver->closed());
    give_back_all();
    EXPECT_EQ(reply().error, ErrorNumber::none);
    EXPECT_TRUE(driver->closed());
}

}  // namespace
}  // namespace weft::nbd
