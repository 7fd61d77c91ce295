// SPDX-License-Identifier: Apache-2.0
// Writes. Band by band one of four ways:
//     reconstruct   all of the row is written, or what is lost is: parity from all the columns
//     modify        parity changes by what the data changes
//     recover       a lost column is written while another, lost too, is not: the old contents of
//                   both are found first, then parity is modified
//     data only     no parity is left to keep
// Written columns whose box is lost live in parity alone; the box that computes it fetches them
// from the host itself, so that the host sends every byte once in every state.
#include "raid/plan_common.hpp"

namespace weft::raid {
namespace {

bool is_complete(const BandPlanner& planner) {
    return planner.band().whole_stripe;
}

Label commit_label(const BandPlanner& planner) {
    // One per box for all full stripes of a request, one per part of a stripe.
    return {Command::write_new_data, is_complete(planner) ? ~0ull : planner.band().stripe};
}

/// Where the band's new contents of a column are, once staged.
Held stage_new(BandPlanner& planner, Column column, Party calculator, Command command) {
    const auto at = static_cast<std::uint32_t>(planner.host_offset(column));
    if (planner.in_band()) return {.holder = the_controller, .slot = at, .column = column};
    const Party holder = planner.has(column) ? planner.box(column) : calculator;
    const Held from_host{.holder = the_host, .slot = at, .column = column};
    const std::uint32_t into = planner.slot(holder);
    planner.fetch({Phase::stage, 0}, holder, planner.block(command, column), Blend::copy, from_host,
                  into);
    return {.holder = holder, .slot = into, .column = column};
}

/// A box gets what it shall write from the controller: in-band only.
void hand_and_commit(BandPlanner& planner, Column column, const Held& from) {
    const Party box = planner.box(column);
    const Turn turn{Phase::parity, handing_round};
    const std::uint32_t into = planner.slot(box);
    planner.fetch(turn, box, {}, Blend::copy, from, into);
    if (planner.at_once())
        planner.add(turn, box, {}, {.verb = Verb::commit, .slot = into});
    else
        planner.commit(box, {}, into);
}

void commit_data(BandPlanner& planner, const Held& fresh) {
    if (!planner.has(fresh.column)) return;
    if (planner.in_band())
        hand_and_commit(planner, fresh.column, fresh);
    else
        planner.commit(planner.box(fresh.column), commit_label(planner), fresh.slot);
}

/// The box of a parity column gets it from where it was computed and writes it.
void commit_parity(BandPlanner& planner, Column column, const Held& computed, std::uint8_t round) {
    const Party box = planner.box(column);
    if (planner.in_band()) return hand_and_commit(planner, column, computed);
    std::uint32_t from = computed.slot;
    if (box != computed.holder) {
        from = planner.slot(box);
        const Command command = is_complete(planner) ? Command::read_parity_comp_block
                                                     : Command::read_parity_part_block;
        const Label label{command, is_complete(planner) ? 0 : planner.band().stripe << 8 | column};
        planner.fetch({Phase::parity, round}, box, label, Blend::copy, computed, from);
    }
    planner.commit(box, commit_label(planner), from);
}

/// The diagonal parity's box adds a change that was summed up elsewhere.
void add_to_diagonal_parity(BandPlanner& planner, const Held& change, std::uint8_t round) {
    const Column column = planner.layout().diagonal_parity();
    const Held parity = planner.old_block(Phase::stage, column);
    const bool is_sum = !planner.is_data(change.column);
    planner.fetch({Phase::parity, round}, parity.holder,
                  planner.block(Command::read_parity_part_block, column),
                  is_sum ? Blend::add : Blend::add_diagonal, change, parity.slot);
    planner.commit(parity.holder, commit_label(planner), parity.slot);
}

/// Begins sums with the old parity where it can be had without a transfer that is not needed.
Sums sums_of_change(BandPlanner& planner, Party calculator) {
    const auto& layout = planner.layout();
    Sums sums{.at = calculator, .row = std::nullopt, .diagonal = std::nullopt};
    if (planner.has_row_parity()) {
        sums.row = planner.slot(calculator);
        planner.load(Phase::stage, calculator, *sums.row, layout.row_parity());
        sums.row_begun = true;
    }
    if (planner.has_diagonal_parity()) {
        sums.diagonal = planner.slot(calculator);
        if (planner.in_band() || calculator == planner.box(layout.diagonal_parity())) {
            planner.load(Phase::stage, calculator, *sums.diagonal, layout.diagonal_parity());
            sums.diagonal_begun = true;
        }
    }
    return sums;
}

/// What sums_of_change() began has become the new parity: to where it belongs.
void commit_changed_parity(BandPlanner& planner, const Sums& sums, bool diagonal_is_change,
                           std::uint8_t round) {
    const auto& layout = planner.layout();
    if (sums.row)
        commit_parity(planner, layout.row_parity(), {sums.at, *sums.row, layout.row_parity()},
                      round);
    if (!sums.diagonal) return;
    const Held diagonal{sums.at, *sums.diagonal, layout.diagonal_parity()};
    if (diagonal_is_change)
        add_to_diagonal_parity(planner, diagonal, round);
    else
        commit_parity(planner, layout.diagonal_parity(), diagonal, round);
}

/// The paper's XDWRITE: the new block stays to be written, old XOR new is for the parity boxes.
Held stage_change(BandPlanner& planner, Column column, Held& fresh) {
    const Party box = planner.box(column);
    const Label label = planner.block(Command::xdwrite, column);
    fresh = stage_new(planner, column, box, Command::xdwrite);
    const std::uint32_t change = planner.slot(box);
    planner.add({Phase::stage, 0}, box, label, {.verb = Verb::load, .slot = change});
    planner.take({Phase::stage, 0}, box, label, Blend::add, column, fresh.slot, change);
    return {.holder = box, .slot = change, .column = column};
}

void plan_modify(BandPlanner& planner) {
    planner.count(Counting::changes);
    const Party calculator = calculator_of(planner);
    std::vector<Held> changes;
    for_each_column(planner.band().columns, [&](Column column) {
        Held fresh;
        if (planner.in_band()) {
            fresh = stage_new(planner, column, calculator, {});
            changes.push_back(fresh);
            changes.push_back(planner.old_block(Phase::stage, column));
        } else {
            changes.push_back(stage_change(planner, column, fresh));
        }
        commit_data(planner, fresh);
    });
    // One changed block goes to both parities at once; of several, one box makes the sum for both.
    const bool directly =
        changes.size() == 1 && planner.has_row_parity() && planner.has_diagonal_parity();
    Sums sums;
    if (directly) {
        sums = {.at = calculator, .row = planner.slot(calculator), .diagonal = std::nullopt};
        planner.load(Phase::stage, calculator, *sums.row, planner.layout().row_parity());
        sums.row_begun = true;
    } else {
        sums = sums_of_change(planner, calculator);
    }
    const bool diagonal_is_change = sums.diagonal && !sums.diagonal_begun;
    auto round = planner.gather(sums, changes, computing_round, Command::read_parity_part_tmp,
                                Command::read_parity_part_block);
    if (directly) add_to_diagonal_parity(planner, changes[0], computing_round);
    ++round;
    commit_changed_parity(planner, sums, diagonal_is_change, round);
}

/// Finds what the lost columns held, so that the change of the written ones is known.
void plan_recover_and_modify(BandPlanner& planner) {
    const Party calculator = calculator_of(planner);
    const Mask lost_data = planner.lost() & data_columns_mask(planner.layout());
    std::vector<Held> survivors, changes;
    for_each_column(planner.survivors_needed(lost_data), [&](Column column) {
        survivors.push_back(planner.old_block(Phase::stage, column));
        if (contains(planner.band().columns, column)) changes.push_back(survivors.back());
    });
    for_each_column(planner.band().columns, [&](Column column) {
        changes.push_back(stage_new(planner, column, calculator, Command::read_new_block));
        commit_data(planner, changes.back());
    });
    auto found =
        planner.recover(calculator, lost_data & planner.band().columns, survivors, computing_round);
    for (const Held& old : found.columns) changes.push_back(old);
    Sums sums = sums_of_change(planner, calculator);
    const bool diagonal_is_change = sums.diagonal && !sums.diagonal_begun;
    auto round = planner.gather(sums, changes, found.round, Command::read_parity_part_tmp,
                                Command::read_parity_part_block);
    commit_changed_parity(planner, sums, diagonal_is_change, static_cast<std::uint8_t>(round + 1));
}

void plan_data_only(BandPlanner& planner) {
    for_each_column(planner.band().columns, [&](Column column) {
        commit_data(planner, stage_new(planner, column, {}, Command::read_new_block));
    });
}

bool reads_less_anew(const BandPlanner& planner) {
    const int written = std::popcount(planner.band().columns);
    const int parities = planner.has_row_parity() + planner.has_diagonal_parity();
    return planner.layout().data_columns() - written < written + parities;
}

void plan_write_band(BandPlanner& planner, Party shared_calculator) {
    const auto& layout = planner.layout();
    const Mask data = data_columns_mask(layout), written = planner.band().columns;
    const Mask lost_data = planner.lost() & data;
    if (layout.level() == Level::mirror) return plan_mirror_write(planner);
    if (!planner.has_row_parity() && !planner.has_diagonal_parity()) return plan_data_only(planner);
    if (written == data || (lost_data & written) != 0) {
        if ((lost_data & ~written) != 0) return plan_recover_and_modify(planner);
        const bool shared = is_complete(planner) && shared_calculator != Party{};
        return plan_reconstruct(planner, shared ? shared_calculator : calculator_of(planner));
    }
    const auto wish = planner.options().partial;
    const bool anew = wish == PartialWrite::reconstruct ||
                      (wish == PartialWrite::fewest_disk_reads && reads_less_anew(planner));
    if (anew && lost_data == 0) return plan_reconstruct(planner, calculator_of(planner));
    plan_modify(planner);
}

}  // namespace

Party calculator_of(const BandPlanner& planner) {
    if (planner.in_band()) return the_controller;
    return planner.box(planner.has_row_parity() ? planner.layout().row_parity()
                                                : planner.layout().diagonal_parity());
}

void plan_reconstruct(BandPlanner& planner, Party calculator) {
    const auto& layout = planner.layout();
    const Mask data = data_columns_mask(layout);
    const bool counts =
        planner.options().journal && planner.has_row_parity() && (planner.lost() & data) == 0;
    if (counts) planner.count(Counting::fresh);
    std::vector<Held> columns;
    for_each_column(data_columns_mask(layout), [&](Column column) {
        if (contains(planner.band().columns, column)) {
            const Command command =
                is_complete(planner) ? Command::prep_write : Command::read_new_block;
            columns.push_back(stage_new(planner, column, calculator, command));
            commit_data(planner, columns.back());
        } else {
            columns.push_back(planner.old_block(Phase::stage, column));
            if (counts) planner.count_at_home(column);
        }
    });
    Sums sums{.at = calculator, .row = std::nullopt, .diagonal = std::nullopt};
    if (planner.has_row_parity()) sums.row = planner.slot(calculator);
    if (planner.has_diagonal_parity()) sums.diagonal = planner.slot(calculator);
    const bool complete = is_complete(planner);
    auto round =
        planner.gather(sums, columns, computing_round,
                       complete ? Command::read_parity_comp_tmp : Command::read_parity_part_tmp,
                       complete ? Command::read_parity_comp_tmp : Command::read_parity_part_block);
    ++round;
    if (sums.row)
        commit_parity(planner, layout.row_parity(), {calculator, *sums.row, layout.row_parity()},
                      round);
    if (sums.diagonal)
        commit_parity(planner, layout.diagonal_parity(),
                      {calculator, *sums.diagonal, layout.diagonal_parity()}, round);
}

Result<Plan> plan_write(const Layout& layout, const Health& health, Range range,
                        const PlanOptions& options) {
    if (auto fit = check_request(range); !fit) return fit.error();
    PlanBuilder builder = builder_for(options);
    if (options.path == DataPath::in_band) {
        const auto length = static_cast<std::uint32_t>(range.length);
        const std::uint32_t into = builder.slot(the_controller, length);
        builder.add({Phase::stage, 0}, the_controller, {},
                    {.verb = Verb::fetch, .peer = the_host, .length = length, .slot = into});
    }
    // In the paper one box computes the parity of all full stripes of a request.
    const bool shares = options.style == Style::paper && options.path == DataPath::third_party &&
                        options.topology == Topology::star && layout.level() != Level::mirror &&
                        health.whole();
    Party shared{};
    for (const Band& band : bands_of(layout, range)) {
        if (auto enough = check_losses(layout, health, band.stripe); !enough) return enough.error();
        BandPlanner planner(layout, health, options, builder, range, band);
        if (shares && band.whole_stripe && shared == Party{}) shared = calculator_of(planner);
        plan_write_band(planner, shared);
    }
    return builder.finish();
}

}  // namespace weft::raid
