// SPDX-License-Identifier: Apache-2.0
// Streams over real sockets that are given another engine while they are open.
#include <gtest/gtest.h>

#include "support/stream_fixture.hpp"

namespace weft::linux {
namespace {

using test::Checker;
using test::Echo;
using test::Pattern;
using test::TestEngine;

class StreamHandoverTest : public StreamFixture {};

/// Answers so many bytes of a pattern itself, and leaves the rest to another: from inside sent(),
/// when its last answer has gone.
class FirstEngine final : public TestEngine {
public:
    FirstEngine(std::size_t takes, TestEngine& next) : bytes_(takes), next_(next) {}
    bool handed_over = false;

    Buffer want() override {
        EXPECT_FALSE(handed_over);
        return Buffer(bytes_).subspan(have_);
    }
    void filled(std::size_t count) override {
        EXPECT_FALSE(handed_over);
        have_ += count;
    }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        EXPECT_FALSE(handed_over);
        if (gone_ == have_) return 0;
        pieces[0] = ConstBuffer(bytes_).subspan(gone_, have_ - gone_);
        return 1;
    }
    void sent(std::size_t count) override {
        gone_ += count;
        if (gone_ < bytes_.size()) return;
        handed_over = true;
        next_.stream = std::move(stream);
        next_.stream->drive(next_);
    }
    void closed(std::optional<Error>) override { ADD_FAILURE() << "it is another's by now"; }

private:
    std::vector<std::byte> bytes_;
    std::size_t have_ = 0, gone_ = 0;
    TestEngine& next_;
};

TEST_P(StreamHandoverTest, LosesNoByteBetweenTheTwo) {
    Pattern pattern(1);
    for (std::size_t takes : {1u, 48u, 5'000u, 70'000u, 300'000u}) {
        Echo second(100'000, 2);
        FirstEngine first(takes, second);
        Checker client(pattern, 2'000'000, 100'000, 3);
        meet(client, first);
        run_until_closed({&client, &second});
        EXPECT_TRUE(first.handed_over);
        EXPECT_TRUE(client.all_matched) << "the first took " << takes;
        EXPECT_EQ(client.received, 2'000'000u);
        EXPECT_EQ(second.why, (Error{.code = Code::disconnected}));
    }
}

/// Reads so many bytes and hands over from inside filled(), with more of them read ahead.
class Reader final : public TestEngine {
public:
    Reader(std::size_t takes, TestEngine& next) : bytes_(takes), next_(next) {}
    Buffer want() override { return Buffer(bytes_).subspan(have_); }
    void filled(std::size_t count) override {
        have_ += count;
        if (have_ < bytes_.size()) return;
        next_.stream = std::move(stream);
        next_.stream->drive(next_);
    }
    std::vector<std::byte> bytes_;

private:
    std::size_t have_ = 0;
    TestEngine& next_;
};

class Collector final : public TestEngine {
public:
    std::vector<std::byte> bytes = std::vector<std::byte>(1000);
    std::size_t have = 0;
    Buffer want() override { return Buffer(bytes).subspan(have); }
    void filled(std::size_t count) override { have += count; }
};

TEST_P(StreamHandoverTest, GivesTheSecondWhatWasReadAheadForTheFirst) {
    Pattern pattern(4);
    Collector second;
    Reader first(16, second);
    Checker client(pattern, 1016, 1016, 5);
    meet(client, first);
    world->run_until([&] { return second.have == 1000; });
    EXPECT_TRUE(pattern.matches(0, first.bytes_));
    EXPECT_TRUE(pattern.matches(16, second.bytes));
}

INSTANTIATE_TEST_SUITE_P(Sockets, StreamHandoverTest,
                         testing::Values(Family::ipv4, Family::unix_socket),
                         [](const auto& family) {
                             return family.param == Family::ipv4 ? "Ipv4" : "Unix";
                         });

}  // namespace
}  // namespace weft::linux
