// SPDX-License-Identifier: Apache-2.0
// A listener in the hands of a world that does one thing at a time, in an order the others do not
// have. Whole connections are tested over simulated networks.
#include "verbs/listener.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>

namespace weft::verbs {
namespace {

class HandStream final : public Stream {
public:
    explicit HandStream(StreamEngine*& engine) : engine_(engine) {}
    ~HandStream() override { engine_ = nullptr; }
    void drive(StreamEngine& engine) override { engine_ = &engine; }
    void wake() override {}
    std::string peer() const override { return "hand"; }
    Address local() const override { return {}; }
    Address remote() const override { return {}; }
    std::size_t segment_size() const override { return 0; }

private:
    StreamEngine*& engine_;
};

class HandWorld final : public World {
public:
    /// Somebody connects; his engine here is put in `engine`, until the stream is gone.
    void connect_to_us(StreamEngine*& engine) { accepted_(std::make_unique<HandStream>(engine)); }
    void run_deferred() {
        for (; !deferred_.empty(); deferred_.pop_front()) deferred_.front()();
    }

    Instant now() const override { return {}; }
    Date date() const override { return {}; }
    std::uint64_t random() override { return 4; }
    void defer(std::function<void()> task) override { deferred_.push_back(std::move(task)); }
    std::unique_ptr<Timer> make_timer(std::function<void()>) override { return nullptr; }
    Result<std::unique_ptr<weft::Listener>> listen(const Address&, Accepted accepted) override {
        struct Nothing final : weft::Listener {
            Address address() const override { return Address::tcp("::", 1); }
        };
        accepted_ = std::move(accepted);
        return std::unique_ptr<weft::Listener>(std::make_unique<Nothing>());
    }
    Result<std::unique_ptr<Stream>> connect(const Address&, StreamEngine&,
                                            const Address&) override {
        return Error{.code = Code::unsupported};
    }
    Result<std::vector<Address>> resolve(const Address&) override {
        return Error{.code = Code::unsupported};
    }
    Result<std::unique_ptr<BlockDevice>> open_disk(const DiskOptions&) override {
        return Error{.code = Code::unsupported};
    }

private:
    Accepted accepted_;
    std::deque<std::function<void()>> deferred_;
};

class ListenerTest : public testing::Test {
protected:
    void SetUp() override {
        auto made =
            ListenerObject::listen(core, {}, [this](std::unique_ptr<ConnectionRequest> request) {
                requests.push_back(std::move(request));
            });
        ASSERT_TRUE(made);
        listener = std::move(*made);
    }
    /// The whole of an MPA request arrives.
    static void give_request(StreamEngine& engine) {
        auto startup = iwarp::Startup::initiate({}, {}, {});
        std::array<ConstBuffer, 1> pieces;
        ASSERT_EQ(startup->pending(pieces), 1u);
        for (auto left = pieces[0]; !left.empty();) {
            auto place = engine.want();
            ASSERT_FALSE(place.empty());
            auto count = std::min(place.size(), left.size());
            std::memcpy(place.data(), left.data(), count);
            left = left.subspan(count);
            engine.filled(count);
        }
    }

    HandWorld world;
    std::shared_ptr<DeviceCore> core = std::make_shared<DeviceCore>(world, DeviceOptions{});
    StreamEngine* first = nullptr;  // outlives the stream that clears it
    std::vector<std::unique_ptr<ConnectionRequest>> requests;
    std::unique_ptr<weft::Listener> listener;
};

TEST_F(ListenerTest, HandsOutARequestOnceItIsWholeAndNotFromInsideTheCall) {
    world.connect_to_us(first);
    ASSERT_TRUE(first);
    give_request(*first);
    EXPECT_TRUE(requests.empty());
    world.run_deferred();
    EXPECT_EQ(requests.size(), 1u);
}

TEST_F(ListenerTest, ForgetsARequestWhosePeerLeftBeforeItWasHandedOut) {
    world.connect_to_us(first);
    give_request(*first);
    first->closed(Error{.code = Code::disconnected});
    EXPECT_FALSE(first);
    world.run_deferred();
    EXPECT_TRUE(requests.empty());
}

TEST_F(ListenerTest, DoesNotTakeAnotherAtTheSamePlaceForTheOneThatLeft) {
    world.connect_to_us(first);
    give_request(*first);
    auto* place = first;
    first->closed(Error{.code = Code::disconnected});
    std::array<StreamEngine*, 8> others{};
    for (auto*& each : others) world.connect_to_us(each);
    bool came_there = std::find(others.begin(), others.end(), place) != others.end();
    world.run_deferred();
    EXPECT_TRUE(requests.empty()) << "none of them has said anything yet";
    requests.clear(), listener.reset();  // before the engines that they would clear
    if (!came_there) GTEST_SKIP() << "the allocator has put no other where the first was";
}

TEST_F(ListenerTest, GivesTheLongestSilentOnesPlaceToANewcomer) {
    std::vector<StreamEngine*> silent(limits::requests_waiting);
    world.connect_to_us(first);
    give_request(*first);  // speaks at once, and waits to be handed out
    for (std::size_t i = 1; i < silent.size(); ++i) world.connect_to_us(silent[i]);
    EXPECT_TRUE(silent[1]);
    StreamEngine* newcomer = nullptr;
    world.connect_to_us(newcomer);
    EXPECT_FALSE(silent[1]) << "the longest silent";
    EXPECT_TRUE(silent[2]);
    ASSERT_TRUE(newcomer);
    give_request(*newcomer);
    world.run_deferred();
    EXPECT_EQ(requests.size(), 2u) << "both who spoke";
    requests.clear(), listener.reset();  // before the engines that they would clear
}

TEST_F(ListenerTest, IsSilentOnceItIsGone) {
    world.connect_to_us(first);
    give_request(*first);
    listener.reset();
    EXPECT_FALSE(first) << "what nobody has seen yet goes with it";
    world.run_deferred();
    EXPECT_TRUE(requests.empty());
}

}  // namespace
}  // namespace weft::verbs
