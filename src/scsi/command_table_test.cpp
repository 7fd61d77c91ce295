// SPDX-License-Identifier: Apache-2.0
// What the table of commands says of itself (REPORT SUPPORTED OPERATION CODES), and its neighbours.
#include "scsi/command.hpp"
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::filled;

struct Reporting : test::ScsiBench {
    std::unique_ptr<test::BenchTask> ask(ReportingOptions options, ScsiOperation operation = {},
                                         std::uint16_t action = 0, bool timeouts = false) {
        return run(ReportSupportedOperationCodes{.with_timeouts = timeouts,
                                                 .options = options,
                                                 .requested_operation = operation,
                                                 .requested_service_action = action,
                                                 .allocation_length = 65535});
    }
    std::vector<CommandDescriptor> list(bool timeouts = false) {
        auto all = ask(ReportingOptions::all_commands, {}, 0, timeouts);
        EXPECT_TRUE(all->good());
        EXPECT_EQ(decode<AllCommandsHeader>(all->data)->length_after, all->data.size() - 4);
        std::vector<CommandDescriptor> commands;
        for (std::size_t at = 4; at < all->data.size(); at += timeouts ? 20 : 8) {
            auto rest = ConstBuffer(all->data).subspan(at);
            commands.push_back(*decode<CommandDescriptor>(rest));
            EXPECT_EQ(commands.back().has_timeouts, timeouts);
            EXPECT_TRUE(!timeouts || decode<CommandTimeouts>(rest.subspan(8)));
        }
        return commands;
    }
};

TEST_F(Reporting, TellsAllCommandsAndEachOne) {
    set_up({.long_commands = true});
    const auto commands = list();
    EXPECT_GT(commands.size(), 70u);
    EXPECT_EQ(list(true).size(), commands.size());
    for (const auto& one : commands) {
        SCOPED_TRACE(static_cast<int>(one.operation));
        const bool with_action = one.has_service_action;
        auto plain = ask(ReportingOptions::one_operation, one.operation, one.service_action);
        auto actions = ask(ReportingOptions::one_service_action, one.operation, one.service_action);
        EXPECT_EQ(plain->code(), with_action ? 0x52400u : 0u);
        EXPECT_EQ(actions->code(), with_action ? 0u : 0x52400u);
        const auto& told = with_action ? actions->data : plain->data;
        const auto header = *decode<OneCommandHeader>(told);
        EXPECT_EQ(header.support, CommandSupport::as_standardized);
        EXPECT_EQ(header.command_block_length, one.command_block_length);
        ASSERT_EQ(told.size(), 4u + one.command_block_length);
        EXPECT_EQ(static_cast<ScsiOperation>(told[4]), one.operation);
        EXPECT_EQ(
            ask(ReportingOptions::one_of_either_kind, one.operation, one.service_action)->data,
            told);
    }
}

TEST_F(Reporting, TellsOfFlagsOnlyIfTheyAreHonoured) {
    for (bool honoured : {true, false}) {
        set_up({.cache_control = honoured});
        for (auto operation :
             {ScsiOperation::read_10, ScsiOperation::write_16, ScsiOperation::compare_and_write,
              ScsiOperation::or_write_16, ScsiOperation::write_atomic_16}) {
            auto told = ask(ReportingOptions::one_operation, operation);
            EXPECT_EQ(std::to_integer<int>(told->data[5]) & 0x18, honoured ? 0x18 : 0);
        }
        auto verify = ask(ReportingOptions::one_operation, ScsiOperation::verify_10);
        EXPECT_EQ(std::to_integer<int>(verify->data[5]) & 0x10, honoured ? 0x10 : 0);
        auto same = ask(ReportingOptions::one_operation, ScsiOperation::write_same_10);
        EXPECT_EQ(std::to_integer<int>(same->data[5]), 0x08) << "that is UNMAP's place there";
        tear_down();
    }
}

TEST_F(Reporting, SaysWhatIsNotSupported) {
    set_up({.thin = false});
    auto unknown = ask(ReportingOptions::one_operation, ScsiOperation{0xc1});
    ASSERT_TRUE(unknown->good());
    EXPECT_EQ(decode<OneCommandHeader>(unknown->data)->support, CommandSupport::not_supported);
    auto unmap = ask(ReportingOptions::one_operation, ScsiOperation::unmap);
    EXPECT_EQ(decode<OneCommandHeader>(unmap->data)->support, CommandSupport::not_supported);
    for (const auto& one : list()) EXPECT_NE(one.operation, ScsiOperation::unmap);
    EXPECT_EQ(ask(ReportingOptions{7})->code(), 0x52400u);
}

TEST_F(Reporting, KnowsItsTaskManagement) {
    set_up();
    auto told = run(ReportSupportedTaskManagementFunctions{.allocation_length = 64});
    ASSERT_EQ(told->data.size(), 4u);
    EXPECT_TRUE(decode<SupportedTaskManagementFunctions>(told->data)->logical_unit_reset);
    auto extended =
        run(ReportSupportedTaskManagementFunctions{.extended = true, .allocation_length = 64});
    ASSERT_EQ(extended->data.size(), 16u);
    EXPECT_EQ(extended->data[3], std::byte{12});
    EXPECT_EQ(run(ReportSupportedTaskManagementFunctions{.allocation_length = 3})->code(),
              0x52400u);
}

TEST_F(Reporting, CountsTimeFromWhatItWasSetTo) {
    set_up();
    pass_time(std::chrono::milliseconds(1500));
    auto told = run(ReportTimestamp{.allocation_length = 64});
    EXPECT_EQ(*decode<TimestampReport>(told->data),
              (TimestampReport{TimestampOrigin::power_on, 1500}));
    auto setting = encoded(TimestampSetting{0x19e0000});
    EXPECT_TRUE(
        run(SetTimestamp{.parameter_length = 12}, test::OctetVector(setting.begin(), setting.end()))
            ->good());
    pass_time(std::chrono::milliseconds(7));
    EXPECT_EQ(*decode<TimestampReport>(run(ReportTimestamp{.allocation_length = 64})->data),
              (TimestampReport{TimestampOrigin::set_by_command, 0x19e0007}));
    EXPECT_EQ(run(SetTimestamp{.parameter_length = 11}, filled(11, 0))->code(), 0x51a00u);
}

}  // namespace
}  // namespace weft::scsi
