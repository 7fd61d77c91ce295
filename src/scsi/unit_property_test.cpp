// SPDX-License-Identifier: Apache-2.0
// Whatever comes in whatever order, each task ends once, no memory is lost, and what must be done
// in one go is: initiators count in blocks that everybody else reads, by COMPARE AND WRITE, while a
// disk answers when it likes, tasks are aborted, and sessions come and go.
#include <map>

#include "support/scsi_bench.hpp"
#include "support/seeds.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::BenchTask;
using test::OctetVector;

constexpr std::uint64_t counters = 3;  ///< blocks with a number in front
constexpr std::size_t block = 512;

struct Dice {
    std::uint64_t state;
    std::uint64_t roll(std::uint64_t sides) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state % sides;
    }
};

OctetVector numbered(std::uint64_t number) {
    // All of the block, so that a mixture of two shows.
    OctetVector octets(block);
    for (std::size_t at = 0; at < block; at += 8) store_big_endian<8>(number, octets.data() + at);
    return octets;
}

bool is_whole(const OctetVector& octets) {
    for (std::size_t at = 0; at < octets.size(); at += 8)
        if (!std::equal(octets.begin(), octets.begin() + 8,
                        octets.begin() + static_cast<std::ptrdiff_t>(at)))
            return false;
    return true;
}

struct Crowd : test::ScsiBench {
    enum class Kind : std::uint8_t { count, look, write, flush };
    struct Work {
        BenchTask task;
        Kind kind{};
        std::uint64_t which = 0;
        bool aborted = false;
    };

    void begin(Dice& dice) {
        auto& work = *works.emplace_back(std::make_unique<Work>());
        work.kind = static_cast<Kind>(dice.roll(4));
        work.which = dice.roll(counters);
        work.task.holds_data = dice.roll(3) == 0;
        work.task.keeps_answer = dice.roll(2) == 0;
        if (dice.roll(8) == 0) work.task.attribute = TaskAttribute::ordered;
        if (dice.roll(16) == 0) work.task.attribute = TaskAttribute::head_of_queue;
        auto& nexus = *joined[dice.roll(joined.size())];
        switch (work.kind) {
            case Kind::count: {
                const auto old = known[work.which];
                work.task.to_send = numbered(old);
                auto next = numbered(old + 1);
                work.task.to_send.insert(work.task.to_send.end(), next.begin(), next.end());
                return execute(work.task, nexus,
                               CompareAndWrite{.block_address = work.which, .block_count = 1});
            }
            case Kind::look:
                work.task.accepted_in = block;
                return execute(work.task, nexus,
                               Read16{.block_address = work.which, .block_count = 1});
            case Kind::write:
                work.task.to_send = OctetVector(block * 4, std::byte{1});
                return execute(
                    work.task, nexus,
                    Write10{.block_address = static_cast<std::uint32_t>(counters + dice.roll(8)),
                            .block_count = 4});
            case Kind::flush:
                return execute(work.task, nexus, SynchronizeCache10{});
        }
    }
    /// One thing that can happen, happens.
    void happen(Dice& dice) {
        switch (dice.roll(8)) {
            case 0:
            case 1:
                if (works.size() < 40) begin(dice);
                return;
            case 2:
            case 3:
            case 4:
                if (!disk.held.empty()) disk.let_go(dice.roll(disk.held.size()));
                return;
            case 5:
                if (!works.empty()) bring(*works[dice.roll(works.size())]);
                return;
            case 6:
                if (works.empty() || dice.roll(4) != 0) return;
                return abort(*works[dice.roll(works.size())]);
            default:
                if (dice.roll(10) == 0) return replace_session(dice);
        }
    }
    static void bring(Work& work) {
        if (work.task.wanted == 1 && work.task.holds_data && work.task.ended == 0) {
            work.task.holds_data = false;
            work.task.bring_data();
        }
    }
    void abort(Work& work) {
        work.aborted = true;
        if (work.task.ended == 0) target->abort(work.task);
    }
    void replace_session(Dice& dice) {
        auto& leaving = *joined[dice.roll(joined.size())];
        auto name = leaving.name().initiator;
        for (auto& work : works)
            if (work->task.nexus == &leaving) work->aborted = true;
        leave(leaving);
        clear_without_device(join(name, ++sessions));
    }
    /// Attentions, without waiting for a turn behind ordered tasks.
    void clear_without_device(Nexus& nexus) {
        for (int i = 0; i < 3; ++i) {
            BenchTask task;
            task.attribute = TaskAttribute::head_of_queue;
            execute(task, nexus, TestUnitReady{});
            if (task.good()) return;
        }
    }
    void sweep() {
        for (auto& work : works) {
            auto& task = work->task;
            if (task.ended == 0) continue;
            ASSERT_EQ(task.ended, 1);
            if (task.heard.end == TaskEnd::answered)
                learn(*work);
            else
                ASSERT_TRUE(work->aborted);
            if (task.keeps_answer) task.release();
            work.reset();
        }
        std::erase(works, nullptr);
    }
    void learn(Work& work) {
        auto& task = work.task;
        const bool differed = task.heard.status == ScsiStatus::check_condition &&
                              task.sense().key == SenseKey::miscompare;
        ASSERT_TRUE(task.good() || (work.kind == Kind::count && differed))
            << "status " << static_cast<int>(task.heard.status) << " sense " << std::hex
            << task.code();
        if (work.kind == Kind::count && task.good()) ++counted[work.which];
        if (work.kind != Kind::look) return;
        ASSERT_TRUE(is_whole(task.data)) << "half of one number and half of another";
        known[work.which] = load_big_endian<8>(task.data.data());
    }

    std::vector<std::unique_ptr<Work>> works;
    std::array<std::uint64_t, counters> known{};    ///< as last seen
    std::array<std::uint64_t, counters> counted{};  ///< as answered
    std::uint8_t sessions = 10;
};

TEST_F(Crowd, OfInitiatorsCountsRightAndLosesNothing) {
    test::for_each_seed(150, [&](std::uint64_t seed) {
        Dice dice{seed * 0x9e3779b97f4a7c15 | 1};
        disk.lending = seed % 2 == 0;
        disk.holding = false;
        set_up(disk, {});
        join("iqn.2026-11.io.weft:carol", 3);
        clear_attentions(*joined.back());
        for (std::uint64_t which = 0; which < counters; ++which) {
            put_on_disk(which, numbered(0));
            known[which] = counted[which] = 0;
        }
        disk.holding = true;
        for (int step = 0; step < 600 && !HasFailure(); ++step) {
            happen(dice);
            sweep();
        }
        for (int round = 0; round < 200 && !works.empty(); ++round) {
            disk.let_all_go();
            for (std::size_t i = 0; i < works.size(); ++i) bring(*works[i]);
            sweep();
        }
        ASSERT_TRUE(works.empty()) << works.size() << " tasks never ended";
        disk.holding = false;
        for (std::uint64_t which = 0; which < counters; ++which) {
            const auto there = on_disk(which, 1);
            EXPECT_TRUE(is_whole(there));
            // One that was aborted may have counted, unseen.
            EXPECT_GE(load_big_endian<8>(there.data()), counted[which]);
        }
        EXPECT_EQ(pool.lent_bytes(), 0u);
        tear_down();
    });
}

}  // namespace
}  // namespace weft::scsi
