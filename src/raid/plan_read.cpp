// SPDX-License-Identifier: Apache-2.0
// Reads. A box sends its blocks straight into the host's memory. Of a lost block the survivors are
// added up at the box with the parity, which otherwise has nothing to do for a read, and that box
// sends the host what comes out: the host gets every byte once, and does not see the difference.
#include <algorithm>

#include "raid/plan_common.hpp"

namespace weft::raid {
namespace {

/// Where a block is to go: the host, or what the controller collects for it.
Piece to_reader(const BandPlanner& planner, Verb verb, std::uint32_t from, Column column) {
    return {.verb = verb,
            .peer = planner.in_band() ? the_controller : the_host,
            .slot = from,
            .at = planner.host_offset(column)};
}

void send_from_home(BandPlanner& planner, Column column) {
    planner.add({Phase::read, 0}, planner.box(column), planner.block(Command::prep_read, column),
                to_reader(planner, Verb::send_home, 0, column));
}

/// A survivor: for the sum, and for the host if it asked for this column too.
Held lend_survivor(BandPlanner& planner, Column column) {
    const bool asked = planner.is_data(column) && contains(planner.band().columns, column);
    if (planner.in_band() && asked) {
        send_from_home(planner, column);
        return {.holder = the_controller,
                .slot = static_cast<std::uint32_t>(planner.host_offset(column)),
                .column = column};
    }
    if (!asked) return planner.old_block(Phase::read, column);
    const Party box = planner.box(column);
    const Held held{.holder = box, .slot = planner.slot(box), .column = column};
    const Label label = planner.block(Command::prep_read, column);
    planner.add({Phase::read, 0}, box, label, {.verb = Verb::load, .slot = held.slot});
    planner.add({Phase::read, 0}, box, label,
                to_reader(planner, Verb::send_slot, held.slot, column));
    return held;
}

void give_to_reader(BandPlanner& planner, const Held& block, std::uint8_t round) {
    const Turn turn{Phase::parity, round};
    if (planner.in_band())
        planner.take(turn, block.holder, {}, Blend::copy, 0, block.slot,
                     static_cast<std::uint32_t>(planner.host_offset(block.column)));
    else
        planner.add(turn, block.holder, planner.part(Command::prep_read, block.column),
                    to_reader(planner, Verb::send_slot, block.slot, block.column));
}

void plan_read_band(BandPlanner& planner) {
    if (planner.layout().level() == Level::mirror) return plan_mirror_read(planner);
    const Mask asked = planner.band().columns, lost = planner.lost() & asked;
    if (lost == 0) {
        for_each_column(asked, [&](Column column) { send_from_home(planner, column); });
        return;
    }
    std::vector<Held> survivors;
    const Mask needed = planner.survivors_needed(lost);
    for_each_column(needed,
                    [&](Column column) { survivors.push_back(lend_survivor(planner, column)); });
    const auto found = planner.recover(calculator_of(planner), lost, survivors, computing_round);
    for (const Held& block : found.columns) give_to_reader(planner, block, found.round);
}

}  // namespace

Result<Plan> plan_read(const Layout& layout, const Health& health, Range range,
                       const PlanOptions& options) {
    if (auto fit = check_request(range); !fit) return fit.error();
    PlanBuilder builder = builder_for(options);
    const auto length = static_cast<std::uint32_t>(range.length);
    const bool in_band = options.path == DataPath::in_band;
    const std::uint32_t collected = in_band ? builder.slot(the_controller, length) : 0;
    for (const Band& band : bands_of(layout, range)) {
        if (auto enough = check_losses(layout, health, band.stripe); !enough) return enough.error();
        BandPlanner planner(layout, health, options, builder, range, band);
        plan_read_band(planner);
    }
    if (in_band)
        builder.add(
            {Phase::parity, handing_round}, the_controller, {},
            {.verb = Verb::send_slot, .peer = the_host, .length = length, .slot = collected});
    return builder.finish();
}

}  // namespace weft::raid
