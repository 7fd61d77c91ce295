// SPDX-License-Identifier: Apache-2.0
#include "raid/band_planner.hpp"

namespace weft::raid {

std::uint64_t BandPlanner::host_offset(Column column) const {
    return layout_.address_of({.stripe = band_.stripe, .column = column, .offset = band_.offset}) -
           request_.offset;
}

void BandPlanner::add(Turn turn, Party to, Label label, Piece piece) {
    piece.length = band_.length;
    piece.home = layout_.home_of(band_.stripe) + band_.offset;
    const bool at_home = piece.verb == Verb::load || piece.verb == Verb::send_home ||
                         piece.verb == Verb::commit || piece.verb == Verb::digest ||
                         piece.verb == Verb::versions;
    if (!at_home) piece.home = 0;
    builder_.add(turn, to, label, piece);
}

Held BandPlanner::old_block(Phase phase, Column column) {
    const Party at = in_band() ? the_controller : box(column);
    const std::uint32_t into = slot(at);
    load(phase, at, into, column);
    return {.holder = at, .slot = into, .column = column};
}

void BandPlanner::load(Phase phase, Party at, std::uint32_t into, Column column) {
    const Turn turn{phase, 0};
    if (at == box(column))
        add(turn, at, block(Command::pre_fetch, column), {.verb = Verb::load, .slot = into});
    else
        add(turn, box(column), block(Command::pre_fetch, column),
            {.verb = Verb::send_home, .peer = at, .at = into});
}

void BandPlanner::take(Turn turn, Party at, Label label, Blend blend, Column column,
                       std::uint32_t from, std::uint32_t into) {
    const Column named = blend == Blend::add_diagonal ? column : Column{0};
    add(turn, at, label,
        {.verb = Verb::combine, .blend = blend, .column = named, .slot = into, .at = from});
}

void BandPlanner::fetch(Turn turn, Party at, Label label, Blend blend, const Held& from,
                        std::uint32_t into) {
    const Column named = blend == Blend::add_diagonal ? from.column : Column{0};
    add(turn, at, label,
        {.verb = Verb::fetch,
         .blend = blend,
         .column = named,
         .peer = from.holder,
         .slot = into,
         .at = from.slot});
}

/// The data columns whose new contents go into a block of this one.
Mask BandPlanner::columns_in(Column column) const {
    if (layout_.level() == Level::mirror) return only(0);
    if (is_data(column)) return only(column);
    return restores_ ? only(layout_.data_columns()) - 1 : band_.columns;
}

/// As a scrub counts them: data in the sums whose parity is there, each parity in its own.
Piece BandPlanner::counted(Piece piece, Column column) const {
    if (layout_.level() == Level::mirror || column == layout_.row_parity()) return piece;
    if (!layout_.has_diagonal() || !contains(counted_, layout_.diagonal_parity())) return piece;
    const bool is_diagonal = column == layout_.diagonal_parity();
    piece.blend = is_diagonal ? Blend::add : Blend::add_diagonal;
    piece.column = is_diagonal ? Column{0} : column;
    return piece;
}

void BandPlanner::count_at_home(Column column) {
    add({Phase::stage, 0}, box(column), block(Command::pre_fetch, column),
        counted({.verb = Verb::digest}, column));
}

void BandPlanner::count_restored(Mask sources, Mask wanted) {
    if (!options_.journal) return;
    if (layout_.level() != Level::mirror) {
        const Mask row = (only(layout_.data_columns()) - 1) | only(layout_.row_parity());
        if (has_row_parity()) sources |= only(layout_.row_parity());
        if ((row & ~(sources | wanted)) != 0) return;
        // Diagonals alone: that their row does not add up, as one at rest may not, is no fault of
        // what is made anew, and must not keep it from being made.
        if ((wanted & row) == 0) return;
    }
    counting_ = Counting::fresh;
    counted_ = sources | wanted;
    for (Column column = 0; column < layout_.boxes(); ++column)
        if (contains(sources, column)) count_at_home(column);
}

/// Without row parity nothing is counted: data alone cannot be left out of that sum.
Piece BandPlanner::digested(Piece piece, Column column) const {
    const bool mirror = layout_.level() == Level::mirror;
    const bool countable =
        mirror ? restores_ || lost_ == 0 : contains(counted_, layout_.row_parity());
    if (counting_ == Counting::nothing || !countable) {
        piece.at = prepare_word(uncounted, columns_in(column), restores_);
        return piece;
    }
    piece.at = prepare_word(counting_ == Counting::fresh ? as_new : as_change, columns_in(column),
                            restores_);
    return counted(piece, column);
}

void BandPlanner::commit(Party at, Label label, std::uint32_t from) {
    Piece piece{.verb = Verb::commit, .slot = from};
    if (options_.journal) piece = digested(piece, layout_.column_of(band_.stripe, at.box));
    add({Phase::commit, 0}, at, label, piece);
}

}  // namespace weft::raid
