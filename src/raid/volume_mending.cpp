// SPDX-License-Identifier: Apache-2.0
// Blocks that are not what was written, which their box has said instead of passing them on. The
// request that found one makes it whole from the others, as if the box were absent for that one
// row, and then begins again. Its rows are its own meanwhile: nobody writes what is being found.
#include <algorithm>

#include "raid/volume_engine.hpp"

namespace weft::raid {

void VolumeEngine::note_corrupt(const Sent& sent, const wire::ArrayAnswer& answer) {
    Run& run = *sent.run;
    const auto& pieces = run.plan.orders[sent.order].pieces;
    run.sick = true;
    const bool is_named = answer.piece > 0 && answer.piece <= pieces.size() &&
                          answer.row_digest % slice_size == 0 &&
                          within(answer.row_digest, slice_size, pieces[answer.piece - 1].length);
    if (!is_named || ++run.times_sick > limits::heals) {
        run.refusal = Error{Code::io_failed};
        return;
    }
    // That block and no other: its neighbours may be all that others of the stripe have left.
    const std::uint64_t home = pieces[answer.piece - 1].home + answer.row_digest;
    const Ailing found{.stripe = home / layout_->chunk_bytes(),
                       .offset = static_cast<std::uint32_t>(home % layout_->chunk_bytes()),
                       .places = only(number(sent.to.box)),
                       .generation = run.generation,
                       .healed_before = counters_.healed_blocks};
    ++counters_.corrupt_blocks;
    owner_.block_corrupt(sent.to.box, found.stripe);
    // One of those that another was to be found from: the two are found together, or not at all.
    if (run.heals && !run.ailing.empty() && run.ailing.back().stripe == found.stripe)
        run.ailing.back().places |= found.places;
    else
        run.ailing.push_back(found);
}

/// A block is written anew from the others of its row. Of boxes that are absent by now nothing is
/// to be healed.
Result<Plan> VolumeEngine::plan_healing(Run& run) {
    Ailing& row = run.ailing.back();
    Health health = health_;
    row.places &= ~health.absent_at(row.stripe);
    if (row.places == 0) {
        run.ailing.pop_back();
        run.heals = !run.ailing.empty();
        return run.heals ? plan_healing(run) : plan_next(run);
    }
    bool fits = true;
    for (std::uint8_t place = 0; place < layout_->boxes(); ++place)
        if (contains(row.places, place))
            fits = health.cannot_read(BoxIndex{place}, row.stripe) && fits;
    PlanOptions options = options_.plan;
    options.journal = journal_;
    if (goes_in_band(run)) options.path = DataPath::in_band;
    run.part = 0;
    auto plan =
        plan_rebuild(*layout_, health, row.places,
                     {.stripe = row.stripe, .offset = row.offset, .length = slice_size}, options);
    if (plan && must_detour(*plan, run)) {
        run.detours = true;
        return plan_healing(run);
    }
    if (fits && plan) return plan;
    // It may have waited since that was found, and others who came upon the same have healed it.
    if (row.generation != volume_.generation || row.healed_before != counters_.healed_blocks) {
        run.ailing.clear();
        run.heals = false;
        return plan_next(run);
    }
    for (std::uint8_t place = 0; place < layout_->boxes(); ++place)
        if (contains(row.places, place)) owner_.block_lost(BoxIndex{place}, row.stripe);
    if (run.upkeep) run.upkeep->beyond_repair = true;
    return Error{Code::io_failed};
}

void VolumeEngine::healed(Run& run) {
    const Ailing row = run.ailing.back();
    run.ailing.pop_back();
    run.decided = run.disagreed = false;
    for (std::uint8_t place = 0; place < layout_->boxes(); ++place) {
        if (!contains(row.places, place)) continue;
        ++counters_.healed_blocks;
        if (run.upkeep) ++run.upkeep->healed;
        owner_.block_healed(BoxIndex{place}, row.stripe);
    }
}

void VolumeEngine::note_testimony(const Sent& sent, const wire::ArrayAnswer& answer) {
    Run& run = *sent.run;
    const Piece& piece = run.plan.orders[sent.order].pieces.front();
    const Column column = layout_->column_of(run.upkeep->stripe, sent.to.box);
    auto found = std::ranges::find(run.row, column, &Testimony::column);
    if (found == run.row.end()) found = run.row.insert(found, {.column = column});
    const Digest said{.row = answer.row_digest, .diagonals = answer.diagonal_digests};
    if (piece.verb == Verb::versions)
        take_versions(said, piece.column, found->versions);
    else
        found->digest = said;
}

/// Of one slice of a part that does not add up: who has missed a write is named, and made anew from
/// the others if that is wanted; then it is looked at again. Who cannot be named is not guessed.
void VolumeEngine::judge_row(Run& run) {
    std::vector<Digest> digests;
    for (const Testimony& box : run.row) digests.push_back(box.digest);
    if (digests_agree(*layout_, digests)) return;
    const std::uint64_t stripe = run.upkeep->stripe;
    const Mask columns = stale_columns(*layout_, run.row);
    Ailing row{.stripe = stripe,
               .offset = static_cast<std::uint32_t>(run.done),
               .places = 0,
               .generation = run.generation,
               .healed_before = counters_.healed_blocks};
    for (const Testimony& box : run.row) {
        if (!contains(columns, box.column)) continue;
        const BoxIndex place = layout_->box_of(stripe, box.column);
        row.places |= only(number(place));
        ++counters_.stale_blocks;
        owner_.block_stale(place, layout_->home_of(stripe) + run.done);
    }
    if (row.places == 0 || !run.upkeep->mends || ++run.times_sick > limits::heals) {
        run.upkeep->agrees = false;
        return;
    }
    run.ailing.push_back(row);
    run.part = 0;
}

}  // namespace weft::raid
