// SPDX-License-Identifier: Apache-2.0
// Tables I and II of the paper (Birk and Zilber, "The TPT-RAID Architecture for Box-Fault Tolerant
// Storage Systems"), cell by cell, counted while plans in the paper's style are carried out; and
// the blocks on the wire of every kind of request, as the design foresees them.
#include "raid/tally.hpp"

#include <gtest/gtest.h>

#include "support/raid_array.hpp"

namespace weft::raid {
namespace {

using test::RaidArray;

constexpr std::uint32_t block = 8192;

struct Cells {
    std::uint64_t host, controller, boxes, total;
    bool operator==(const Cells&) const = default;
};
void PrintTo(const Cells& cells, std::ostream* out) {
    *out << "host " << cells.host << ", controller " << cells.controller << ", boxes "
         << cells.boxes << ", total " << cells.total;
}

struct Counted {
    Cells blocks, operations;
};

Counted count(const Layout& layout, const Plan& plan, Range range) {
    RaidArray array(layout, 4, 1);
    array.draw(range);
    array.carry_out(plan);
    auto seen = array.seen();
    ++seen.host.operations;        // the host's command
    ++seen.controller.operations;  // and the response to it
    auto total = seen.total();
    return {{seen.host.octets / block, seen.controller.octets / block, seen.boxes.octets / block,
             total.octets / block},
            {seen.host.operations, seen.controller.operations, seen.boxes.operations,
             total.operations}};
}

const PlanOptions baseline{.path = DataPath::in_band,
                           .topology = Topology::star,
                           .style = Style::paper,
                           .partial = PartialWrite::modify,
                           .ending = Ending::at_once};
const PlanOptions third_party{.path = DataPath::third_party,
                              .topology = Topology::star,
                              .style = Style::paper,
                              .partial = PartialWrite::modify,
                              .ending = Ending::two_phase};

class PaperTables : public testing::TestWithParam<int> {
protected:
    std::uint64_t n = static_cast<std::uint64_t>(GetParam());
    Layout layout = *Layout::make(Level::raid5, static_cast<std::uint8_t>(n), block);
    Range single{block, block};
    Range stripe{0, layout.stripe_bytes()};

