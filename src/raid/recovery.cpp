// SPDX-License-Identifier: Apache-2.0
// How lost columns are found again: BandPlanner's recover(). The survivors are added up in sums
// that begin at zero; what is lost is what keeps the sums from being zero.
#include <bit>

#include "raid/band_planner.hpp"

namespace weft::raid {
namespace {

struct Need {
    bool row = false, diagonal = false;
};

Mask data_mask(const Layout& layout) {
    return only(layout.data_columns()) - 1;
}

/// Which sums show the lost columns that are wanted.
Need needed(const BandPlanner& planner, Mask wanted) {
    const auto& layout = planner.layout();
    const bool row_wanted = contains(wanted, layout.row_parity());
    const bool diagonal_wanted =
        layout.has_diagonal() && contains(wanted, layout.diagonal_parity());
    const int lost_data = std::popcount(planner.lost() & data_mask(layout));
    if (lost_data == 0) return {row_wanted, diagonal_wanted};
    if (lost_data == 2) return {true, true};
    const bool by_row = planner.has_row_parity();
    return {by_row || row_wanted, !by_row || diagonal_wanted};
}

}  // namespace

Mask BandPlanner::survivors_needed(Mask wanted) const {
    const Need need = needed(*this, wanted);
    Mask columns = data_mask(layout_) & ~lost_;
    if ((lost_ & data_mask(layout_)) == 0) return columns;
    if (need.row && has_row_parity()) columns |= only(layout_.row_parity());
    if (need.diagonal && has_diagonal_parity()) columns |= only(layout_.diagonal_parity());
    return columns;
}

BandPlanner::Recovered BandPlanner::recover(Party calculator, Mask wanted,
                                            std::span<const Held> survivors, std::uint8_t round) {
    const Need need = needed(*this, wanted);
    const Mask lost_data = lost_ & data_mask(layout_);
    Sums sums{.at = calculator, .row = std::nullopt, .diagonal = std::nullopt};
    if (need.row) sums.row = slot(calculator);
    if (need.diagonal) sums.diagonal = slot(calculator);
    Recovered found;
    found.round = gather(sums, survivors, round, Command::read_parity_part_tmp,
                         Command::read_parity_part_tmp);

    const Turn turn{Phase::parity, found.round};
    // In the paper's style this is done with the last fetch, so it has that one's label.
    const Label label = last_label_;
    const auto first = static_cast<Column>(std::countr_zero(lost_data));
    auto give = [&](Column column, std::uint32_t from) {
        if (contains(wanted, column))
            found.columns.push_back({.holder = calculator, .slot = from, .column = column});
    };
    if (std::popcount(lost_data) == 2) {
        const auto second = static_cast<Column>(std::countr_zero(lost_data & (lost_data - 1)));
        add(turn, calculator, label,
            {.verb = Verb::solve_pair,
             .column = first,
             .other_column = second,
             .slot = *sums.row,
             .at = *sums.diagonal});
        give(first, *sums.row);
        give(second, *sums.diagonal);
        return found;
    }
    if (lost_data == 0) {
        if (sums.row) give(layout_.row_parity(), *sums.row);
        if (sums.diagonal) give(layout_.diagonal_parity(), *sums.diagonal);
        return found;
    }
    if (has_row_parity()) {
        give(first, *sums.row);
        if (!sums.diagonal) return found;
        take(turn, calculator, label, Blend::add_diagonal, first, *sums.row, *sums.diagonal);
        give(layout_.diagonal_parity(), *sums.diagonal);
        return found;
    }
    add(turn, calculator, label,
        {.verb = Verb::solve_diagonal, .column = first, .slot = *sums.diagonal});
    give(first, *sums.diagonal);
    if (!sums.row) return found;
    take(turn, calculator, label, Blend::add, 0, *sums.diagonal, *sums.row);
    give(layout_.row_parity(), *sums.row);
    return found;
}

}  // namespace weft::raid
