// SPDX-License-Identifier: Apache-2.0
// Plans carried out by an array in memory, against a shadow: whatever is lost, however the blocks
// come together and whichever way they go, the host reads what was written, and every disk that is
// there holds what the code says.
#include "raid/plan.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "support/raid_array.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using test::RaidArray;

struct Shape {
    Level level;
    std::uint8_t boxes;
    std::uint32_t chunk;
};

std::vector<Shape> shapes() {
    return {{Level::raid5, 3, 8192},  {Level::raid5, 5, 16384}, {Level::raid5, 8, 4096},
            {Level::raid6, 4, 8192},  {Level::raid6, 6, 16384}, {Level::raid6, 18, 4096},
            {Level::mirror, 2, 8192}, {Level::mirror, 3, 4096}, {Level::mirror, 4, 16384}};
}

std::vector<PlanOptions> all_options() {
    std::vector<PlanOptions> list;
    for (auto topology : {Topology::star, Topology::binary_tree})
        for (auto style : {Style::vectored, Style::paper})
            for (auto partial :
                 {PartialWrite::modify, PartialWrite::reconstruct, PartialWrite::fewest_disk_reads})
                list.push_back({.path = DataPath::third_party,
                                .topology = topology,
                                .style = style,
                                .partial = partial,
                                .ending = Ending::two_phase});
    for (auto partial : {PartialWrite::modify, PartialWrite::reconstruct})
        for (auto ending : {Ending::two_phase, Ending::at_once})
            list.push_back({.path = DataPath::in_band,
                            .topology = Topology::star,
                            .style = Style::vectored,
                            .partial = partial,
                            .ending = ending});
    for (auto path : {DataPath::third_party, DataPath::in_band})
        for (auto topology : {Topology::star, Topology::binary_tree})
            for (auto partial : {PartialWrite::modify, PartialWrite::reconstruct})
                for (auto preparing : {Preparing::with_last, Preparing::beside_others})
                    list.push_back({.path = path,
                                    .topology = topology,
                                    .style = Style::vectored,
                                    .partial = partial,
                                    .ending = Ending::two_phase,
                                    .journal = true,
                                    .preparing = preparing});
    return list;
}

Range draw_range(RaidArray& array) {
    const std::uint64_t slices = array.capacity() / slice_size;
    const std::uint64_t first = array.below(slices);
    const std::uint64_t most = std::min(slices - first, limits::request_bytes / slice_size);
    // Half of them short: what is partial is the harder half.
    const std::uint64_t count = 1 + array.below(array.below(2) ? most : std::min(most, 3ul));
    return {first * slice_size, count * slice_size};
}

/// Loses as many boxes as the code can do without, or fewer; some are rebuilt half-way.
Health draw_health(RaidArray& array, const Layout& layout) {
    Health health;
    const auto count = array.below(layout.spare_columns() + 1u);
    while (std::popcount(health.absent_at(~0ull)) < static_cast<int>(count)) {
        const auto box = static_cast<std::uint8_t>(array.below(layout.boxes()));
        health.lose(BoxIndex{box}, array.below(2) ? array.below(array.stripes()) : 0);
    }
    return health;
}

void expect_counted(const RaidArray& array, const Plan& plan, bool request) {
    auto said = request ? tally_of_request(plan) : tally_of_upkeep(plan);
    auto seen = array.seen();
    if (request) ++seen.host.operations, ++seen.controller.operations;
    EXPECT_EQ(said.host, seen.host);
    EXPECT_EQ(said.controller, seen.controller);
    EXPECT_EQ(said.boxes, seen.boxes);
    EXPECT_EQ(said.wire_octets, seen.wire_octets);
}

