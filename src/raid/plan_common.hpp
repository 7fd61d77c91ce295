// SPDX-License-Identifier: Apache-2.0
// What the plan_*.cpp share: the checks every plan begins with, and the order of things in plans
// that go by way of the controller.
#pragma once

#include <bit>

#include "raid/band_planner.hpp"

namespace weft::raid {

/// Rounds of the parity phase when data goes by way of the controller: it computes, then boxes (or
/// the host) get the results.
inline constexpr std::uint8_t computing_round = 1;
inline constexpr std::uint8_t handing_round = 2;

inline Result<void> check_request(Range range) {
    if (range.length == 0 || range.length > limits::request_bytes ||
        (range.offset | range.length) % slice_size != 0)
        return Error{Code::malformed};
    return {};
}

inline Result<void> check_run(const Layout& layout, StripeRun run) {
    if (run.length == 0 || (run.offset | run.length) % slice_size != 0 ||
        run.length > limits::request_bytes || run.offset > layout.chunk_bytes() ||
        run.length > layout.chunk_bytes() - run.offset)
        return Error{Code::malformed};
    return {};
}

/// Whether the code can do without what a stripe lacks.
inline Result<void> check_losses(const Layout& layout, const Health& health, std::uint64_t stripe) {
    if (std::popcount(health.absent_at(stripe)) > layout.spare_columns())
        return Error{.code = Code::io_failed, .where = static_cast<std::uint32_t>(stripe)};
    return {};
}

/// The paper's Baseline sends a box one command, however many blocks it is about. A journal is
/// nothing the paper has.
inline PlanBuilder builder_for(const PlanOptions& options) {
    const bool vectored = options.path == DataPath::in_band || options.journal;
    return {vectored ? Style::vectored : options.style, options.journal, options.preparing};
}

inline Mask data_columns_mask(const Layout& layout) {
    return only(layout.data_columns()) - 1;
}

/// Calls `work` with each column of a mask, in order.
template <class Work>
void for_each_column(Mask mask, Work work) {
    for (; mask != 0; mask &= mask - 1) work(static_cast<Column>(std::countr_zero(mask)));
}

void plan_mirror_read(BandPlanner& planner);
void plan_mirror_write(BandPlanner& planner);
/// Copies the run from a box that has it to those of `targets`.
void plan_mirror_copy(BandPlanner& planner, Mask targets);

/// Parity (of a band whose data columns in `band().columns` are written, or none) made anew.
/// `calculator` is where, unless data goes by way of the controller.
void plan_reconstruct(BandPlanner& planner, Party calculator);
/// Where a band's parity is computed: at a box that has to hold it.
Party calculator_of(const BandPlanner& planner);

}  // namespace weft::raid
