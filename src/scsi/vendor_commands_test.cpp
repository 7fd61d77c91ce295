// SPDX-License-Identifier: Apache-2.0
#include "scsi/vendor_commands.hpp"

#include "scsi/no_medium.hpp"
#include "support/scsi_bench.hpp"
#include "wire/scsi_array.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::BenchTask;
using test::filled;
using test::OctetVector;

/// Keeps calls until the test answers them.
class Keeper final : public VendorCommands {
public:
    void receive(VendorCall& call) override {
        calls.push_back(&call);
        const auto parameters = call.parameters();
        heard.emplace_back(parameters.begin(), parameters.end());
        senders.push_back(call.sender().name().initiator);
        if (at_once) answer(call, ScsiStatus::good, {}, {});
    }
    void forget(VendorCall& call) override {
        forgotten.push_back(&call);
        if (gives_up) answer(call, ScsiStatus::good, {}, {});
    }
    void answer(VendorCall& call, ScsiStatus status, const OctetVector& descriptors,
                const OctetVector& data) {
        std::erase(calls, &call);
        call.answer(status, descriptors, data);
    }

    std::vector<VendorCall*> calls, forgotten;
    std::vector<OctetVector> heard;
    std::vector<std::string> senders;
    bool at_once = false;
    bool gives_up = false;
};

ArrayCommandBlock order(std::size_t parameters) {
    return {.action = ArrayAction::meet_boxes,
            .transaction = TransactionNumber{7},
            .parameter_length = static_cast<std::uint32_t>(parameters)};
}

struct AVendorCommand : test::ScsiBench {
    AVendorCommand() { set_up(no_medium, {.vendor_commands = &keeper, .has_medium = false}); }
    ~AVendorCommand() override { tear_down(); }

    void begin(BenchTask& task, Nexus& nexus, OctetVector parameters) {
        task.to_send = std::move(parameters);
        execute(task, nexus, order(task.to_send.size()));
    }

    NoMedium no_medium;
    Keeper keeper;
};

TEST_F(AVendorCommand, BringsItsParametersAndAnswersWithDescriptorsThoughAllWentWell) {
    BenchTask task;
    task.accepted_in = 100;
    begin(task, *first, filled(40, 'p'));
    ASSERT_EQ(keeper.calls.size(), 1u);
    EXPECT_EQ(keeper.heard[0], filled(40, 'p'));
    EXPECT_EQ(keeper.senders[0], first->name().initiator);
    auto block = decode<ArrayCommandBlock>(keeper.calls[0]->command_block());
    ASSERT_TRUE(block);
    EXPECT_EQ(*block, order(40));
    EXPECT_EQ(keeper.calls[0]->room_in(), 100u);
    EXPECT_FALSE(task.done());

    const auto answer = encoded(ArrayAnswer{.piece = 3});
    keeper.answer(*keeper.calls[0], ScsiStatus::good, {answer.begin(), answer.end()},
                  filled(60, 'd'));
    EXPECT_TRUE(task.good());
    EXPECT_EQ(task.data, filled(60, 'd'));
    EXPECT_EQ(task.heard.length_out, 40u);
    EXPECT_EQ(task.heard.length_in, 60u);
    const ConstBuffer sense(task.heard.sense.data(), task.heard.sense.size());
    ASSERT_EQ(sense.size(), 8u + answer.size());
    auto header = decode<DescriptorSense>(sense);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->key, SenseKey::no_sense);
    EXPECT_EQ(header->additional_length, answer.size());
    auto told = decode<ArrayAnswer>(sense.subspan(8));
    ASSERT_TRUE(told);
    EXPECT_EQ(told->piece, 3);
}

TEST_F(AVendorCommand, IsRefusedUnderTheVendorsKey) {
    BenchTask task;
    begin(task, *first, filled(8, 'p'));
    auto descriptor = filled(10, 8);  // of which eight octets follow type and length
    descriptor[0] = std::byte{0x80};
    keeper.answer(*keeper.calls[0], ScsiStatus::check_condition, descriptor, {});
    EXPECT_EQ(task.heard.status, ScsiStatus::check_condition);
    EXPECT_EQ(task.sense().key, SenseKey::vendor_specific);
}

TEST_F(AVendorCommand, NeverAnswersMoreThanIsAskedForAndSaysHowMuchThereWas) {
    BenchTask task;
    task.accepted_in = 10;
    begin(task, *first, {});
    keeper.answer(*keeper.calls[0], ScsiStatus::good, filled(500, 'x'), filled(60, 'd'));
    EXPECT_EQ(task.data, filled(10, 'd'));
    EXPECT_EQ(task.heard.length_in, 60u);
    auto header = decode<DescriptorSense>({task.heard.sense.data(), task.heard.sense.size()});
    ASSERT_TRUE(header);
    EXPECT_TRUE(header->sense_data_overflow) << "what was cut off must not look whole";
    EXPECT_EQ(task.heard.sense.size(), sense_max);
}

TEST_F(AVendorCommand, ShowsWhatCameIfThatIsLessThanItSays) {
    BenchTask task;
    task.to_send = filled(5, 'p');
    execute(task, *first, order(8));
    EXPECT_EQ(keeper.heard[0], filled(5, 'p'));
    keeper.answer(*keeper.calls[0], ScsiStatus::good, {}, {});
    EXPECT_TRUE(task.good());
    EXPECT_TRUE(task.heard.sense.empty()) << "of nothing to say nothing is said";
}

TEST_F(AVendorCommand, OfTooManyParametersIsRefused) {
    auto task = run(order(vendor_bytes_max + 1));
    EXPECT_EQ(task->code(), 0x51a00u);
    EXPECT_TRUE(keeper.heard.empty());
}