void write(RaidArray& array, const Layout& layout, const Health& health, Range range,
           const PlanOptions& options) {
    auto plan = plan_write(layout, health, range, options);
    ASSERT_TRUE(plan);
    array.draw(range);
    array.carry_out(*plan);
    expect_counted(array, *plan, true);
    const auto preparations = array.preparations();
    EXPECT_TRUE(preparations_agree(layout, array.counted())) << to_text(*plan);
    EXPECT_EQ(preparations.size(),
              options.journal ? static_cast<std::size_t>(std::popcount(plan->participants)) : 0u);
    // The host sends once, whatever the state; only the paper's mirror fetches every copy from it.
    const bool fans_out = layout.level() == Level::mirror && options.style == Style::paper;
    if (!fans_out) {
        EXPECT_EQ(array.seen().host.octets, range.length);
    }
    if (options.path == DataPath::third_party) {
        EXPECT_EQ(array.seen().controller.octets, 0u);
    }
}

void read(RaidArray& array, const Layout& layout, const Health& health, Range range,
          const PlanOptions& options) {
    auto plan = plan_read(layout, health, range, options);
    ASSERT_TRUE(plan);
    array.expect_to_read(range);
    array.carry_out(*plan);
    expect_counted(array, *plan, true);
    EXPECT_EQ(array.seen().host.octets, range.length);
    ASSERT_TRUE(array.host_has(range)) << to_text(*plan);
}

/// Boxes a plan may not speak of: those absent at every stripe it touches.
void expect_no_word_to(const Plan& plan, Mask absent) {
    for (const auto& order : plan.orders)
        for (const auto& piece : order.pieces) {
            ASSERT_FALSE(order.to.kind == PartyKind::box && contains(absent, number(order.to.box)));
            ASSERT_FALSE(piece.peer.kind == PartyKind::box &&
                         contains(absent, number(piece.peer.box)));
        }
}

TEST(Plan, KeepsDataAndParityRightInEveryState) {
    test::for_each_seed(60, [](std::uint64_t seed) {
        auto list = shapes();
        const auto shape = list[seed % list.size()];
        auto layout = *Layout::make(shape.level, shape.boxes, shape.chunk);
        RaidArray array(layout, 7, seed);
        Health whole;
        for (int i = 0; i < 6; ++i)
            write(array, layout, whole, draw_range(array), all_options()[0]);
        array.expect_disks_right(0);
        for (const auto& options : all_options()) {
            SCOPED_TRACE("path " + std::to_string(int(options.path)) + ", topology " +
                         std::to_string(int(options.topology)) + ", style " +
                         std::to_string(int(options.style)) + ", partial " +
                         std::to_string(int(options.partial)));
            Health health = draw_health(array, layout);
            for (std::uint8_t box = 0; box < layout.boxes(); ++box)
                if (health.absent_at(0) >> box & 1) array.wipe(box);
            for (int i = 0; i < 3; ++i) {
                auto range = draw_range(array);
                write(array, layout, health, range, options);
                read(array, layout, health, range, options);
                read(array, layout, health, draw_range(array), options);
            }
            // What was not rebuilt is rebuilt now, run by run, and then all must be right.
            for (std::uint64_t stripe = 0; stripe < array.stripes(); ++stripe) {
                const Mask absent = health.absent_at(stripe);
                if (absent == 0) continue;
                for (std::uint32_t at = 0; at < layout.chunk_bytes(); at += 4096) {
                    auto plan = plan_rebuild(layout, health, absent, {stripe, at, 4096}, options);
                    ASSERT_TRUE(plan);
                    array.carry_out(*plan);
                    expect_counted(array, *plan, false);
                    EXPECT_EQ(array.seen().host.octets, 0u);
                }
            }
            array.expect_disks_right(0);
            if (testing::Test::HasFailure()) return;
        }
    });
}

/// A row may be at odds at rest. What says nothing of that must be made all the same: a scrub,
/// which sorts it out, waits for it.
TEST(Plan, MakesDiagonalsAnewWhateverTheirRowAddsUpTo) {
    const auto layout = *Layout::make(Level::raid6, 5, 4096);
    const auto box = number(layout.box_of(0, layout.diagonal_parity()));
    Health health;
    health.lose(BoxIndex{box});
    const auto plan = plan_rebuild(layout, health, only(box), {0, 0, 4096}, {.journal = true});
    ASSERT_TRUE(plan);
    for (const Order& order : plan->orders)
        for (const Piece& piece : order.pieces) EXPECT_NE(piece.verb, Verb::digest);
}

