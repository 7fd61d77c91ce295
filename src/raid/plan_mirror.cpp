// SPDX-License-Identifier: Apache-2.0
// Mirrors: every column is a copy. Of a write one box fetches from the host and the others from
// that box, so that the host sends once; the paper has every box fetch from the host, and its style
// does.
#include "raid/plan_common.hpp"

namespace weft::raid {
namespace {

Mask copies(const BandPlanner& planner) {
    return (only(planner.layout().boxes()) - 1) & ~planner.lost();
}

/// Copies take turns with the stripes, so that readers use all disks.
Column copy_to_read(const BandPlanner& planner) {
    const std::uint8_t boxes = planner.layout().boxes();
    auto column = static_cast<Column>(planner.band().stripe % boxes);
    while (!planner.has(column)) column = static_cast<Column>((column + 1) % boxes);
    return column;
}

/// Passes a block on to the other holders, doubling those who have it, or all from the first.
void pass_on(BandPlanner& planner, Held first, Mask others, Command command) {
    std::vector<Held> having{first};
    const bool tree = planner.options().topology == Topology::binary_tree;
    std::size_t sources = 1, next = 0;
    std::uint8_t round = computing_round;
    for_each_column(others, [&](Column column) {
        if (tree && next == sources) sources = having.size(), next = 0, ++round;
        const Held& from = having[tree ? next++ : 0];
        const Party box = planner.box(column);
        const Held copy{.holder = box, .slot = planner.slot(box), .column = column};
        planner.fetch({Phase::parity, round}, box, planner.block(command, column), Blend::copy,
                      from, copy.slot);
        planner.commit(box, {Command::write_new_data, 0}, copy.slot);
        having.push_back(copy);
    });
}

/// The controller has the block; every box gets it from there.
void hand_out(BandPlanner& planner, Mask columns, std::uint32_t from) {
    for_each_column(columns, [&](Column column) {
        const Party box = planner.box(column);
        const Turn turn{Phase::parity, handing_round};
        const std::uint32_t into = planner.slot(box);
        planner.fetch(turn, box, {}, Blend::copy, {.holder = the_controller, .slot = from}, into);
        if (planner.at_once())
            planner.add(turn, box, {}, {.verb = Verb::commit, .slot = into});
        else
            planner.commit(box, {}, into);
    });
}

Held fetch_from_host(BandPlanner& planner, Column column) {
    const Party box = planner.box(column);
    const Held from_host{.holder = the_host,
                         .slot = static_cast<std::uint32_t>(planner.host_offset(0))};
    const Held held{.holder = box, .slot = planner.slot(box), .column = column};
    planner.fetch({Phase::stage, 0}, box, planner.block(Command::prep_write, column), Blend::copy,
                  from_host, held.slot);
    planner.commit(box, {Command::write_new_data, 0}, held.slot);
    return held;
}

}  // namespace

void plan_mirror_read(BandPlanner& planner) {
    const Column column = copy_to_read(planner);
    planner.add({Phase::read, 0}, planner.box(column), planner.block(Command::prep_read, 0),
                {.verb = Verb::send_home,
                 .peer = planner.in_band() ? the_controller : the_host,
                 .at = planner.host_offset(0)});
}

void plan_mirror_write(BandPlanner& planner) {
    planner.count(Counting::fresh);
    const Mask all = copies(planner);
    if (planner.in_band())
        return hand_out(planner, all, static_cast<std::uint32_t>(planner.host_offset(0)));
    if (planner.options().style == Style::paper) {
        for_each_column(all, [&](Column column) { fetch_from_host(planner, column); });
        return;
    }
    // Who fetches from the host has the most to do: that, too, takes turns.
    const Column first = copy_to_read(planner);
    pass_on(planner, fetch_from_host(planner, first), all & ~only(first),
            Command::read_parity_comp_block);
}

void plan_mirror_copy(BandPlanner& planner, Mask targets) {
    const Column source = copy_to_read(planner);
    const Held block = planner.old_block(Phase::stage, source);
    planner.count_restored(only(source), targets & ~only(source));
    if (planner.in_band())
        hand_out(planner, targets & ~only(source), block.slot);
    else
        pass_on(planner, block, targets & ~only(source), Command::read_parity_part_tmp);
}

}  // namespace weft::raid
