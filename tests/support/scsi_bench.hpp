// SPDX-License-Identifier: Apache-2.0
// A SCSI target on the bench: commands in, answers out, and time that passes when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/wire_format.hpp"
#include "block/error_filter.hpp"
#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "scsi/logical_unit.hpp"
#include "scsi/target.hpp"
#include "support/held_disk.hpp"
#include "wire/scsi.hpp"

namespace weft::test {

using Octet = std::byte;
using OctetVector = std::vector<std::byte>;

inline OctetVector filled(std::size_t count, int with) {
    return OctetVector(count, static_cast<std::byte>(with));
}

/// A task as a carrier would have it, that keeps what it hears.
class BenchTask final : public scsi::Task {
public:
    OctetVector to_send;        ///< put into the places as soon as they are known
    bool holds_data = false;    ///< not before bring_data()
    bool keeps_answer = false;  ///< not released before the test says so
    int wanted = 0;
    int ended = 0;
    bool unwanted = false;
    scsi::TaskAnswer heard;
    OctetVector data;

    void data_wanted(std::span<const Buffer> places) override {
        ++wanted;
        places_.assign(places.begin(), places.end());
        if (!holds_data) bring_data();
    }
    void data_unwanted() override { unwanted = true; }
    void bring_data() {
        std::size_t at = 0;
        for (auto place : places_) {
            ASSERT_LE(at + place.size(), to_send.size());
            std::memcpy(place.data(), to_send.data() + at, place.size());
            at += place.size();
        }
        data_came();
    }
    std::size_t place_bytes() const {
        std::size_t sum = 0;
        for (auto place : places_) sum += place.size();
        return sum;
    }
    void finished() override {
        ++ended;
        heard = answer;
        heard.data_in = {};
        data.clear();
        for (auto piece : answer.data_in) data.insert(data.end(), piece.begin(), piece.end());
        if (!keeps_answer) release();
    }

    // What tests ask.
    bool done() const { return ended == 1; }
    bool good() const {
        return done() && heard.end == scsi::TaskEnd::answered &&
               heard.status == wire::ScsiStatus::good;
    }
    bool conflict() const {
        return done() && heard.status == wire::ScsiStatus::reservation_conflict;
    }
    wire::SenseSummary sense() const {
        if (heard.status != wire::ScsiStatus::check_condition) return {};
        auto summary = wire::summarize_sense(ConstBuffer(heard.sense.data(), heard.sense.size()));
        EXPECT_TRUE(summary);
        return summary ? *summary : wire::SenseSummary{};
    }
    /// Key and code as people write them: 0x52400 for 5/2400.
    unsigned code() const {
        auto summary = sense();
        return static_cast<unsigned>(summary.key) << 16 | static_cast<unsigned>(summary.additional);
    }

private:
    std::vector<Buffer> places_;
};

/// A disk of one mebibyte and 512 blocks more, so that nothing is a power of two by chance.
inline constexpr std::uint64_t bench_blocks = 2048 + 512;

class ScsiBench : public testing::Test {
protected:
    ScsiBench()
        : memory(std::make_unique<block::HeapMemory>(bench_blocks * 512), bench_blocks * 512),
          pool({.bytes = 256u << 20, .reserve_bytes = 256u << 10, .idle_bytes = 16u << 20}) {}
    ~ScsiBench() override { tear_down(); }

    void tear_down() {
        disk.let_all_go();
        if (target == nullptr) return;
        target->drain(nullptr);
        pass_time(std::chrono::hours(1));
        for (auto* nexus : std::exchange(joined, {})) target->leave(*nexus, nullptr);
        target.reset();
    }

    /// The target, with unit 0 on `device` and two initiators that have cleared their attentions.
    scsi::LogicalUnit& set_up(BlockDevice& device, const scsi::UnitOptions& options) {
        tear_down();
        target = std::make_unique<scsi::Target>(scsi::TargetOptions{
            .name = "iqn.2026-11.io.weft:bench",
            .pool = &pool,
            .surroundings = {.now = [this] { return now; },
                             .call_later =
                                 [this](Duration delay, std::function<void()> task) {
                                     later.push_back({now + delay, std::move(task)});
                                 }}});
        target->add_port(1, 1);
        auto added = target->add_unit(0, device, options);
        EXPECT_TRUE(added);
        first = &join("iqn.2026-11.io.weft:alice", 1);
        second = &join("iqn.2026-11.io.weft:bob", 2);
        clear_attentions(*first);
        clear_attentions(*second);
        return **added;
    }
    scsi::LogicalUnit& set_up(const scsi::UnitOptions& options = {}) {
        return set_up(memory, options);
    }