TEST(Plan, RebuildsOneOfTwoLostBoxesWhileTheOtherIsAway) {
    for (auto path : {DataPath::third_party, DataPath::in_band}) {
        auto layout = *Layout::make(Level::raid6, 6, 4096);
        RaidArray array(layout, 12, 1);
        PlanOptions options{.path = path};
        write(array, layout, {}, {0, array.capacity()}, options);
        for (std::uint8_t a = 0; a < 6; ++a) {
            for (std::uint8_t b = 0; b < 6; ++b) {
                if (a == b) continue;
                Health health;
                health.lose(BoxIndex{a}), health.lose(BoxIndex{b});
                array.wipe(a);
                for (std::uint64_t stripe = 0; stripe < 12; ++stripe) {
                    auto plan = plan_rebuild(layout, health, only(a), {stripe, 0, 4096}, options);
                    ASSERT_TRUE(plan);
                    expect_no_word_to(*plan, only(b));
                    array.carry_out(*plan);
                }
                array.expect_disks_right(0);
            }
        }
    }
}

TEST(Plan, SpeaksToNoBoxThatIsAbsent) {
    for (const auto& shape : shapes()) {
        auto layout = *Layout::make(shape.level, shape.boxes, shape.chunk);
        RaidArray array(layout, 7, 3);
        for (const auto& options : all_options()) {
            for (int i = 0; i < 10; ++i) {
                Health health;
                health.lose(BoxIndex{static_cast<std::uint8_t>(array.below(shape.boxes))});
                auto range = draw_range(array);
                expect_no_word_to(*plan_write(layout, health, range, options), health.absent_at(0));
                expect_no_word_to(*plan_read(layout, health, range, options), health.absent_at(0));
            }
        }
    }
}

TEST(Plan, ChangesNoDiskBeforeTheCommit) {
    for (const auto& shape : shapes()) {
        auto layout = *Layout::make(shape.level, shape.boxes, shape.chunk);
        RaidArray array(layout, 7, 5);
        for (const auto& options : all_options()) {
            if (options.ending == Ending::at_once) continue;
            for (int i = 0; i < 10; ++i) {
                auto plan =
                    *plan_write(layout, draw_health(array, layout), draw_range(array), options);
                Mask prepared = 0;
                for (const auto& order : plan.orders) {
                    if (order.prepares) prepared |= only(number(order.to.box));
                    for (const auto& piece : order.pieces) {
                        EXPECT_EQ(piece.verb == Verb::commit, order.phase == Phase::commit);
                        EXPECT_NE(piece.length, 0u);
                    }
                }
                EXPECT_EQ(prepared, plan.participants) << to_text(plan);
            }
        }
    }
}

TEST(Plan, SendsNoOrderMoreWithAJournal) {
    for (const auto& shape : shapes()) {
        auto layout = *Layout::make(shape.level, shape.boxes, shape.chunk);
        RaidArray array(layout, 7, 7);
        for (int i = 0; i < 20; ++i) {
            const Health health = draw_health(array, layout);
            const Range range = draw_range(array);
            const auto path = i % 2 ? DataPath::in_band : DataPath::third_party;
            const auto without = *plan_write(layout, health, range, {.path = path});
            const auto with = *plan_write(layout, health, range, {.path = path, .journal = true});
            ASSERT_EQ(with.orders.size(), without.orders.size());
            for (std::size_t n = 0; n < with.orders.size(); ++n) {
                EXPECT_EQ(with.orders[n].to, without.orders[n].to);
                EXPECT_EQ(with.orders[n].phase, without.orders[n].phase);
                EXPECT_EQ(with.orders[n].closes, without.orders[n].closes);
            }
            std::array<std::uint32_t, limits::boxes> prepared{};
            for (const auto& order : with.orders) {
                if (order.phase == Phase::commit) {
                    EXPECT_TRUE(order.pieces.empty()) << to_text(with);
                }
                for (const auto& piece : order.pieces)
                    if (piece.verb == Verb::prepare) prepared[number(order.to.box)] += piece.length;
            }
            EXPECT_EQ(with.to_prepare, prepared) << "what a box must have room for";
        }
    }
}

