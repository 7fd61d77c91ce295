// SPDX-License-Identifier: Apache-2.0
// How blocks that lie on several boxes are added up in one place: BandPlanner's star and tree.
#include <algorithm>

#include "base/check.hpp"
#include "raid/band_planner.hpp"

namespace weft::raid {

/// What one party of a tree has: a block as it came, or sums of several.
struct BandPlanner::Partial {
    std::optional<Held> block;
    Sums sums;
};

namespace {

bool goes_to_row(const BandPlanner& planner, const Held& block) {
    return planner.is_data(block.column) || block.column == planner.layout().row_parity();
}
bool goes_to_diagonal(const BandPlanner& planner, const Held& block) {
    return planner.is_data(block.column) || block.column != planner.layout().row_parity();
}
/// Diagonal parity is a sum already; a data column must be spread over its diagonals.
Blend diagonal_blend(const BandPlanner& planner, const Held& block) {
    return planner.is_data(block.column) ? Blend::add_diagonal : Blend::add;
}

}  // namespace

/// Makes the diagonal slot zero before the first column is spread into it.
void BandPlanner::open(Turn turn, Sums& sums, Label label, const Held& block) {
    if (!sums.diagonal || sums.diagonal_begun || !goes_to_diagonal(*this, block)) return;
    add(turn, sums.at, label, {.verb = Verb::clear, .slot = *sums.diagonal});
    sums.diagonal_begun = true;
}

void BandPlanner::add_own(Turn turn, Sums& sums, Label label, const Held& block) {
    open(turn, sums, label, block);
    if (sums.row && goes_to_row(*this, block)) {
        take(turn, sums.at, label, sums.row_begun ? Blend::add : Blend::copy, 0, block.slot,
             *sums.row);
        sums.row_begun = true;
    }
    if (sums.diagonal && goes_to_diagonal(*this, block))
        take(turn, sums.at, label, diagonal_blend(*this, block), block.column, block.slot,
             *sums.diagonal);
}

void BandPlanner::add_fetched(Turn turn, Sums& sums, Label label, const Held& block) {
    const bool to_row = sums.row && goes_to_row(*this, block);
    const bool to_diagonal = sums.diagonal && goes_to_diagonal(*this, block);
    if (to_row && to_diagonal) {
        const std::uint32_t landing = slot(sums.at);
        fetch(turn, sums.at, label, Blend::copy, block, landing);
        add_own(turn, sums, label, {.holder = sums.at, .slot = landing, .column = block.column});
    } else if (to_row) {
        fetch(turn, sums.at, label, sums.row_begun ? Blend::add : Blend::copy, block, *sums.row);
        sums.row_begun = true;
    } else if (to_diagonal) {
        open(turn, sums, label, block);
        fetch(turn, sums.at, label, diagonal_blend(*this, block), block, *sums.diagonal);
    }
}

/// The paper fetches all full stripes of a box by one command, a part of a stripe by its own. What
/// a box has itself it adds along with the first it fetches.
Label BandPlanner::fetch_label(Command command, const Held& held, const Sums& sums,
                               std::span<const Held> blocks) const {
    if (command != Command::read_parity_comp_tmp || !all_boxes_) return part(command, held.column);
    auto fetched = std::ranges::find_if(blocks, [&](const Held& h) { return h.holder != sums.at; });
    const Held& named = held.holder == sums.at && fetched != blocks.end() ? *fetched : held;
    return {command, number(named.holder.box), number(named.holder.box)};
}

void BandPlanner::gather_star(Sums& sums, std::span<const Held> blocks, Turn turn, Command final) {
    // By box and not by column: of commands that are about several stripes the first then begins
    // the sum of each.
    std::vector<Held> by_box(blocks.begin(), blocks.end());
    std::ranges::stable_sort(by_box, {}, &Held::holder);
    for (const Held& held : by_box) {
        const Label label = last_label_ = fetch_label(final, held, sums, by_box);
        if (held.holder == sums.at)
            add_own(turn, sums, label, held);
        else
            add_fetched(turn, sums, label, held);
    }
}

void BandPlanner::receive(Turn turn, Partial& into, const Partial& from, Command command) {
    const Label label = last_label_ = part(command, from.block ? from.block->column : Column{0xff});
    if (into.block) {  // a box on the way: its block may still have to go home, so sums are apart
        if (into.sums.row) into.sums.row = slot(into.sums.at);
        if (into.sums.diagonal) into.sums.diagonal = slot(into.sums.at);
        add_own(turn, into.sums, label, *into.block);
        into.block.reset();
    }
    if (from.block) {
        add_fetched(turn, into.sums, label, *from.block);
        return;
    }
    if (from.sums.row && from.sums.row_begun) {
        const Held row{from.sums.at, *from.sums.row, layout_.row_parity()};
        fetch(turn, into.sums.at, label, into.sums.row_begun ? Blend::add : Blend::copy, row,
              *into.sums.row);
        into.sums.row_begun = true;
    }
    if (from.sums.diagonal && from.sums.diagonal_begun) {
        const Held sum{from.sums.at, *from.sums.diagonal, layout_.diagonal_parity()};
        fetch(turn, into.sums.at, label, into.sums.diagonal_begun ? Blend::add : Blend::copy, sum,
              *into.sums.diagonal);
        into.sums.diagonal_begun = true;
    }
}

std::uint8_t BandPlanner::gather_tree(Sums& sums, std::span<const Held> blocks, std::uint8_t round,
                                      Command temporary, Command final) {
    std::vector<Partial> level;
    const Turn first{Phase::parity, round};
    for (const Held& held : blocks) {
        if (held.holder == sums.at) {
            add_own(first, sums, last_label_ = part(final, held.column), held);
        } else {
            Sums wanted{.at = held.holder, .row = sums.row, .diagonal = sums.diagonal};
            level.push_back({.block = held, .sums = wanted});
        }
    }
    level.push_back({.block = std::nullopt, .sums = sums});
    while (level.size() > 1) {
        std::vector<Partial> next;
        for (std::size_t i = 0; i < level.size(); i += 2) {
            if (i + 1 == level.size()) {
                next.push_back(level[i]);
                continue;
            }
            const bool root = i + 2 == level.size();
            receive({Phase::parity, round}, level[i + 1], level[i], root ? final : temporary);
            next.push_back(level[i + 1]);
        }
        level = std::move(next);
        if (level.size() > 1) ++round;
    }
    sums = level[0].sums;
    return round;
}

std::uint8_t BandPlanner::gather(Sums& sums, std::span<const Held> blocks, std::uint8_t round,
                                 Command temporary, Command final) {
    auto holds_twice = [&](const Held& held) {
        return std::ranges::count(blocks, held.holder, &Held::holder) > 1 && held.holder != sums.at;
    };
    const bool tree = options_.topology == Topology::binary_tree && !in_band() &&
                      std::ranges::none_of(blocks, holds_twice);
    if (tree) return gather_tree(sums, blocks, round, temporary, final);
    gather_star(sums, blocks, {Phase::parity, round}, final);
    return round;
}

}  // namespace weft::raid