TEST_F(AVendorCommand, IsHandedOverInItsTurnThoughItsParametersComeEarly) {
    BenchTask slow, quick, quicker, stranger;
    slow.holds_data = true;
    begin(slow, *first, filled(4, '1'));
    begin(quick, *first, filled(4, '2'));
    begin(quicker, *first, {});
    begin(stranger, *second, filled(4, 's'));
    ASSERT_EQ(keeper.heard.size(), 1u) << "another's wait for nobody but their own";
    EXPECT_EQ(keeper.heard[0], filled(4, 's'));
    slow.bring_data();
    ASSERT_EQ(keeper.heard.size(), 4u);
    EXPECT_EQ(keeper.heard[1], filled(4, '1'));
    EXPECT_EQ(keeper.heard[2], filled(4, '2'));
    EXPECT_EQ(keeper.heard[3], OctetVector{});
    while (!keeper.calls.empty()) keeper.answer(*keeper.calls.back(), ScsiStatus::good, {}, {});
    for (auto* task : {&slow, &quick, &quicker, &stranger}) EXPECT_TRUE(task->good());
}

TEST_F(AVendorCommand, LetsOthersPassWhenItsParametersNeverCome) {
    keeper.at_once = true;
    BenchTask lost, aborted, last;
    lost.holds_data = aborted.holds_data = true;
    begin(lost, *first, filled(4, '1'));
    begin(aborted, *first, filled(4, '2'));
    begin(last, *first, filled(4, '3'));
    lost.data_failed(SenseKey::aborted_command, AdditionalSense::protocol_service_crc_error);
    EXPECT_EQ(lost.heard.status, ScsiStatus::check_condition);
    EXPECT_TRUE(keeper.heard.empty());
    target->abort(aborted);
    aborted.bring_data();
    EXPECT_EQ(aborted.heard.end, TaskEnd::aborted);
    ASSERT_EQ(keeper.heard.size(), 1u);
    EXPECT_EQ(keeper.heard[0], filled(4, '3'));
    EXPECT_TRUE(last.good());
}

TEST_F(AVendorCommand, ThatWaitsForItsTurnCanBeAborted) {
    BenchTask slow, waits;
    slow.holds_data = true;
    begin(slow, *first, filled(4, '1'));
    begin(waits, *first, filled(4, '2'));
    target->abort(waits);
    EXPECT_EQ(waits.heard.end, TaskEnd::aborted);
    slow.bring_data();
    ASSERT_EQ(keeper.calls.size(), 1u);
    keeper.answer(*keeper.calls[0], ScsiStatus::good, {}, {});
    EXPECT_TRUE(slow.good());
}

TEST_F(AVendorCommand, ThatIsAbortedEndsWhenItsWorkHas) {
    BenchTask task;
    begin(task, *first, filled(4, 'p'));
    target->abort(task);
    ASSERT_EQ(keeper.forgotten.size(), 1u);
    EXPECT_FALSE(task.done());
    keeper.answer(*keeper.calls[0], ScsiStatus::good, {}, filled(10, 'd'));
    EXPECT_TRUE(task.done());
    EXPECT_EQ(task.heard.end, TaskEnd::aborted);
    EXPECT_TRUE(task.data.empty());
}

TEST_F(AVendorCommand, ThatIsForgottenMayBeGivenUpAtOnce) {
    keeper.gives_up = true;
    BenchTask one, two;
    begin(one, *first, filled(4, '1'));
    begin(two, *first, filled(4, '2'));
    bool gone = false;
    std::erase(joined, first);
    target->leave(*first, [&] { gone = true; });
    EXPECT_TRUE(gone) << "whoever comes back under the same name waits for this";
    EXPECT_EQ(keeper.forgotten.size(), 2u);
    EXPECT_EQ(two.heard.end, TaskEnd::aborted);
}

TEST_F(AVendorCommand, RunsInSpiteOfAttentions) {
    keeper.at_once = true;
    target->find(0)->tell(*first, AdditionalSense::mode_parameters_changed);
    EXPECT_TRUE(run(order(0))->good()) << "a plan must not lose an order to news";
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x62a01u);
}

TEST_F(AVendorCommand, IsUnknownToADisk) {
    set_up();
    EXPECT_EQ(run(order(0))->code(), 0x52000u);
}

TEST_F(AVendorCommand, GoesToADiskThatHasBoth) {
    keeper.at_once = true;
    set_up({.vendor_commands = &keeper});
    EXPECT_TRUE(run(order(0))->good());
    EXPECT_TRUE(run(Read10{.block_address = 0, .block_count = 1})->good());
    tear_down();
}

TEST_F(AVendorCommand, HasAUnitThatIsNoDisk) {
    EXPECT_TRUE(run(TestUnitReady{})->good());
    EXPECT_EQ(run(Read10{.block_address = 0, .block_count = 1})->code(), 0x52000u);
    EXPECT_EQ(run(ReadCapacity10{})->code(), 0x52000u);
    auto said = run(Inquiry{.allocation_length = 255});
    ASSERT_TRUE(said->good());
    EXPECT_EQ(decode<StandardInquiryData>(said->data)->type,
              PeripheralType::storage_array_controller);
    auto limits =
        run(Inquiry{.vital_product_data = true, .page_code = 0xb0, .allocation_length = 255});
    EXPECT_EQ(limits->code(), 0x52400u) << "limits of blocks are for those that have some";
    EXPECT_TRUE(run(ReportLuns{.allocation_length = 64})->good());
}

}  // namespace
}  // namespace weft::scsi
