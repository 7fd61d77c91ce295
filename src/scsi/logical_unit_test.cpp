// SPDX-License-Identifier: Apache-2.0
// The way of tasks through a unit: turns, memory, aborting, attentions.
#include "scsi/logical_unit.hpp"

#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::BenchTask;
using test::filled;

struct Unit : test::ScsiBench {
    void begin_read(BenchTask& task, std::uint32_t block,
                    TaskAttribute attribute = TaskAttribute::simple) {
        task.attribute = attribute;
        task.accepted_in = 512;
        execute(task, *first, Read10{.block_address = block, .block_count = 1});
    }
    void begin_write(BenchTask& task, Nexus& nexus, std::uint32_t block) {
        task.to_send = filled(512, 'w');
        execute(task, nexus, Write10{.block_address = block, .block_count = 1});
    }
};

TEST_F(Unit, GivesOrderedTasksTheirTurnWhenAllBeforeAreDone) {
    set_up(disk, {});
    BenchTask before, ordered, after, urgent;
    begin_read(before, 1);
    begin_read(ordered, 2, TaskAttribute::ordered);
    begin_read(after, 3);
    ASSERT_EQ(disk.held.size(), 1u);
    begin_read(urgent, 4, TaskAttribute::head_of_queue);
    ASSERT_EQ(disk.held.size(), 2u) << "the head of the queue waits for nobody";
    disk.let_go(1);
    EXPECT_TRUE(urgent.good());
    disk.let_go(0);
    EXPECT_TRUE(before.good());
    ASSERT_EQ(disk.held.size(), 1u);
    EXPECT_EQ(disk.held[0]->offset, 2u * 512);
    disk.let_go(0);
    EXPECT_TRUE(ordered.good());
    ASSERT_EQ(disk.held.size(), 1u);
    disk.let_go(0);
    EXPECT_TRUE(after.good());
}

TEST_F(Unit, RefusesToMakeAnImpatientTaskWait) {
    set_up(disk, {});
    BenchTask ordered, impatient;
    begin_read(ordered, 2, TaskAttribute::ordered);
    impatient.impatient = true;
    begin_write(impatient, *first, 3);
    EXPECT_TRUE(impatient.done());
    EXPECT_EQ(impatient.heard.status, ScsiStatus::task_set_full);
    disk.let_all_go();  // while the task is there to hear of it
    EXPECT_TRUE(ordered.done());
}

TEST_F(Unit, TellsEachAttentionOnceAndNotToThoseWhoAskWhatItIs) {
    auto& unit = set_up();
    unit.tell(*first, AdditionalSense::mode_parameters_changed);
    unit.tell(*first, AdditionalSense::capacity_data_has_changed);
    unit.tell(*first, AdditionalSense::mode_parameters_changed);
    EXPECT_TRUE(run(Inquiry{.allocation_length = 36})->good());
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x62a01u);
    auto asked = run(RequestSense{.allocation_length = 252});
    EXPECT_TRUE(asked->good());
    EXPECT_EQ(summarize_sense(asked->data)->additional, AdditionalSense::capacity_data_has_changed);
    EXPECT_TRUE(run(TestUnitReady{})->good());
    EXPECT_TRUE(run(*second, TestUnitReady{})->good());
    unit.tell(*first, AdditionalSense::mode_parameters_changed);
    unit.tell(*first, AdditionalSense::bus_device_reset_occurred);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x62903u);
    EXPECT_TRUE(run(TestUnitReady{})->good()) << "a reset makes all before it old news";
}

TEST_F(Unit, RefusesWhatItDoesNotKnow) {
    set_up();
    EXPECT_EQ(run_octets(test::OctetVector(6, std::byte{0xff}))->code(), 0x52000u);
    test::OctetVector action(16, std::byte{0});
    action[0] = std::byte{0x9e};
    action[1] = std::byte{0x1f};
    EXPECT_EQ(run_octets(action)->code(), 0x52400u);
    test::OctetVector variable(32, std::byte{0});
    variable[0] = std::byte{0x7f};
    variable[7] = std::byte{23};  // one too few
    variable[9] = std::byte{9};
    EXPECT_EQ(run_octets(variable)->code(), 0x52400u);
    EXPECT_EQ(run(TestUnitReady{.control = {.normal_auto_contingent_allegiance = true}})->code(),
              0x52400u);
    EXPECT_EQ(run_octets({std::byte{0}, std::byte{0}})->code(), 0x52000u) << "too short to be any";
}