/// Nobody who will have to be waited for makes anything lasting in a turn of its own before them.
TEST(Plan, LetsDataBeMadeLastingWhileParityIsMade) {
    const PlanOptions beside{.journal = true, .preparing = Preparing::beside_others};
    auto turn_of = [](const Order& order) { return std::tuple(order.phase, order.round); };
    for (const auto& shape : shapes()) {
        auto layout = *Layout::make(shape.level, shape.boxes, shape.chunk);
        RaidArray array(layout, 7, 17);
        for (int i = 0; i < 20; ++i) {
            const Health health = draw_health(array, layout);
            const Range range = draw_range(array);
            const auto plan = *plan_write(layout, health, range, beside);
            const auto merged = *plan_write(layout, health, range, {.journal = true});
            EXPECT_EQ(plan.to_prepare, merged.to_prepare);
            EXPECT_TRUE(std::ranges::is_sorted(plan.orders, {}, turn_of)) << to_text(plan);
            const auto first_work = turn_of(plan.orders.front());
            const bool one_turn =
                turn_of(merged.orders.front()) ==
                turn_of(*std::ranges::find_if(
                    merged.orders.rbegin(), merged.orders.rend(),
                    [](const Order& order) { return order.phase != Phase::commit; }));
            std::size_t added = 0;
            for (const auto& order : plan.orders) {
                if (!order.prepares) continue;
                if (!one_turn) EXPECT_NE(turn_of(order), first_work) << to_text(plan);
                added += order.pieces.front().verb == Verb::prepare ? 1 : 0;
            }
            EXPECT_EQ(plan.orders.size(), merged.orders.size() + added) << to_text(plan);
        }
    }
}

TEST(Plan, LetsTheControllerSeeWhenOneHasPreparedSomethingElse) {
    for (const auto& shape : shapes()) {
        auto layout = *Layout::make(shape.level, shape.boxes, shape.chunk);
        for (int way = 0; way < 4; ++way) {
            RaidArray array(layout, 7, 13);
            for (int i = 0; i < 10; ++i) {
                const Range range = draw_range(array);
                const auto plan = *plan_write(
                    layout, {}, range,
                    {.path = way % 2 == 0 ? DataPath::third_party : DataPath::in_band,
                     .partial = way / 2 == 0 ? PartialWrite::modify : PartialWrite::reconstruct,
                     .journal = true});
                array.draw(range);
                array.carry_out(plan);
                ASSERT_TRUE(preparations_agree(layout, array.counted())) << to_text(plan);
                for (std::uint8_t box = 0; box < shape.boxes; ++box) {
                    if (!contains(plan.participants, box)) continue;
                    RaidArray damaged = array;
                    damaged.damages = only(box);
                    damaged.carry_out(plan);
                    EXPECT_FALSE(preparations_agree(layout, damaged.counted()))
                        << "box " << int{box} << "\n"
                        << to_text(plan);
                }
            }
        }
    }
}

TEST(Plan, GivesTheSameParityByStarTreeAndController) {
    std::vector<PlanOptions> ways{
        {}, {.topology = Topology::binary_tree}, {.path = DataPath::in_band}};
    for (const auto& shape : shapes()) {
        auto layout = *Layout::make(shape.level, shape.boxes, shape.chunk);
        std::vector<RaidArray> arrays(ways.size(), RaidArray(layout, 7, 11));
        for (int i = 0; i < 20; ++i) {
            for (std::size_t way = 0; way < ways.size(); ++way) {
                // The order in which boxes work is drawn too; what is written must not depend on
                // it.
                arrays[way].random().seed(static_cast<std::uint64_t>(i));
                auto range = draw_range(arrays[way]);
                write(arrays[way], layout, {}, range, ways[way]);
            }
        }
        for (std::size_t way = 0; way < ways.size(); ++way) {
            arrays[way].expect_disks_right(0);
            for (unsigned box = 0; box < layout.boxes(); ++box)
                EXPECT_EQ(arrays[way].disk(box), arrays[0].disk(box)) << "way " << way;
        }
    }
}