    scsi::Nexus& join(std::string name, std::uint8_t session) {
        auto nexus = target->join(
            {.initiator = std::move(name), .session_identifier = {0x80, 0, 0, 0, 0, session}});
        EXPECT_TRUE(nexus);
        joined.push_back(*nexus);
        return **nexus;
    }
    void leave(scsi::Nexus& nexus) {
        std::erase(joined, &nexus);
        target->leave(nexus, nullptr);
    }
    void clear_attentions(scsi::Nexus& nexus) {
        for (int i = 0; i < 20; ++i) {
            BenchTask task;
            execute(task, nexus, wire::TestUnitReady{});
            if (task.heard.status != wire::ScsiStatus::check_condition ||
                task.sense().key != wire::SenseKey::unit_attention)
                return;
        }
        ADD_FAILURE() << "attentions without end";
    }

    template <class CommandBlock>
    void execute(BenchTask& task, scsi::Nexus& nexus, const CommandBlock& command,
                 std::uint32_t unit = 0) {
        task.nexus = &nexus;
        task.logical_unit = *wire::spell_logical_unit(unit);
        task.set_command_block(encoded(command));
        task.offered_out = std::max<std::uint64_t>(task.offered_out, task.to_send.size());
        target->execute(task);
    }
    /// One command from beginning to end.
    template <class CommandBlock>
    std::unique_ptr<BenchTask> run(scsi::Nexus& nexus, const CommandBlock& command,
                                   OctetVector to_send = {}, std::uint64_t accepted = 1u << 20) {
        auto task = std::make_unique<BenchTask>();
        task->to_send = std::move(to_send);
        task->accepted_in = accepted;
        execute(*task, nexus, command);
        EXPECT_TRUE(task->done());
        return task;
    }
    template <class CommandBlock>
    std::unique_ptr<BenchTask> run(const CommandBlock& command, OctetVector to_send = {},
                                   std::uint64_t accepted = 1u << 20) {
        return run(*first, command, std::move(to_send), accepted);
    }
    std::unique_ptr<BenchTask> run_octets(OctetVector block, OctetVector to_send = {}) {
        auto task = std::make_unique<BenchTask>();
        task->to_send = std::move(to_send);
        task->accepted_in = 1u << 20;
        task->nexus = first;
        task->offered_out = task->to_send.size();
        task->set_command_block(block);
        target->execute(*task);
        EXPECT_TRUE(task->done());
        return task;
    }

    void pass_time(Duration span) {
        const auto end = now + span;
        for (;;) {
            auto next = later.end();
            for (auto one = later.begin(); one != later.end(); ++one)
                if (one->due <= end && (next == later.end() || one->due < next->due)) next = one;
            if (next == later.end()) break;
            now = std::max(now, next->due);
            auto task = std::move(next->task);
            later.erase(next);
            task();
        }
        now = end;
    }

    OctetVector on_disk(std::uint64_t block, std::size_t blocks) {
        auto lent = memory.lend(BlockOperation::read, block * 512, blocks * 512);
        return {lent.begin(), lent.end()};
    }
    void put_on_disk(std::uint64_t block, const OctetVector& octets) {
        auto written =
            run(wire::Write16{.block_address = block,
                              .block_count = static_cast<std::uint32_t>(octets.size() / 512)},
                octets);
        EXPECT_TRUE(written->good());
    }

    struct Later {
        Instant due;
        std::function<void()> task;
    };
    block::MemoryDisk memory;
    HeldDisk disk{memory};              ///< for tests that hold its requests
    block::ErrorFilter filter{memory};  ///< for tests that fail them
    block::BufferPool pool;
    Instant now{};
    std::deque<Later> later;
    std::unique_ptr<scsi::Target> target;
    std::vector<scsi::Nexus*> joined;
    scsi::Nexus* first = nullptr;
    scsi::Nexus* second = nullptr;
};

}  // namespace weft::test
