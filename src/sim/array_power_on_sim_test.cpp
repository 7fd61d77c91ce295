// SPDX-License-Identifier: Apache-2.0
// Boxes that lose their power while they are busy, in whole arrays of the production objects. What
// a host was told is flushed must be there afterwards; of what came later each sector is old or
// new. One box alone loses nothing at all: the others know what it may have lost.
#include <gtest/gtest.h>

#include <map>

#include "support/array_cluster.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using raid::Level;
using raid::VolumeState;
using test::ArrayCluster;
using test::TestRequest;

constexpr std::uint64_t block = 4096, sector = 512;
constexpr std::uint64_t volume_size = 3u << 20;
const std::vector<std::string> names{"oak", "elm", "ash", "fir", "yew"};

/// Writes, each with a number of its own in all its sectors, and flushes now and then; knows what
/// each block may hold.
class NumberedWrites {
public:
    NumberedWrites(ArrayCluster& array, BlockDevice& device) : array_(array), device_(device) {}

    void go_on() {
        collect();
        while (writes_.size() < 8) begin_write();
        if (!flush_ && array_.world.chance().below(40) == 0) begin_flush();
    }
    bool is_idle() {
        collect();
        return writes_.empty() && !flush_;
    }
    /// What was not flushed may be gone, and a later flush does not bring it back.
    void power_went() {
        collect();
        covered_.clear();
        for (auto& [index, known] : blocks_) known.acknowledged = known.flushed;
    }
    std::uint64_t ended() const { return ended_; }
    std::uint64_t flushes() const { return flushes_; }

    /// How many of the acknowledged writes are not what their blocks hold.
    std::uint64_t look_at_everything() {
        std::uint64_t lost = 0;
        for (std::uint64_t at = 0; at < volume_size; at += 64 * block) {
            const auto octets = array_.read(device_, at, 64 * block);
            for (std::uint64_t i = 0; i < 64; ++i)
                lost += look_at(at / block + i, ConstBuffer(octets).subspan(i * block, block));
        }
        return lost;
    }

private:
    struct Block {
        std::uint64_t flushed = 0;       ///< at least this
        std::uint64_t acknowledged = 0;  ///< by the host's last answer
        std::uint64_t begun = 0;         ///< at most this
    };
    struct Write {
        std::unique_ptr<TestRequest> request;
        std::uint64_t number;
    };

    void begin_write() {
        auto& chance = array_.world.chance();
        const auto length = (1 + chance.below(16)) * block;
        const auto offset = chance.below((volume_size - length) / block + 1) * block;
        for (const auto& [other, number] : writes_)
            if (offset < other->offset + other->length && other->offset < offset + length) return;
        auto request = std::make_unique<TestRequest>(BlockOperation::write, offset, length);
        const auto number = ++numbers_;
        for (std::uint64_t at = 0; at < length; at += sector)
            store_big_endian<8>(number, request->octets.data() + at);
        for (auto at = offset; at < offset + length; at += block)
            blocks_[at / block].begun = number;
        writes_.push_back({std::move(request), number});
        device_.submit(*writes_.back().request);
    }
    /// What was acknowledged before it is lasting when it has ended.
    void begin_flush() {
        flush_ = std::make_unique<TestRequest>(BlockOperation::flush, 0, 0);
        covered_ = blocks_;
        device_.submit(*flush_);
    }
    void collect() {
        std::erase_if(writes_, [&](const Write& write) {
            if (!write.request->done()) return false;
            EXPECT_TRUE(write.request->succeeded());
            const auto& [offset, length] = std::pair(write.request->offset, write.request->length);
            for (auto at = offset; at < offset + length; at += block)
                blocks_[at / block].acknowledged = write.number;
            ++ended_;
            return true;
        });
        if (!flush_ || !flush_->done()) return;
        EXPECT_TRUE(flush_->succeeded());
        for (const auto& [index, then] : covered_)
            blocks_[index].flushed = std::max(blocks_[index].flushed, then.acknowledged);
        flush_.reset();
        ++flushes_;
    }
    std::uint64_t look_at(std::uint64_t index, ConstBuffer octets) {
        const auto& known = blocks_[index];
        bool lost = false;
        for (std::uint64_t at = 0; at < block; at += sector) {
            const auto number = load_big_endian<8>(octets.data() + at);
            EXPECT_GE(number, known.flushed) << "block " << index;
            EXPECT_LE(number, known.begun) << "block " << index;
            lost = lost || number < known.acknowledged;
        }
        return lost;
    }

