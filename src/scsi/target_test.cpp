// SPDX-License-Identifier: Apache-2.0
// Units that come and go, initiators that come and go, and task management.
#include "scsi/target.hpp"

#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::BenchTask;
using test::filled;
using Function = TaskManagementFunction;
using Outcome = TaskManagementResult;

struct BenchManagement final : Management {
    void done(TaskManagementResult said) override { heard = said; }
    std::optional<TaskManagementResult> heard;
};

struct TargetDevice : test::ScsiBench {
    std::optional<Outcome> manage(Function function, Nexus& nexus, Task* task = nullptr,
                                  std::uint32_t unit = 0) {
        BenchManagement management;
        management.function = function;
        management.nexus = &nexus;
        management.logical_unit = *spell_logical_unit(unit);
        management.task = task;
        target->manage(management);
        EXPECT_TRUE(management.heard) << "it did not end at once";
        return management.heard;
    }
    void begin_read(BenchTask& task, Nexus& nexus, std::uint32_t block) {
        task.accepted_in = 512;
        execute(task, nexus, Read10{.block_address = block, .block_count = 1});
    }
    std::vector<std::uint64_t> listed(Nexus& nexus) {
        auto report = run(nexus, ReportLuns{.allocation_length = 4096});
        EXPECT_TRUE(report->good());
        std::vector<std::uint64_t> units;
        for (std::size_t at = 8; at < report->data.size(); at += 8)
            units.push_back(load_big_endian<8>(report->data.data() + at));
        return units;
    }
};

TEST_F(TargetDevice, TellsThatUnitsCameAndWent) {
    set_up();
    block::MemoryDisk other(std::make_unique<block::HeapMemory>(1 << 20), 1 << 20);
    ASSERT_TRUE(target->add_unit(300, other, {}));
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x63f0eu);
    EXPECT_TRUE(run(TestUnitReady{})->good());
    EXPECT_EQ(listed(*second), (std::vector<std::uint64_t>{0, 0x412c000000000000}));
    EXPECT_TRUE(run(*second, TestUnitReady{})->good()) << "it has read the list";
    bool gone = false;
    ASSERT_TRUE(target->remove_unit(300, [&] { gone = true; }));
    EXPECT_TRUE(gone);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x63f0eu);
    EXPECT_EQ(listed(*first), std::vector<std::uint64_t>{0});
    EXPECT_FALSE(target->remove_unit(300, nullptr));
    EXPECT_FALSE(target->add_unit(0, other, {})) << "the number is taken";
    EXPECT_FALSE(target->add_unit(1, other, {.block_bytes = 500}));
}

TEST_F(TargetDevice, RemovesAUnitWhenItsLastTaskIsReleased) {
    set_up(disk, {});
    BenchTask task;
    task.keeps_answer = true;
    begin_read(task, *first, 1);
    bool gone = false;
    ASSERT_TRUE(target->remove_unit(0, [&] { gone = true; }));
    EXPECT_FALSE(gone);
    disk.let_go(0);
    EXPECT_EQ(task.heard.end, TaskEnd::aborted);
    EXPECT_FALSE(gone) << "the device's memory may be on its way";
    task.release();
    EXPECT_TRUE(gone);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x52500u);
}

TEST_F(TargetDevice, IsNotDrainedWhileARemovedUnitIsInUse) {
    set_up(disk, {});
    BenchTask task;
    begin_read(task, *first, 1);
    bool gone = false, drained = false;
    ASSERT_TRUE(target->remove_unit(0, [&] { gone = true; }));
    target->drain([&] {
        EXPECT_TRUE(gone);
        drained = true;
    });
    EXPECT_FALSE(drained);
    disk.let_go(0);
    EXPECT_TRUE(drained);
}

TEST_F(TargetDevice, AnswersWhereThereIsNoUnit) {
    set_up();
    BenchTask inquiry;
    inquiry.accepted_in = 96;
    execute(inquiry, *first, Inquiry{.allocation_length = 96}, 7);
    ASSERT_TRUE(inquiry.good());
    EXPECT_EQ(inquiry.data[0], std::byte{0x7f});
    BenchTask list;
    list.accepted_in = 96;
    execute(list, *first, ReportLuns{.allocation_length = 96}, 7);
    EXPECT_TRUE(list.good());
    BenchTask ready;
    execute(ready, *first, TestUnitReady{}, 7);
    EXPECT_EQ(ready.code(), 0x52500u);
    BenchTask sense;
    sense.accepted_in = 18;
    execute(sense, *first, RequestSense{.allocation_length = 18}, 7);
    ASSERT_TRUE(sense.good());
    EXPECT_EQ(summarize_sense(sense.data)->additional, AdditionalSense::logical_unit_not_supported);
}

