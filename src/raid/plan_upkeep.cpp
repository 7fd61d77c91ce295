// SPDX-License-Identifier: Apache-2.0
// Rebuilding, scrubbing, repairing and flushing: box to box, without host or controller in the
// data's way.
#include "raid/plan_common.hpp"

namespace weft::raid {
namespace {

Band band_of(StripeRun run) {
    return {.stripe = run.stripe, .offset = run.offset, .length = run.length};
}

Result<void> check(const Layout& layout, const Health& health, StripeRun run) {
    if (auto fit = check_run(layout, run); !fit) return fit;
    return check_losses(layout, health, run.stripe);
}

Mask columns_of(const Layout& layout, std::uint64_t stripe, Mask boxes) {
    Mask columns = 0;
    for (std::uint8_t box = 0; box < layout.boxes(); ++box)
        if (contains(boxes, box)) columns |= only(layout.column_of(stripe, BoxIndex{box}));
    return columns;
}

/// How a column counts in the sums of a scrub: data in both, each parity in its own.
Piece digest_piece(const Layout& layout, Column column) {
    if (!layout.has_diagonal() || column == layout.row_parity())
        return {.verb = Verb::digest, .blend = Blend::copy};
    if (column == layout.diagonal_parity()) return {.verb = Verb::digest, .blend = Blend::add};
    return {.verb = Verb::digest, .blend = Blend::add_diagonal, .column = column};
}

/// The column just found goes to the box it belongs to, and is written there.
void bring_home(BandPlanner& planner, const Held& block, std::uint8_t round) {
    const Party box = planner.box(block.column);
    std::uint32_t from = block.slot;
    if (block.holder != box) {
        from = planner.slot(box);
        planner.fetch({Phase::parity, round}, box,
                      planner.block(Command::read_parity_part_block, block.column), Blend::copy,
                      block, from);
    }
    planner.commit(box, {Command::write_new_data, block.column}, from);
}

void rebuild(BandPlanner& planner, Mask wanted) {
    const auto first = static_cast<Column>(std::countr_zero(wanted));
    const Party calculator = planner.in_band() ? the_controller : planner.box(first);
    std::vector<Held> survivors;
    const Mask sources = planner.survivors_needed(wanted);
    for_each_column(sources, [&](Column column) {
        survivors.push_back(planner.old_block(Phase::stage, column));
    });
    planner.count_restored(sources, wanted);
    const auto found = planner.recover(calculator, wanted, survivors, computing_round);
    for (const Held& block : found.columns)
        bring_home(planner, block, static_cast<std::uint8_t>(found.round + 1));
}

}  // namespace

Result<Plan> plan_rebuild(const Layout& layout, const Health& health, Mask targets, StripeRun run,
                          const PlanOptions& options) {
    if (auto good = check(layout, health, run); !good) return good.error();
    if (targets == 0 || (targets & ~health.absent_at(run.stripe)) != 0)
        return Error{Code::malformed};
    PlanBuilder builder = builder_for(options);
    BandPlanner planner(layout, health, options, builder, {}, band_of(run));
    planner.restore();
    const Mask wanted = columns_of(layout, run.stripe, targets);
    if (layout.level() == Level::mirror)
        plan_mirror_copy(planner, wanted);
    else
        rebuild(planner, wanted);
    return builder.finish();
}

Result<Plan> plan_scrub(const Layout& layout, const Health& health, StripeRun run,
                        const PlanOptions& options) {
    if (auto good = check(layout, health, run); !good) return good.error();
    PlanBuilder builder = builder_for(options);
    BandPlanner planner(layout, health, options, builder, {}, band_of(run));
    for (Column column = 0; column < layout.boxes(); ++column)
        if (planner.has(column))
            planner.add({Phase::read, 0}, planner.box(column),
                        planner.block(Command::pre_fetch, column), digest_piece(layout, column));
    return builder.finish();
}

Result<Plan> plan_inquest(const Layout& layout, const Health& health, StripeRun run,
                          const PlanOptions& options) {
    if (auto good = check(layout, health, run); !good) return good.error();
    if (run.length != slice_size) return Error{Code::malformed};
    PlanBuilder builder = builder_for(options);
    BandPlanner planner(layout, health, options, builder, {}, band_of(run));
    for (Column column = 0; column < layout.boxes(); ++column) {
        if (!planner.has(column)) continue;
        const Party box = planner.box(column);
        const Label label = planner.block(Command::pre_fetch, column);
        planner.add({Phase::read, 0}, box, label, digest_piece(layout, column));
        for (Column first = 0; first < layout.data_columns(); first += versions_per_answer)
            planner.add({Phase::read, static_cast<std::uint8_t>(1 + first / versions_per_answer)},
                        box, label, {.verb = Verb::versions, .column = first});
    }
    return builder.finish();
}

Result<Plan> plan_flush(const Layout& layout, const Health& health) {
    PlanBuilder builder(Style::vectored, false, Preparing::with_last);
    // A box that is being rebuilt gets what is written meanwhile, from its first stripe on.
    const Mask absent = health.out_of_reach();
    for (std::uint8_t box = 0; box < layout.boxes(); ++box)
        if (!contains(absent, box))
            builder.add({Phase::commit, 0}, party(BoxIndex{box}), {}, {.verb = Verb::flush});
    return builder.finish();
}

void flush_after_commit(Plan& plan) {
    for (auto& order : plan.orders)
        if (order.to.kind == PartyKind::box && order.pieces.back().verb == Verb::commit)
            order.pieces.push_back({.verb = Verb::flush});
}

Result<Plan> plan_repair(const Layout& layout, const Health& health, StripeRun run,
                         const PlanOptions& options) {
    if (auto good = check(layout, health, run); !good) return good.error();
    // A lost data column is known by its parity alone, and parity nobody can doubt then.
    if (layout.level() != Level::mirror &&
        (health.lost_columns(layout, run.stripe) & data_columns_mask(layout)) != 0)
        return Error{Code::io_failed};
    PlanBuilder builder = builder_for(options);
    BandPlanner planner(layout, health, options, builder, {}, band_of(run));
    planner.restore();
    if (layout.level() == Level::mirror)
        plan_mirror_copy(planner, (only(layout.boxes()) - 1) & ~planner.lost());
    else if (planner.has_row_parity() || planner.has_diagonal_parity())
        plan_reconstruct(planner, calculator_of(planner));
    return builder.finish();
}

}  // namespace weft::raid
