// SPDX-License-Identifier: Apache-2.0
#include "raid/corrupt_blocks.hpp"

namespace weft::raid {

CorruptRow CorruptBlocks::row_of(std::uint64_t stripe, std::uint64_t offset, Mask places) const {
    return {.stripe = stripe,
            .offset = static_cast<std::uint32_t>(offset),
            .places = places,
            .generation = view_.volume.generation,
            .restored_before = counters_.healed_blocks};
}

void CorruptBlocks::found(Attempt& attempt, const SentCommand& command,
                          const wire::ArrayAnswer& answer) {
    Request& request = attempt.request();
    const auto& pieces = attempt.order(command).pieces;
    const bool is_named = answer.piece > 0 && answer.piece <= pieces.size() &&
                          answer.row_digest % slice_size == 0 &&
                          within(answer.row_digest, slice_size, pieces[answer.piece - 1].length);
    if (!is_named) return attempt.fail(Then::refuse, Error{Code::io_failed});
    // That block and no other: its neighbours may be all that others of the stripe have left.
    const std::uint64_t home = pieces[answer.piece - 1].home + answer.row_digest;
    const std::uint32_t chunk = view_.layout->chunk_bytes();
    CorruptRow row = row_of(home / chunk, home % chunk, only(command.place()));
    row.generation = attempt.terms().generation;
    ++counters_.corrupt_blocks;
    owner_.block_corrupt(command.to.box, row.stripe);
    // One of those that another was to be found from: the two are found together, or not at all.
    const bool is_of_current = attempt.terms().purpose == Attempt::Purpose::restore &&
                               request.repairs.needed() &&
                               request.repairs.current().stripe == row.stripe;
    const bool may =
        is_of_current ? request.repairs.widen_current(row.places) : request.repairs.add(row);
    if (may)
        attempt.fail(Then::repair);
    else
        attempt.fail(Then::refuse, Error{Code::io_failed});
}

Result<std::optional<RequestPlanner::Planned>> CorruptBlocks::plan(Request& request) {
    while (request.repairs.needed()) {
        CorruptRow& row = request.repairs.current();
        row.places &= ~view_.health.absent_at(row.stripe);
        if (row.places == 0) {  // of boxes that are absent by now nothing is to be restored
            (void)request.repairs.take_current();
            continue;
        }
        auto planned = planner_.plan_restoring(request, row);
        if (planned) return std::optional(std::move(*planned));
        // It may have waited since that was found, and others that came upon it have restored it.
        if (row.generation != view_.volume.generation ||
            row.restored_before != counters_.healed_blocks) {
            request.repairs.clear();
            break;
        }
        for (std::uint8_t place = 0; place < view_.layout->boxes(); ++place)
            if (contains(row.places, place)) owner_.block_lost(BoxIndex{place}, row.stripe);
        if (request.upkeep) request.upkeep->beyond_repair = true;
        return Error{Code::io_failed};
    }
    return std::optional<RequestPlanner::Planned>{};
}

void CorruptBlocks::restored(Request& request) {
    const CorruptRow row = request.repairs.take_current();
    for (std::uint8_t place = 0; place < view_.layout->boxes(); ++place) {
        if (!contains(row.places, place)) continue;
        ++counters_.healed_blocks;
        if (request.upkeep) ++request.upkeep->healed;
        owner_.block_healed(BoxIndex{place}, row.stripe);
    }
}

void CorruptBlocks::heard(Request& request, const Attempt& attempt, const SentCommand& command,
                          const wire::ArrayAnswer& answer) {
    const Piece& asked = attempt.order(command).pieces.front();
    request.scrub.take(view_.layout->column_of(request.upkeep->stripe, command.to.box), asked,
                       {.row = answer.row_digest, .diagonals = answer.diagonal_digests});
}

void CorruptBlocks::scrubbed(Request& request, const Attempt& attempt) {
    if (request.scrub.is_detailed(request.done)) return judge_row(request);
    const auto digests = attempt.digests();
    const bool enough = view_.layout->level() == Level::mirror
                            ? digests.size() > 1
                            : digests.size() == view_.layout->boxes();
    if (!enough)
        request.upkeep->checked = false;
    else if (!digests_agree(*view_.layout, digests))  // once more, and closely
        request.scrub.look_closely_until(request.done + std::exchange(request.part, 0));
}

/// Of one slice of a part that does not add up: who has missed a write is named, and restored from
/// the others if that is wanted; then it is looked at again. Who cannot be named is not guessed.
void CorruptBlocks::judge_row(Request& request) {
    const Layout& layout = *view_.layout;
    if (request.scrub.row_agrees(layout)) return;
    const std::uint64_t stripe = request.upkeep->stripe;
    CorruptRow row = row_of(stripe, request.done, 0);
    const Mask stale = request.scrub.stale(layout);
    for (std::uint8_t place = 0; place < layout.boxes(); ++place) {
        if (!contains(stale, layout.column_of(stripe, BoxIndex{place}))) continue;
        row.places |= only(place);
        ++counters_.stale_blocks;
        owner_.block_stale(BoxIndex{place}, layout.home_of(stripe) + request.done);
    }
    if (row.places == 0 || !request.upkeep->mends || !request.repairs.add(row)) {
        request.upkeep->agrees = false;
        return;
    }
    request.part = 0;
}

}  // namespace weft::raid
