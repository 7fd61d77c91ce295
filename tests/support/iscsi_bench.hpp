// SPDX-License-Identifier: Apache-2.0
// A target node with one target and two small disks in memory, and a clock the test turns.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>

#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "scsi/target.hpp"
#include "support/iscsi_talk.hpp"

namespace weft::iscsi {

/// A disk whose requests wait until they are let go, and which lends nothing.
class SlowDisk final : public BlockDevice {
public:
    explicit SlowDisk(BlockDevice& below) : below_(below) {}
    BlockTraits traits() const override { return below_.traits(); }
    void submit(BlockRequest& request) override {
        if (!holding) return below_.submit(request);
        held.push_back(&request);
    }
    void let_go() {
        while (!held.empty()) {
            auto* request = held.front();
            held.pop_front();
            below_.submit(*request);
        }
    }
    bool holding = false;
    std::deque<BlockRequest*> held;

private:
    BlockDevice& below_;
};

class TargetBench : public ::testing::Test {
protected:
    static constexpr const char* name = "iqn.2026-11.io.weft:bench";
    static constexpr std::size_t disk_bytes = 4u << 20;

    TargetBench()
        : memory(std::make_unique<block::HeapMemory>(disk_bytes), disk_bytes),
          below(std::make_unique<block::HeapMemory>(disk_bytes), disk_bytes),
          slow(below),
          pool({.bytes = 64u << 20, .reserve_bytes = 256u << 10, .idle_bytes = 1u << 20}),
          target({.name = name,
                  .pool = &pool,
                  .surroundings = {.now = [this] { return now; },
                                   .call_later =
                                       [this](Duration, std::function<void()> task) {
                                           deferred.push_back(std::move(task));
                                       }}}),
          node(options()) {
        target.add_port(1, 1);
        EXPECT_TRUE(target.add_unit(0, memory, {}));
        EXPECT_TRUE(target.add_unit(1, slow, {}));
        EXPECT_TRUE(node.offer(name, target, {}));
        node.add_portal({.address = Address::tcp("0.0.0.0", 3260)});
    }
    ~TargetBench() override {
        slow.let_go();
        node.close_all();
        talks.clear();
        run_deferred();
        bool quiet = false;
        target.drain([&] { quiet = true; });
        run_deferred();
        EXPECT_TRUE(quiet);
    }

    TargetNode::Options options() {
        return {
            .now = [this] { return now; },
            .defer = [this](std::function<void()> task) { deferred.push_back(std::move(task)); },
            .chance =
                [](Buffer octets) {
                    for (auto& octet : octets) octet = std::byte{0x5a};
                }};
    }
    void run_deferred() {
        while (!deferred.empty()) {
            auto task = std::move(deferred.front());
            deferred.pop_front();
            task();
        }
    }
    Talk& connect() { return *talks.emplace_back(std::make_unique<Talk>(node)); }
    /// A connection in the full feature phase, past the first unit attention.
    Talk& logged_in(Keys keys = {}) {
        auto& talk = connect();
        auto response = talk.log_in(name, keys);
        EXPECT_EQ(response.status, wire::LoginStatus::success);
        settle(talk);
        return talk;
    }
    /// Hears the unit attentions of a new session.
    void settle(Talk& talk) {
        for (std::uint32_t unit : {0u, 1u})
            for (int attempt = 0; attempt < 4; ++attempt) {
                talk.say(test_unit_ready(talk, unit));
                if (talk.expect<wire::ScsiResponsePdu>().status == wire::ScsiStatus::good) break;
            }
    }

    wire::ScsiCommandPdu command(Talk& talk, std::uint32_t unit, std::initializer_list<int> block) {
        wire::ScsiCommandPdu pdu{.final = true,
                                 .attribute = wire::TaskAttribute::simple,
                                 .logical_unit = *wire::spell_logical_unit(unit),
                                 .task_tag = wire::InitiatorTaskTag{next_tag++}};
        std::size_t at = 0;
        for (int octet : block) pdu.command_block[at++] = static_cast<std::uint8_t>(octet);
        pdu.numbers.command_number = talk.command_number++;
        return pdu;
    }
    wire::ScsiCommandPdu test_unit_ready(Talk& talk, std::uint32_t unit) {
        return command(talk, unit, {0x00});
    }
    /// READ (10) or WRITE (10) of whole blocks from the first on.
    wire::ScsiCommandPdu transfer(Talk& talk, bool write, std::uint32_t unit, std::uint8_t blocks) {
        auto pdu = command(talk, unit, {write ? 0x2a : 0x28, 0, 0, 0, 0, 0, 0, 0, blocks, 0});
        pdu.read = !write;
        pdu.write = write;
        pdu.expected_transfer_length = blocks * 512u;
        return pdu;
    }
    static std::vector<std::byte> pattern(std::size_t size, int seed) {
        std::vector<std::byte> octets(size);
        for (std::size_t i = 0; i < size; ++i)
            octets[i] = static_cast<std::byte>(i * 7 + i / 512 + static_cast<std::size_t>(seed));
        return octets;
    }
    std::vector<std::byte> on_disk(std::size_t size) {
        auto octets = memory.lend(BlockOperation::read, 0, size);
        return {octets.begin(), octets.end()};
    }

    Instant now{1'000'000'000};
    std::deque<std::function<void()>> deferred;
    block::MemoryDisk memory, below;
    SlowDisk slow;
    block::BufferPool pool;
    scsi::Target target;
    TargetNode node;
    std::vector<std::unique_ptr<Talk>> talks;
    std::uint32_t next_tag = 1;
};

}  // namespace weft::iscsi