TEST_F(TargetDevice, AbortsOneTask) {
    set_up(disk, {});
    BenchTask task, other;
    begin_read(task, *first, 1);
    begin_read(other, *first, 2);
    BenchManagement management;
    management.function = Function::abort_task;
    management.nexus = first;
    management.task = &task;
    target->manage(management);
    EXPECT_FALSE(management.heard) << "not before the task has ended";
    disk.let_go(0);
    EXPECT_EQ(management.heard, Outcome::complete);
    EXPECT_EQ(task.heard.end, TaskEnd::aborted);
    EXPECT_EQ(manage(Function::query_task, *first, &other), Outcome::succeeded);
    disk.let_go(0);
    EXPECT_TRUE(other.good());
    EXPECT_EQ(manage(Function::abort_task, *first, &other), Outcome::task_does_not_exist);
    EXPECT_EQ(manage(Function::abort_task, *first), Outcome::task_does_not_exist);
    EXPECT_EQ(manage(Function::query_task, *first, &other), Outcome::complete);
}

TEST_F(TargetDevice, AbortsTheTasksOfOneInitiatorOrOfAll) {
    set_up(disk, {});
    BenchTask mine, yours;
    begin_read(mine, *first, 1);
    begin_read(yours, *second, 2);
    BenchManagement set;
    set.function = Function::abort_task_set;
    set.nexus = first;
    target->manage(set);
    disk.let_go(0);
    EXPECT_EQ(set.heard, Outcome::complete);
    EXPECT_EQ(mine.heard.end, TaskEnd::aborted);
    EXPECT_FALSE(yours.done());
    BenchManagement clear;
    clear.function = Function::clear_task_set;
    clear.nexus = first;
    target->manage(clear);
    disk.let_go(0);
    EXPECT_EQ(clear.heard, Outcome::complete);
    EXPECT_EQ(yours.heard.end, TaskEnd::aborted);
    EXPECT_EQ(run(*second, TestUnitReady{})->code(), 0x62f00u);
    EXPECT_TRUE(run(TestUnitReady{})->good());
}

TEST_F(TargetDevice, ResetsOneUnitOrAll) {
    auto& unit = set_up();
    unit.state().mode.software_write_protect = true;
    EXPECT_TRUE(run(*second, Reserve6{})->good());
    EXPECT_EQ(manage(Function::logical_unit_reset, *first), Outcome::complete);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x62903u);
    EXPECT_TRUE(run(TestUnitReady{})->good());
    EXPECT_EQ(unit.state().reserved_by, nullptr);
    EXPECT_FALSE(unit.state().mode.software_write_protect);
    EXPECT_EQ(manage(Function::target_warm_reset, *first), Outcome::complete);
    EXPECT_EQ(run(*second, TestUnitReady{})->code(), 0x62900u);
    EXPECT_EQ(manage(Function::target_cold_reset, *first), Outcome::complete);
    EXPECT_EQ(manage(Function::logical_unit_reset, *first, nullptr, 9),
              Outcome::logical_unit_does_not_exist);
    EXPECT_EQ(manage(Function::task_reassign, *first), Outcome::reassignment_not_supported);
    EXPECT_EQ(manage(Function::clear_auto_contingent_allegiance, *first),
              Outcome::function_not_supported);
    clear_attentions(*first);
    EXPECT_EQ(manage(Function::query_asynchronous_event, *first), Outcome::complete);
    EXPECT_EQ(manage(Function::nexus_reset, *first), Outcome::complete);
    EXPECT_EQ(manage(Function::query_asynchronous_event, *first), Outcome::succeeded);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x62907u);
    EXPECT_EQ(manage(Function::query_task_set, *first), Outcome::complete);
}

TEST_F(TargetDevice, LetsGoOfAnInitiatorWhenItsTasksAreReleased) {
    set_up(disk, {});
    BenchTask task;
    task.keeps_answer = true;
    begin_read(task, *first, 1);
    bool gone = false;
    std::erase(joined, first);
    target->leave(*first, [&] { gone = true; });
    EXPECT_FALSE(gone);
    disk.let_go(0);
    EXPECT_EQ(task.heard.end, TaskEnd::aborted);
    EXPECT_FALSE(gone);
    task.release();
    EXPECT_TRUE(gone);
    auto& again = join("iqn.2026-11.io.weft:alice", 1);
    EXPECT_EQ(run(again, TestUnitReady{})->code(), 0x62900u) << "to a new session all is new";
    EXPECT_TRUE(run(again, TestUnitReady{})->good());
}

}  // namespace
}  // namespace weft::scsi
