// SPDX-License-Identifier: Apache-2.0
#include "block/admission.hpp"

#include <gtest/gtest.h>

#include "support/test_request.hpp"

namespace weft::block {
namespace {

using test::TestRequest;

constexpr BlockOperation every_operation[] = {
    BlockOperation::read,  BlockOperation::write,        BlockOperation::flush,
    BlockOperation::trim,  BlockOperation::write_zeroes, BlockOperation::prefetch,
    BlockOperation::status};

class AdmissionTest : public testing::Test {
protected:
    std::optional<Code> refusal(BlockOperation operation, std::uint64_t offset,
                                std::uint64_t length) const {
        TestRequest request;
        request.operation = operation;
        request.offset = offset;
        request.length = length;
        auto refused = refusal_of(request, traits);
        return refused ? std::optional(refused->code) : std::nullopt;
    }

    BlockTraits traits{.size = 1 << 20,
                       .minimum_block = 512,
                       .maximum_transfer = 64 << 10,
                       .can_trim = true,
                       .can_write_zeroes = true,
                       .can_report_status = true};
};

TEST_F(AdmissionTest, LetsInWhatTheDeviceCanDo) {
    for (auto operation : every_operation) {
        EXPECT_EQ(refusal(operation, 0, 0), std::nullopt);
        EXPECT_EQ(refusal(operation, 512, 64 << 10), std::nullopt);
        EXPECT_EQ(refusal(operation, (1 << 20) - 512, 512), std::nullopt);
    }
}

TEST_F(AdmissionTest, AsksNoRangeOfAFlush) {
    EXPECT_EQ(refusal(BlockOperation::flush, ~0ull, 7), std::nullopt);
}

TEST_F(AdmissionTest, RefusesWhatLiesOutside) {
    for (auto operation : every_operation) {
        if (operation == BlockOperation::flush) continue;
        EXPECT_EQ(refusal(operation, 1 << 20, 512), Code::out_of_range);
        EXPECT_EQ(refusal(operation, ~511ull, 1024), Code::out_of_range) << "the sum wraps";
        EXPECT_EQ(refusal(operation, 512, 1), Code::malformed);
        EXPECT_EQ(refusal(operation, 1, 512), Code::malformed);
    }
}

TEST_F(AdmissionTest, BoundsOnlyWhatMovesBytes) {
    for (auto operation : every_operation)
        EXPECT_EQ(refusal(operation, 0, 128 << 10),
                  moves_data(operation) ? std::optional(Code::out_of_range) : std::nullopt);
}

TEST_F(AdmissionTest, RefusesEveryChangeOfWhatIsReadOnly) {
    traits.read_only = true;
    traits.can_trim = traits.can_write_zeroes = false;
    for (auto operation : every_operation)
        EXPECT_EQ(refusal(operation, 0, 512),
                  changes_data(operation) ? std::optional(Code::access_denied) : std::nullopt);
    EXPECT_EQ(refusal(BlockOperation::write, 1, ~0ull), Code::access_denied);
}

TEST_F(AdmissionTest, RefusesWhatTheDeviceCannotDo) {
    traits.can_trim = traits.can_write_zeroes = traits.can_report_status = false;
    for (auto operation :
         {BlockOperation::trim, BlockOperation::write_zeroes, BlockOperation::status})
        EXPECT_EQ(refusal(operation, 0, 512), Code::unsupported);
    traits.can_flush = traits.can_write_durably = false;
    EXPECT_EQ(refusal(BlockOperation::flush, 0, 0), std::nullopt) << "there is nothing to flush";
}

TEST_F(AdmissionTest, KnowsAScatterListThatDoesNotFit) {
    TestRequest request(BlockOperation::read, 0, 512);
    EXPECT_TRUE(memory_fits(request));
    request.length = 1024;
    EXPECT_FALSE(memory_fits(request));
    request.operation = BlockOperation::trim;
    EXPECT_TRUE(memory_fits(request));
}

}  // namespace
}  // namespace weft::block
