// SPDX-License-Identifier: Apache-2.0
// Plans as people read them, kept in tests/golden/raid: what changes there is a change of protocol.
#include <gtest/gtest.h>

#include "raid/band_planner.hpp"
#include "raid/plan.hpp"
#include "raid/plan_builder.hpp"
#include "support/golden_text.hpp"

namespace weft::raid {
namespace {

constexpr std::uint32_t k = 1024;
constexpr std::uint32_t chunk = 64 * k;

Layout raid5() {
    return *Layout::make(Level::raid5, 5, chunk);
}
Layout raid6() {
    return *Layout::make(Level::raid6, 6, chunk);
}
Health without(std::initializer_list<std::uint8_t> boxes) {
    Health health;
    for (auto box : boxes) health.lose(BoxIndex{box});
    return health;
}

const PlanOptions paper{.style = Style::paper};
const PlanOptions tree{.topology = Topology::binary_tree};
const PlanOptions in_band{.path = DataPath::in_band};
const PlanOptions journal{.journal = true};
const PlanOptions beside{.journal = true, .preparing = Preparing::beside_others};
const PlanOptions baseline{.path = DataPath::in_band, .ending = Ending::at_once};

void expect(const char* name, const Result<Plan>& plan) {
    ASSERT_TRUE(plan) << name;
    test::expect_golden_text(std::string("raid/") + name + ".txt", to_text(*plan));
}

TEST(GoldenPlan, OfReads) {
    expect("read_block", plan_read(raid5(), {}, {68 * k, 4 * k}, {}));
    expect("read_two_stripes", plan_read(raid5(), {}, {128 * k, 256 * k}, {}));
    expect("read_stripe_paper", plan_read(raid5(), {}, {0, 256 * k}, paper));
    expect("read_stripe_baseline", plan_read(raid5(), {}, {0, 256 * k}, baseline));
    expect("read_lost_block", plan_read(raid5(), without({1}), {64 * k, 4 * k}, {}));
    expect("read_lost_block_tree", plan_read(raid5(), without({1}), {64 * k, 4 * k}, tree));
    expect("read_lost_stripe_raid6", plan_read(raid6(), without({0, 2}), {0, 256 * k}, {}));
    expect("read_lost_with_parity_raid6", plan_read(raid6(), without({0, 4}), {0, 4 * k}, {}));
}

TEST(GoldenPlan, OfWrites) {
    expect("write_block", plan_write(raid5(), {}, {0, 4 * k}, {}));
    expect("write_block_paper", plan_write(raid5(), {}, {0, 64 * k}, paper));
    expect("write_block_baseline", plan_write(raid5(), {}, {0, 64 * k}, baseline));
    expect("write_block_in_band", plan_write(raid5(), {}, {0, 64 * k}, in_band));
    expect("write_block_raid6", plan_write(raid6(), {}, {0, 4 * k}, {}));
    expect("write_three_blocks_raid6", plan_write(raid6(), {}, {0, 192 * k}, {}));
    expect("write_ragged", plan_write(raid5(), {}, {32 * k, 112 * k}, {}));
    expect("write_ragged_reconstruct",
           plan_write(raid5(), {}, {32 * k, 112 * k}, {.partial = PartialWrite::reconstruct}));
    expect("write_stripe", plan_write(raid5(), {}, {0, 256 * k}, {}));
    expect("write_stripe_paper", plan_write(raid5(), {}, {0, 256 * k}, paper));
    expect("write_stripe_tree", plan_write(raid5(), {}, {0, 256 * k}, tree));
    expect("write_stripe_baseline", plan_write(raid5(), {}, {0, 256 * k}, baseline));
    expect("write_stripe_raid6", plan_write(raid6(), {}, {0, 256 * k}, {}));
    expect("write_stripe_raid6_tree", plan_write(raid6(), {}, {0, 256 * k}, tree));
    expect("write_three_stripes", plan_write(raid5(), {}, {128 * k, 640 * k}, {}));
    expect("write_three_stripes_paper", plan_write(raid5(), {}, {128 * k, 640 * k}, paper));
    expect("write_mirror", plan_write(*Layout::make(Level::mirror, 3, chunk), {}, {0, 8 * k}, {}));
}

TEST(GoldenPlan, OfWritesWithBoxesLost) {
    expect("write_lost_block", plan_write(raid5(), without({0}), {0, 4 * k}, {}));
    expect("write_beside_lost_block", plan_write(raid5(), without({1}), {0, 4 * k}, {}));
    expect("write_parity_lost", plan_write(raid5(), without({4}), {0, 4 * k}, {}));
    expect("write_two_lost_raid6", plan_write(raid6(), without({0, 1}), {0, 4 * k}, {}));
    expect("write_lost_with_parity_raid6", plan_write(raid6(), without({0, 4}), {0, 4 * k}, {}));
}

TEST(GoldenPlan, OfWritesWithAJournal) {
    expect("journal_write_block", plan_write(raid5(), {}, {0, 4 * k}, journal));
    expect("journal_write_block_beside", plan_write(raid5(), {}, {0, 4 * k}, beside));
    expect("journal_write_stripe_raid6_beside", plan_write(raid6(), {}, {0, 256 * k}, beside));
    expect("journal_write_block_in_band",
           plan_write(raid5(), {}, {0, 4 * k}, {.path = DataPath::in_band, .journal = true}));
    expect("journal_write_block_raid6", plan_write(raid6(), {}, {0, 4 * k}, journal));
    expect("journal_write_stripe_raid6", plan_write(raid6(), {}, {0, 256 * k}, journal));
    expect("journal_write_ragged", plan_write(raid5(), {}, {32 * k, 112 * k}, journal));
    expect("journal_write_lost_block", plan_write(raid5(), without({0}), {0, 4 * k}, journal));
    expect("journal_write_mirror",
           plan_write(*Layout::make(Level::mirror, 3, chunk), {}, {0, 8 * k}, journal));
    expect("journal_rebuild",
           plan_rebuild(raid5(), without({2}), only(2), {1, 0, 64 * k}, journal));
}

TEST(GoldenPlan, OfUpkeep) {
    StripeRun run{1, 0, 64 * k};
    expect("rebuild", plan_rebuild(raid5(), without({2}), only(2), run, {}));
    expect("rebuild_tree", plan_rebuild(raid5(), without({2}), only(2), run, tree));
    expect("rebuild_two_raid6", plan_rebuild(raid6(), without({2, 3}), only(2) | only(3), run, {}));
    expect("rebuild_in_band", plan_rebuild(raid5(), without({2}), only(2), run, in_band));
    expect("scrub_raid6", plan_scrub(raid6(), {}, run, {}));
    expect("inquest", plan_inquest(raid5(), without({2}), {1, 8 * k, 4 * k}, journal));
    expect("repair_raid6", plan_repair(raid6(), {}, run, {}));
}

}  // namespace
}  // namespace weft::raid
