// SPDX-License-Identifier: Apache-2.0
// What all plans are made of: the columns of one band, and how blocks that lie on several boxes
// come together in one place. plan_*.cpp say which blocks; this says how they get there.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "raid/plan.hpp"

namespace weft::raid {

/// A block somewhere in somebody's window, and which column of its stripe it is, or is a change of.
struct Held {
    Party holder{};
    std::uint32_t slot = 0;
    Column column = 0;
};

/// Sums being made at one party. Row: data and row parity. Diagonal: what data adds to the
/// diagonal parity, and that parity itself.
struct Sums {
    Party at{};
    std::optional<std::uint32_t> row;
    std::optional<std::uint32_t> diagonal;
    bool row_begun = false;  ///< the slot holds something already
    bool diagonal_begun = false;
};

/// What the digests of a band's new blocks tell, added up over all who prepare one. See
/// raid/digest.hpp; the controller compares before it decides.
enum class Counting : std::uint8_t {
    nothing,  ///< somebody who has a share in the row prepares nothing, or has no box
    fresh,    ///< the blocks as they will be agree
    changes,  ///< what they change by agrees
};

class BandPlanner {
public:
    BandPlanner(const Layout& layout, const Health& health, const PlanOptions& options,
                PlanBuilder& builder, Range request, const Band& band)
        : layout_(layout),
          options_(options),
          builder_(builder),
          request_(request),
          band_(band),
          lost_(health.lost_columns(layout, band.stripe)),
          all_boxes_(health.whole()) {}

    const Layout& layout() const { return layout_; }
    const PlanOptions& options() const { return options_; }
    const Band& band() const { return band_; }
    bool in_band() const { return options_.path == DataPath::in_band; }
    /// Boxes write what they fetch, without a commit of its own.
    bool at_once() const { return options_.ending == Ending::at_once && !options_.journal; }

    Mask lost() const { return lost_; }
    bool has(Column column) const { return column < layout_.boxes() && !contains(lost_, column); }
    bool has_row_parity() const {
        return layout_.parity_columns() > 0 && has(layout_.row_parity());
    }
    bool has_diagonal_parity() const {
        return layout_.has_diagonal() && has(layout_.diagonal_parity());
    }
    bool is_data(Column column) const { return column < layout_.data_columns(); }
    Party box(Column column) const { return party(layout_.box_of(band_.stripe, column)); }
    /// Where the host has (or wants) this column's part of the band.
    std::uint64_t host_offset(Column column) const;

    std::uint32_t slot(Party party) { return builder_.slot(party, band_.length); }
    void add(Turn turn, Party to, Label label, Piece piece);
    /// A label of which every block of a stripe has one.
    Label block(Command command, Column column) const {
        return {command, band_.stripe << 8 | column};
    }
    /// A label of which every block has one per band: for what must keep its order within a band.
    Label part(Command command, Column column) const {
        return {command,
                band_.stripe << 32 | std::uint64_t{band_.offset / slice_size} << 8 | column};
    }

    /// The old contents of a column, brought to where plans can use it: a slot of its box, or of
    /// the controller when data goes by way of that.
    Held old_block(Phase phase, Column column);
    void load(Phase phase, Party at, std::uint32_t into, Column column);

    void take(Turn turn, Party at, Label label, Blend blend, Column column, std::uint32_t from,
              std::uint32_t into);
    void fetch(Turn turn, Party at, Label label, Blend blend, const Held& from, std::uint32_t into);
    /// With a journal: `count()` must have said before how it is digested.
    void commit(Party at, Label label, std::uint32_t from);
    void count(Counting counting) { counting_ = counting; }
    /// What is not written counts as it is at home: without it nobody could tell whether what is
    /// made of it is right.
    void count_at_home(Column column);
    /// What is made anew counts together with what it is made from, unless a column is missing that
    /// neither is.
    void count_restored(Mask sources, Mask wanted);
    /// What is committed is made from what there is: nothing of it is new.
    void restore() { restores_ = true; }

    /// Adds blocks to sums, by the topology asked for, from this round of the parity phase on.
    /// Returns the round in which the sums are complete. `temporary` and `final` are the paper's
    /// names for fetching at a box on the way and at the one where the sums are.
    std::uint8_t gather(Sums& sums, std::span<const Held> blocks, std::uint8_t round,
                        Command temporary, Command final);

    /// Computes lost columns in sums at `calculator`. Gives the slot of each wanted column.
    struct Recovered {
        std::vector<Held> columns;
        std::uint8_t round = 0;
    };
    Recovered recover(Party calculator, Mask wanted, std::span<const Held> survivors,
                      std::uint8_t round);
    /// The columns recover() must be given for that.
    Mask survivors_needed(Mask wanted) const;

private:
    struct Partial;

    Piece counted(Piece piece, Column column) const;
    Piece digested(Piece piece, Column column) const;
    Mask columns_in(Column column) const;
    void open(Turn turn, Sums& sums, Label label, const Held& block);
    void add_own(Turn turn, Sums& sums, Label label, const Held& block);
    void add_fetched(Turn turn, Sums& sums, Label label, const Held& block);
    Label fetch_label(Command command, const Held& held, const Sums& sums,
                      std::span<const Held> blocks) const;
    void gather_star(Sums& sums, std::span<const Held> blocks, Turn turn, Command final);
    std::uint8_t gather_tree(Sums& sums, std::span<const Held> blocks, std::uint8_t round,
                             Command temporary, Command final);
    void receive(Turn turn, Partial& into, const Partial& from, Command command);

    const Layout& layout_;
    const PlanOptions& options_;
    PlanBuilder& builder_;
    Range request_;
    Band band_;
    Mask lost_;
    Label last_label_;  ///< of what gather() did last
    bool all_boxes_;    ///< nothing is lost anywhere
    Counting counting_ = Counting::nothing;
    Mask counted_ = ~lost_;  ///< the columns that add up
    bool restores_ = false;
};

}  // namespace weft::raid
