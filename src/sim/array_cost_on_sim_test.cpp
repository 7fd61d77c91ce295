// SPDX-License-Identifier: Apache-2.0
// What a host's request costs on a whole cluster of the production objects, against what its plan
// says: the controller's counters exactly, and the host's wire as exactly as marks can be counted.
#include <gtest/gtest.h>

#include <bit>

#include "raid/tally.hpp"
#include "support/array_photos.hpp"

namespace weft::sim {
namespace {

using raid::DataPath;
using raid::Level;
using raid::Range;
using test::ArrayCase;
using test::in_band;
using test::Photos;
using test::star;
using test::tree;

constexpr auto block = Photos::block;
constexpr auto chunk = Photos::chunk;

struct Cost {
    std::uint64_t requests = 0;
    std::uint64_t orders = 0;          ///< as the volume counts them
    std::uint64_t commands = 0;        ///< the same, as they are handed to the boxes' sessions
    std::uint64_t payload_octets = 0;  ///< sent or received by the controller

    bool operator==(const Cost&) const = default;
    Cost operator-(const Cost& before) const {
        return {requests - before.requests, orders - before.orders, commands - before.commands,
                payload_octets - before.payload_octets};
    }
};
void PrintTo(const Cost& cost, std::ostream* out) {
    *out << cost.requests << " requests, " << cost.orders << " orders, " << cost.commands
         << " commands, " << cost.payload_octets << " octets by way of the controller";
}

bool goes_to_box(const raid::Order& order) {
    return order.to.kind == raid::PartyKind::box;
}

/// Boxes whose last order does not say that it is the last: each gets a command more.
std::uint64_t releases(const raid::Plan& plan) {
    raid::Mask open = 0;
    for (const auto& order : plan.orders) {
        if (!goes_to_box(order)) continue;
        const auto box = raid::only(number(order.to.box));
        open = order.closes ? open & ~box : open | box;
    }
    return static_cast<std::uint64_t>(std::popcount(open));
}

class ArrayCost : public testing::TestWithParam<ArrayCase> {
protected:
    raid::Plan plan_of(BlockOperation operation, Range range) const {
        const auto volume = photos.status().volume;
        const auto layout = *raid::layout_of(volume);
        const auto health = raid::health_of(volume);
        const raid::PlanOptions options{
            .path = GetParam().way.path,
            .topology = GetParam().way.topology,
            .journal = volume.consistency == wire::ArrayConsistency::journal,
            .preparing = raid::Preparing::beside_others};
        return operation == BlockOperation::read ? *plan_read(layout, health, range, options)
                                                 : *plan_write(layout, health, range, options);
    }
    /// The host cuts what is too long for one request.
    std::vector<raid::Plan> plans_of(BlockOperation operation, Range range) const {
        std::vector<raid::Plan> plans;
        while (range.length > 0) {
            const auto length = std::min<std::uint64_t>(range.length, raid::limits::request_bytes);
            plans.push_back(plan_of(operation, {range.offset, length}));
            range = {range.offset + length, range.length - length};
        }
        return plans;
    }
    Cost cost_of(const std::vector<raid::Plan>& plans) const {
        Cost cost;
        for (const auto& plan : plans) {
            const auto tally = tally_of_request(plan);
            const auto orders =
                static_cast<std::uint64_t>(std::ranges::count_if(plan.orders, goes_to_box));
            ++cost.requests;
            cost.orders += orders + releases(plan);
            cost.payload_octets += tally.controller.octets;
            // A controller out of the data's way sends its orders and the answer, and that is all.
            if (GetParam().way.path == DataPath::third_party) {
                EXPECT_EQ(tally.controller.operations, orders + 1);
            }
        }
        cost.commands = cost.orders;
        return cost;
    }
    Cost cost_so_far() const {
        const auto report = photos.array.controller->volumes().front();
        const auto& counters = report.status.counters;
        EXPECT_EQ(report.requests, counters.requests);
        return {counters.requests, counters.orders, report.orders, counters.payload_octets};
    }
    std::uint64_t marks_of_host() const { return photos.watch.of(Photos::host_machine).marks; }

    void expect_as_planned(BlockOperation operation, Range range) {
        SCOPED_TRACE((operation == BlockOperation::read ? "reading " : "writing ") +
                     std::to_string(range.length) + " at " + std::to_string(range.offset));
        const auto before = cost_so_far();
        const auto marks_before = marks_of_host();
        test::TestRequest request(operation, range.offset, range.length);
        if (operation == BlockOperation::write)
            std::ranges::copy(test::marked_octets(range.length), request.octets.begin());
        const auto outcome = photos.array.run(*photos.disk, request);
        ASSERT_TRUE(outcome && *outcome);
        photos.array.world.run_for(std::chrono::seconds(1));  // some is sent after the answer
        const auto plans = plans_of(operation, range);
        EXPECT_EQ(cost_so_far() - before, cost_of(plans));

        std::uint64_t host_octets = 0;
        for (const auto& plan : plans) host_octets += tally_of_request(plan).host.octets;
        EXPECT_EQ(host_octets, range.length);
        const auto seen = (marks_of_host() - marks_before) * test::payload_mark.size();
        EXPECT_LE(seen, host_octets);
        EXPECT_GE(seen, host_octets / 8 * 7) << "few marks are cut in two by what frames them";
    }
    void expect_all_as_planned() {
        for (const Range range :
             {Range{0, block}, Range{5 * block, 2 * block}, Range{chunk + block, chunk},
              Range{2 * chunk, 3 * chunk}, Range{0, 12 * chunk}, Range{7 * block, 29 * block},
              Range{24 * chunk, 24 * chunk}, Range{3 * chunk, 40 * chunk},
              Range{0, (1 << 20) + 6 * block}})
            for (const auto operation : {BlockOperation::write, BlockOperation::read})
                ASSERT_NO_FATAL_FAILURE(expect_as_planned(operation, range));
    }
    Photos photos{GetParam().level, GetParam().way};
};

TEST_P(ArrayCost, IsWhatThePlanOfEachRequestSays) {
    ASSERT_NO_FATAL_FAILURE(expect_all_as_planned());
    ASSERT_NO_FATAL_FAILURE(photos.lose_box("elm"));
    ASSERT_NO_FATAL_FAILURE(expect_all_as_planned());
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ArrayCost,
    testing::Values(ArrayCase{Level::raid5, star}, ArrayCase{Level::raid5, tree},
                    ArrayCase{Level::raid5, in_band}, ArrayCase{Level::raid6, star},
                    ArrayCase{Level::raid6, tree}, ArrayCase{Level::raid6, in_band},
                    ArrayCase{Level::mirror, star}, ArrayCase{Level::mirror, in_band}),
    test::name_of);

}  // namespace
}  // namespace weft::sim
