// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::OctetVector;

struct PortGroups : test::ScsiBench {
    std::unique_ptr<test::BenchTask> set_state(std::uint16_t group, AccessState state) {
        OctetVector list(4);
        auto one = encoded(SetTargetPortGroup{state, group});
        list.insert(list.end(), one.begin(), one.end());
        return run(SetTargetPortGroups{.parameter_length = 8}, list);
    }
};

TEST_F(PortGroups, AreReportedWithTheirPorts) {
    set_up();
    target->add_port(2, 1);
    target->add_port(3, 2);
    auto told = run(ReportTargetPortGroups{.allocation_length = 1024});
    ASSERT_TRUE(told->good());
    ASSERT_EQ(told->data.size(), 4u + 8 + 8 + 8 + 4);
    auto rest = ConstBuffer(told->data);
    EXPECT_EQ(decode<TargetPortGroupsHeader>(rest)->length_after, told->data.size() - 4);
    const auto one = *decode<TargetPortGroup>(rest.subspan(4));
    EXPECT_EQ(one.state, AccessState::active_optimized);
    EXPECT_EQ(one.group, 1);
    EXPECT_EQ(one.port_count, 2);
    EXPECT_EQ(decode<TargetPort>(rest.subspan(16))->relative_identifier, 2);
    EXPECT_EQ(decode<TargetPortGroup>(rest.subspan(20))->group, 2);
    auto extended = run(ReportTargetPortGroups{.data_format = 1, .allocation_length = 1024});
    EXPECT_EQ(extended->data.size(), told->data.size() + 4);
    EXPECT_EQ(run(ReportTargetPortGroups{.allocation_length = 4})->data.size(), 4u);
}

TEST_F(PortGroups, ChangeTheirStateAndTellOthers) {
    set_up();
    EXPECT_TRUE(set_state(1, AccessState::standby)->good());
    EXPECT_EQ(run(*second, TestUnitReady{})->code(), 0x62a06u);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x2040bu);
    EXPECT_EQ(run(Read10{.block_count = 1})->code(), 0x2040bu);
    EXPECT_TRUE(run(Inquiry{.allocation_length = 36})->good());
    auto told = run(ReportTargetPortGroups{.allocation_length = 1024});
    const auto group = *decode<TargetPortGroup>(ConstBuffer(told->data).subspan(4));
    EXPECT_EQ(group.state, AccessState::standby);
    EXPECT_EQ(group.reason, AccessStateReason::set_explicitly);
    EXPECT_TRUE(set_state(1, AccessState::active_not_optimized)->good());
    EXPECT_TRUE(run(Read10{.block_count = 1})->good());
    EXPECT_EQ(set_state(9, AccessState::standby)->code(), 0x52600u);
    EXPECT_EQ(set_state(1, AccessState::transitioning)->code(), 0x52600u);
}

}  // namespace
}  // namespace weft::scsi
