// SPDX-License-Identifier: Apache-2.0
// The production iSCSI target and initiator, cut off at every moment there is.
//
// The same run is made again and again from the same seed, each time with one more event before the
// link is reset: between any two PDUs, and inside them. However it is cut, no command is lost, and
// the disk is not given a write once that was acknowledged, nor once a later one to the same place
// was: what a new session sends again is what nobody was told of.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>

#include "base/bytes.hpp"
#include "support/remote_disk.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::TestRequest;
using Way = RemoteDisk::Way;

constexpr std::uint64_t block = 512;

/// What is done in every run: two writes that overlap, one after the other, one elsewhere at the
/// same time, and reads behind them.
class Story {
public:
    explicit Story(RemoteDisk& remote) : remote_(remote) {
        remote.disk->seen = [this](const BlockRequest& request) { applied(request); };
        write(0, 4);
        write(100, 64);  // more than goes along with the command
    }
    bool done() const { return reads_done_ == 2; }
    void check(RemoteDisk& remote) const {
        EXPECT_TRUE(done()) << "a request never completed";
        for (const auto& each : writes_) {
            EXPECT_TRUE(each.request.succeeded());
            EXPECT_GE(each.times, 1);
        }
        std::vector<std::byte> octets(8 * block);
        remote.world.disk("disk").peek(0, octets);
        EXPECT_EQ(value_at(octets, 0), 1u);
        EXPECT_EQ(value_at(octets, 2), 3u) << "the later of the two";
    }

private:
    struct Write {
        Write(std::uint64_t first, std::uint64_t count)
            : request(BlockOperation::write, first * block, count * block) {}
        TestRequest request;
        int times = 0;
    };
    static std::uint64_t value_at(ConstBuffer octets, std::uint64_t at) {
        return load_big_endian<8>(octets.data() + at * block);
    }
    /// Each block of a write says which write it is: the first, the second, the third.
    void write(std::uint64_t first, std::uint64_t count) {
        const auto number = writes_.size() + 1;
        auto& made = writes_.emplace_back(first, count);
        for (std::uint64_t at = 0; at < count; ++at)
            store_big_endian<8>(number, made.request.octets.data() + at * block);
        made.request.then = [this, number] { written(number); };
        remote_.client->device().submit(made.request);
    }
    void written(std::uint64_t number) {
        if (number == 1) return write(2, 4);
        auto& read = reads_.emplace_back(BlockOperation::read, 0, 8 * block);
        read.then = [this] { ++reads_done_; };
        remote_.client->device().submit(read);
    }
    void applied(const BlockRequest& request) {
        if (request.operation != BlockOperation::write) return;
        const auto number = load_big_endian<8>(request.memory.front().data());
        ASSERT_LE(number, writes_.size());
        auto& made = writes_[number - 1];
        ++made.times;
        EXPECT_FALSE(made.request.done()) << "write " << number << " came after it was answered";
        const bool overtaken = number == 1 && writes_.size() == 3 && writes_[2].request.done();
        EXPECT_FALSE(overtaken);
    }

    RemoteDisk& remote_;
    std::deque<Write> writes_;
    std::deque<TestRequest> reads_;
    int reads_done_ = 0;
};

struct Cut {
    const char* name;
    RemoteDisk::Options options;
    bool all_links;  ///< or the first of several connections alone
};

const LinkOptions quick{.cutting = Cutting::whole, .give_up_after = 500ms};
const LinkOptions in_pieces{.cutting = Cutting::anywhere, .give_up_after = 500ms};

class IscsiCut : public testing::TestWithParam<Cut> {
protected:
    /// Makes the run, cut after so many events; false: it was over before.
    static bool run(std::uint64_t events) {
        RemoteDisk remote(events % 7 + 1, GetParam().options);
        Story story(remote);
        for (std::uint64_t i = 0; i < events && !story.done(); ++i) remote.world.step();
        const bool in_time = !story.done();
        auto links = remote.world.network().links();
        if (!GetParam().all_links) links.resize(1);
        for (auto link : links) remote.world.network().reset(link);
        const Instant last_moment = remote.world.now() + 60s;
        while (!story.done() && remote.world.now() < last_moment && remote.world.step()) continue;
        story.check(remote);
        return in_time;
    }
};

TEST_P(IscsiCut, LosesNoCommandAndBringsNoWriteBack) {
    std::uint64_t cuts = 0;
    // A run that ends sooner by chance does not end the test; seven in a row do.
    for (std::uint64_t events = 0, over = 0; over < 7 && !HasFailure(); ++events) {
        const bool in_time = run(events);
        cuts += in_time ? 1 : 0;
        over = in_time ? 0 : over + 1;
        if (HasFailure()) ADD_FAILURE() << "cut after event " << events;
    }
    EXPECT_GT(cuts, 20u);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, IscsiCut,
    testing::Values(Cut{"Tcp", {.links = quick}, true},
                    Cut{"TcpInPieces", {.links = in_pieces}, true},
                    Cut{"TcpWithDigests", {.digests = true, .links = quick}, true},
                    Cut{"OneOfThreeConnections", {.connections = 3, .links = quick}, false},
                    Cut{"AllOfThreeConnections", {.connections = 3, .links = quick}, true},
                    Cut{"RdmaFirst", {.way = Way::rdma_first, .links = quick}, true},
                    Cut{"RdmaAfterLogin", {.way = Way::rdma_after_login, .links = quick}, true}),
    [](const auto& cut) { return cut.param.name; });

}  // namespace
}  // namespace weft::sim