    Counted read(Range range, const PlanOptions& options) {
        return count(layout, *plan_read(layout, {}, range, options), range);
    }
    Counted write(Range range, const PlanOptions& options) {
        return count(layout, *plan_write(layout, {}, range, options), range);
    }
};

TEST_P(PaperTables, HoldForReadingABlock) {
    auto in_band = read(single, baseline), direct = read(single, third_party);
    EXPECT_EQ(in_band.blocks, (Cells{1, 2, 1, 4}));
    EXPECT_EQ(direct.blocks, (Cells{1, 0, 1, 2}));
    EXPECT_EQ(in_band.operations, (Cells{1, 3, 2, 6}));
    EXPECT_EQ(direct.operations, (Cells{1, 2, 2, 5}));
}

TEST_P(PaperTables, HoldForReadingAStripe) {
    auto in_band = read(stripe, baseline), direct = read(stripe, third_party);
    EXPECT_EQ(in_band.blocks, (Cells{n - 1, 2 * (n - 1), n - 1, 4 * (n - 1)}));
    EXPECT_EQ(direct.blocks, (Cells{n - 1, 0, n - 1, 2 * (n - 1)}));
    EXPECT_EQ(in_band.operations, (Cells{1, n + 1, 2 * (n - 1), 3 * n}));
    EXPECT_EQ(direct.operations, (Cells{1, n, 2 * (n - 1), 3 * n - 1}));
}

TEST_P(PaperTables, HoldForWritingABlock) {
    auto in_band = write(single, baseline), direct = write(single, third_party);
    EXPECT_EQ(in_band.blocks, (Cells{1, 5, 4, 10}));
    EXPECT_EQ(direct.blocks, (Cells{1, 0, 3, 4}));
    EXPECT_EQ(in_band.operations, (Cells{1, 6, 8, 15}));
    EXPECT_EQ(direct.operations, (Cells{1, 6, 7, 14}));
}

TEST_P(PaperTables, HoldForWritingAStripe) {
    auto in_band = write(stripe, baseline), direct = write(stripe, third_party);
    EXPECT_EQ(in_band.blocks, (Cells{n - 1, 2 * n - 1, n, 4 * n - 2}));
    EXPECT_EQ(direct.blocks, (Cells{n - 1, 0, 3 * (n - 1), 4 * (n - 1)}));
    EXPECT_EQ(in_band.operations, (Cells{1, n + 2, 2 * n, 3 * (n + 1)}));
    EXPECT_EQ(direct.operations, (Cells{1, 3 * n - 1, 5 * n - 4, 8 * n - 4}));
}

// Every box that takes part gets one order per phase, however large the request is.
TEST_P(PaperTables, ShrinkWithVectoredOrders) {
    PlanOptions vectored;
    EXPECT_EQ(write(single, vectored).operations,
              (Cells{1, 2 + 1 + 2 + 1, (1 + 1) + 1 + (1 + 1) + 2, 14}));
    auto all = write(stripe, vectored).operations;
    EXPECT_EQ(all.controller, (n - 1) + 1 + n + 1);
    Range two{0, 2 * layout.stripe_bytes()};
    EXPECT_EQ(write(two, vectored).operations.controller, n + 2 + n + 1);
    EXPECT_EQ(read(two, vectored).operations.controller, n + 1);
}

// Footnote 5: of several full stripes one box computes all parities and the others fetch theirs.
TEST_P(PaperTables, HaveOneCalculatorForAllFullStripes) {
    Range two{0, 2 * layout.stripe_bytes()};
    auto counted = write(two, third_party);
    const std::uint64_t commands = 2 * (n - 1) + (n - 1) + 1 + n;
    EXPECT_EQ(counted.operations.controller, commands + 1);
    EXPECT_EQ(counted.blocks.host, 2 * (n - 1));
    EXPECT_EQ(counted.blocks.boxes, 2 * (n - 1) + 2 * ((n - 1) + (n - 2) + 1));
}

INSTANTIATE_TEST_SUITE_P(Boxes, PaperTables, testing::Range(3, 18));

std::uint64_t wire_blocks(const Plan& plan) {
    return tally_of_upkeep(plan).wire_octets / block;
}

TEST(Tally, OfPartialWritesIsWhatTheWireModelSays) {
    for (std::uint8_t k = 2; k <= 16; ++k) {
        for (std::uint8_t m : std::array<std::uint8_t, 2>{1, 2}) {
            auto layout = *Layout::make(m == 1 ? Level::raid5 : Level::raid6,
                                        static_cast<std::uint8_t>(k + m), block);
            for (std::uint64_t w = 1; w < k; ++w) {
                Range range{0, w * block};
                auto plan = *plan_write(layout, {}, range, {});
                EXPECT_EQ(wire_blocks(plan), m == 1 ? 2 * w : 2 * w + 1)
                    << k << "+" << m << ", " << w;
                EXPECT_EQ(tally_of_upkeep(plan).disk_reads / block, w + m);
                auto anew = *plan_write(layout, {}, range, {.partial = PartialWrite::reconstruct});
                EXPECT_EQ(wire_blocks(anew), w + k + (m - 1u));
                EXPECT_EQ(tally_of_upkeep(anew).disk_reads / block, k - w);
                auto least =
                    *plan_write(layout, {}, range, {.partial = PartialWrite::fewest_disk_reads});
                EXPECT_EQ(tally_of_upkeep(least).disk_reads / block, std::min(w + m, k - w));
                auto in_band = *plan_write(layout, {}, range, {.path = DataPath::in_band});
                EXPECT_EQ(wire_blocks(in_band), 3 * w + 2 * m);
                EXPECT_EQ(tally_of_upkeep(in_band).controller.octets / block, 3 * w + 2 * m);
            }
        }
    }
}

TEST(Tally, OfFullStripesIsWhatTheWireModelSays) {
    for (std::uint8_t k = 2; k <= 16; ++k) {
        for (std::uint8_t m : std::array<std::uint8_t, 2>{1, 2}) {
            auto layout = *Layout::make(m == 1 ? Level::raid5 : Level::raid6,
                                        static_cast<std::uint8_t>(k + m), block);
            Range range{0, layout.stripe_bytes()};
            EXPECT_EQ(wire_blocks(*plan_write(layout, {}, range, {})), 2u * k + m - 1);
            EXPECT_EQ(wire_blocks(*plan_write(layout, {}, range, {.path = DataPath::in_band})),
                      2u * k + m);
            if (m == 1) {
                PlanOptions tree{.topology = Topology::binary_tree};
                EXPECT_EQ(wire_blocks(*plan_write(layout, {}, range, tree)), 2u * k);
            }
        }
    }
}

TEST(Tally, OfDegradedReadsAndRebuildingIsWhatTheWireModelSays) {
    for (std::uint8_t k = 2; k <= 16; ++k) {
        for (std::uint8_t m : std::array<std::uint8_t, 2>{1, 2}) {
            auto layout = *Layout::make(m == 1 ? Level::raid5 : Level::raid6,
                                        static_cast<std::uint8_t>(k + m), block);
            Health health;
            health.lose(layout.box_of(0, 1));
            PlanOptions in_band{.path = DataPath::in_band};
            EXPECT_EQ(wire_blocks(*plan_read(layout, health, {block, block}, {})), k);
            EXPECT_EQ(wire_blocks(*plan_read(layout, health, {block, block}, in_band)), k + 1u);
            auto lost = health.absent_at(0);
            StripeRun run{0, 0, block};
            EXPECT_EQ(wire_blocks(*plan_rebuild(layout, health, lost, run, {})), k);
            EXPECT_EQ(wire_blocks(*plan_rebuild(layout, health, lost, run, in_band)), k + 1u);
            if (m == 1) continue;
            health.lose(layout.box_of(0, 0));
            lost = health.absent_at(0);
            EXPECT_EQ(wire_blocks(*plan_rebuild(layout, health, lost, run, {})), k + 1u);
            EXPECT_EQ(wire_blocks(*plan_rebuild(layout, health, lost, run, in_band)), k + 2u);
        }
    }
}

TEST(Tally, OfMirrorsIsOneTransferPerCopy) {
    for (std::uint8_t copies = 2; copies <= 4; ++copies) {
        auto layout = *Layout::make(Level::mirror, copies, block);
        Range range{0, block};
        auto plan = *plan_write(layout, {}, range, {});
        EXPECT_EQ(wire_blocks(plan), copies);
        EXPECT_EQ(tally_of_request(plan).host.octets, block);
        EXPECT_EQ(wire_blocks(*plan_write(layout, {}, range, {.path = DataPath::in_band})),
                  copies + 1u);
    }
}

TEST(Tally, OfAScrubMovesNoBlocks) {
    auto layout = *Layout::make(Level::raid6, 6, block);
    auto plan = *plan_scrub(layout, {}, {0, 0, block}, {});
    EXPECT_EQ(wire_blocks(plan), 0u);
    EXPECT_EQ(tally_of_upkeep(plan).controller.operations, 6u);
}

// A tree takes as many rounds as the number of those who have something has binary digits.
TEST(Tally, OfATreeIsShallow) {
    for (std::uint8_t boxes = 3; boxes <= 17; ++boxes) {
        auto layout = *Layout::make(Level::raid5, boxes, block);
        auto plan = *plan_write(layout, {}, {0, layout.stripe_bytes()},
                                {.topology = Topology::binary_tree});
        int rounds = 0;
        for (const auto& order : plan.orders)
            if (order.phase == Phase::parity) rounds = std::max<int>(rounds, order.round);
        EXPECT_EQ(rounds, std::bit_width(boxes - 1u)) << int{boxes};
    }
}

}  // namespace
}  // namespace weft::raid