TEST_F(Unit, EndsAnAbortedTaskOnceTheDeviceHasAnswered) {
    set_up(disk, {});
    BenchTask task;
    begin_read(task, 1);
    target->abort(task);
    EXPECT_FALSE(task.done());
    disk.let_go(0);
    EXPECT_TRUE(task.done());
    EXPECT_EQ(task.heard.end, TaskEnd::aborted);
    EXPECT_TRUE(task.data.empty());
}

TEST_F(Unit, EndsAnAbortedTaskThatOnlyWaitsAtOnce) {
    set_up(disk, {});
    BenchTask ordered, waiting;
    begin_read(ordered, 1, TaskAttribute::ordered);
    begin_read(waiting, 2);
    target->abort(waiting);
    EXPECT_TRUE(waiting.done());
    EXPECT_EQ(waiting.heard.end, TaskEnd::aborted);
    disk.let_go(0);
    EXPECT_TRUE(ordered.good());
    EXPECT_TRUE(disk.held.empty());
}

TEST_F(Unit, WaitsForTheDataOfAnAbortedTask) {
    set_up(disk, {});
    BenchTask task;
    task.holds_data = true;
    begin_write(task, *first, 1);
    target->abort(task);
    EXPECT_FALSE(task.done());
    EXPECT_TRUE(task.unwanted);
    task.bring_data();
    EXPECT_TRUE(task.done());
    EXPECT_EQ(task.heard.end, TaskEnd::aborted);
    EXPECT_TRUE(disk.held.empty()) << "what is aborted is not written";
}

TEST_F(Unit, LetsTasksWaitForMemoryInTheOrderTheyCame) {
    block::BufferPool small({.bytes = 64u << 10, .reserve_bytes = 8u << 10, .idle_bytes = 0});
    auto limited = std::make_unique<Target>(TargetOptions{
        .name = "iqn.small",
        .pool = &small,
        .surroundings = {[this] { return now; }, [](Duration, std::function<void()>) {}}});
    ASSERT_TRUE(limited->add_unit(0, disk, {}));
    auto* nexus = *limited->join({.initiator = "iqn.a"});
    auto begin = [&](BenchTask& task, std::uint16_t blocks) {
        task.nexus = nexus;
        task.accepted_in = blocks * 512u;
        task.set_command_block(encoded(Read10{.block_address = 0, .block_count = blocks}));
        limited->execute(task);
    };
    BenchTask attention;
    begin(attention, 1);
    EXPECT_EQ(attention.code(), 0x62900u);
    BenchTask one, two, three, impatient;
    begin(one, 64);
    begin(two, 32);
    begin(three, 1);
    EXPECT_EQ(disk.held.size(), 1u) << "the others wait, also the one for which there is enough";
    impatient.impatient = true;
    begin(impatient, 1);
    EXPECT_EQ(impatient.heard.status, ScsiStatus::task_set_full);
    disk.let_go(0);
    EXPECT_TRUE(one.good());
    EXPECT_EQ(disk.held.size(), 2u);
    disk.let_all_go();
    EXPECT_TRUE(two.good());
    EXPECT_TRUE(three.good());
    BenchTask busy, stays;
    begin(stays, 64);
    begin(busy, 64);
    target = std::move(limited);
    target->abort(busy);
    EXPECT_EQ(busy.heard.end, TaskEnd::aborted);
    disk.let_all_go();
    target->leave(*nexus, nullptr);
    target.reset();
}

TEST_F(Unit, AnnouncesItsNewSize) {
    struct Growing final : BlockDevice {
        explicit Growing(BlockDevice& under) : below(under) {}
        BlockTraits traits() const override {
            auto traits = below.traits();
            traits.size = size;
            return traits;
        }
        void submit(BlockRequest& request) override { below.submit(request); }
        void grow(std::uint64_t to) {
            size = to;
            announce_size(to);
        }
        BlockDevice& below;
        std::uint64_t size = 512 * 100;
    };
    Growing growing(memory);
    set_up(growing, {});
    growing.grow(512 * 200);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x62a09u);
    EXPECT_TRUE(run(Read10{.block_address = 199, .block_count = 1})->good());
    tear_down();
}

TEST_F(Unit, SensesInTheFormatItsControlPageSays) {
    auto& unit = set_up();
    auto refused = run(Read16{.block_address = ~0ull, .block_count = 1});
    EXPECT_EQ(refused->heard.sense[0], std::byte{0x70});
    unit.state().mode.descriptor_sense = true;
    refused = run(Read16{.block_address = ~0ull, .block_count = 1});
    EXPECT_EQ(refused->heard.sense[0], std::byte{0x72});
    EXPECT_EQ(refused->code(), 0x52100u);
}

}  // namespace
}  // namespace weft::scsi