    ArrayCluster& array_;
    BlockDevice& device_;
    std::vector<Write> writes_;
    std::unique_ptr<TestRequest> flush_;
    std::map<std::uint64_t, Block> blocks_, covered_;
    std::uint64_t numbers_ = 0, ended_ = 0, flushes_ = 0;
};

class Powered : public ArrayCluster {
public:
    Powered(std::uint64_t seed, Level level) : ArrayCluster(seed) {
        start_controller();
        for (const auto& name : names) add_box(name);
        const auto refusal = create("photos", level, names, 16u << 10, volume_size);
        EXPECT_FALSE(refusal) << *refusal;
        EXPECT_TRUE(becomes("photos", VolumeState::healthy));
        writes.emplace(*this, attach("photos"));
    }
    void keep_busy(std::uint64_t count) {
        const auto until = writes->ended() + count;
        ASSERT_TRUE(run_until([&] {
            writes->go_on();
            return writes->ended() >= until;
        }));
    }
    void rest() {
        ASSERT_TRUE(run_until([&] { return writes->is_idle(); }));
    }
    void scrub(bool repair) {
        const auto refusal = refusal_of(
            [&](auto told) { controller->scrub("photos", repair, false, std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(run_until([&] { return !status("photos").scrub.running; }));
        EXPECT_EQ(status("photos").scrub.done, status("photos").scrub.to_do);
        if (repair) return;
        EXPECT_EQ(status("photos").scrub.mismatches, 0u);
    }

    std::optional<NumberedWrites> writes;
};

class ArrayPowerOnSim : public testing::TestWithParam<Level> {};

TEST_P(ArrayPowerOnSim, LosesNothingWithOneBoxThatGoesDark) {
    test::for_each_seed(3, [](std::uint64_t seed) {
        Powered array(seed, GetParam());
        for (const auto& name : {"elm", "yew"}) {
            array.keep_busy(60);
            array.go_dark({name});
            array.keep_busy(40);
            array.start_box(name);
            array.keep_busy(40);
            array.rest();
            ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
            EXPECT_EQ(array.writes->look_at_everything(), 0u);
            array.scrub(false);
        }
        EXPECT_GT(array.writes->flushes(), 0u);
    });
}

TEST_P(ArrayPowerOnSim, KeepsWhatWasFlushedWhenEverythingGoesDark) {
    test::for_each_seed(3, [](std::uint64_t seed) {
        Powered array(seed, GetParam());
        for (int round = 0; round < 3; ++round) {
            SCOPED_TRACE(round);
            array.keep_busy(80);
            // With the controller: one that lives on counts a box out, and rebuilding it from
            // stripes that were being written is the write hole, which takes a journal.
            array.stop_controller();
            array.go_dark(names);
            array.writes->power_went();
            for (const auto& name : names) array.start_box(name);
            array.start_controller();
            array.rest();  // the host repeats what was not answered
            ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
            (void)array.writes->look_at_everything();
            array.scrub(true);
            array.scrub(false);
        }
        EXPECT_GT(array.writes->flushes(), 0u);
        array.go_dark({"ash"});
        SCOPED_TRACE("without ash");
        (void)array.writes->look_at_everything();
    });
}

INSTANTIATE_TEST_SUITE_P(Levels, ArrayPowerOnSim, testing::Values(Level::raid5, Level::raid6),
                         [](const auto& each) {
                             return each.param == Level::raid5 ? "Raid5" : "Raid6";
                         });

}  // namespace
}  // namespace weft::sim