TEST(Plan, FindsByDigestsWhatIsWrongAndRepairsIt) {
    for (const auto& shape : shapes()) {
        auto layout = *Layout::make(shape.level, shape.boxes, shape.chunk);
        for (auto path : {DataPath::third_party, DataPath::in_band}) {
            PlanOptions options{.path = path};
            RaidArray array(layout, 6, 17);
            write(array, layout, {}, {0, array.capacity()}, options);
            for (std::uint8_t box = 0; box < shape.boxes; ++box) {
                StripeRun run{array.below(6), 0, layout.chunk_bytes()};
                auto scrub = *plan_scrub(layout, {}, run, options);
                array.carry_out(scrub);
                EXPECT_EQ(array.seen().wire_octets, 0u);
                ASSERT_EQ(array.digests().size(), layout.boxes());
                EXPECT_TRUE(digests_agree(layout, array.digests()));

                auto at = run.stripe * layout.chunk_bytes() + array.below(layout.chunk_bytes());
                array.disk(box).all()[at] ^= std::byte{0x10};
                array.carry_out(scrub);
                EXPECT_FALSE(digests_agree(layout, array.digests())) << int{box};
                const Column column = layout.column_of(run.stripe, BoxIndex{box});
                // Which of two is wrong no sum tells: data, and a mirror's first copy, are
                // believed.
                const bool believed = layout.level() == Level::mirror
                                          ? column == run.stripe % layout.boxes()
                                          : column < layout.data_columns();
                if (believed) {
                    array.disk(box).all()[at] ^= std::byte{0x10};
                    continue;
                }
                array.carry_out(*plan_repair(layout, {}, run, options));
                array.expect_disks_right(0);
            }
        }
    }
}

TEST(Plan, FlushesTheBoxesThatAreThere) {
    auto layout = *Layout::make(Level::raid5, 5, 8192);
    Health health;
    health.lose(BoxIndex{3});
    auto plan = *plan_flush(layout, health);
    EXPECT_EQ(plan.orders.size(), 4u);
    expect_no_word_to(plan, only(3));
    health.lose(BoxIndex{3}, 1);
    EXPECT_EQ(plan_flush(layout, health)->orders.size(), 5u) << "what is rebuilt is flushed too";

    auto durable = *plan_write(layout, {}, {0, 4096}, {});
    flush_after_commit(durable);
    for (const auto& order : durable.orders)
        EXPECT_EQ(order.pieces.back().verb == Verb::flush, order.phase == Phase::commit);
}

TEST(Plan, RefusesWhatItCannotPlan) {
    auto layout = *Layout::make(Level::raid5, 5, 8192);
    Health two;
    two.lose(BoxIndex{0}), two.lose(BoxIndex{3});
    EXPECT_EQ(plan_read(layout, two, {0, 4096}, {}).error().code, Code::io_failed);
    EXPECT_EQ(plan_write(layout, two, {0, 4096}, {}).error().code, Code::io_failed);
    EXPECT_EQ(plan_write(layout, {}, {0, 0}, {}).error().code, Code::malformed);
    EXPECT_EQ(plan_write(layout, {}, {512, 4096}, {}).error().code, Code::malformed);
    EXPECT_EQ(plan_read(layout, {}, {0, limits::request_bytes + 4096}, {}).error().code,
              Code::malformed);
    EXPECT_EQ(plan_rebuild(layout, {}, 1, {0, 0, 4096}, {}).error().code, Code::malformed);
    EXPECT_EQ(plan_scrub(layout, {}, {0, 4096, 8192}, {}).error().code, Code::malformed);
    Health one;
    one.lose(BoxIndex{1});
    EXPECT_EQ(plan_repair(layout, one, {0, 0, 4096}, {}).error().code, Code::io_failed);
}

}  // namespace
}  // namespace weft::raid
