// SPDX-License-Identifier: Apache-2.0
#include "raid/request_planner.hpp"

#include <algorithm>

#include "raid/order_codec.hpp"

namespace weft::raid {
namespace {

std::uint32_t largest_window(const Plan& plan) {
    return std::max(plan.controller_window, *std::ranges::max_element(plan.box_windows));
}

/// About half of it, in whole slices.
std::uint64_t half_of(std::uint64_t part) {
    return (part / slice_size + 1) / 2 * slice_size;
}

}  // namespace

bool RequestPlanner::goes_in_band(const Request& request, bool detours) const {
    return options_.plan.path == DataPath::in_band || detours ||
           (request.host && request.host->in_band);
}

PlanOptions RequestPlanner::options_for(bool in_band) const {
    PlanOptions options = options_.plan;
    options.journal = view_.has_journal();
    if (in_band) options.path = DataPath::in_band;
    return options;
}

Result<RequestPlanner::Planned> RequestPlanner::plan_part(const Request& request,
                                                          Mask around) const {
    auto planned = plan_fitting(request, around, false);
    if (!planned) return planned;
    auto avoided = avoided_by(request, *planned);
    if (avoided.empty()) return planned;
    auto detour = plan_fitting(request, around, true);
    if (detour) detour->detour = std::move(avoided);
    return detour;
}

/// The next part of what is left to do, as much as fits into windows.
Result<RequestPlanner::Planned> RequestPlanner::plan_fitting(const Request& request, Mask around,
                                                             bool detours) const {
    const bool in_band = goes_in_band(request, detours);
    std::uint32_t window = options_.window_bytes;
    if (in_band) {
        if (!can_detour()) return Error{Code::unsupported};
        window = std::min(window, options_.own_window_bytes);
    }
    std::uint64_t part = request.length - request.done;
    if (!request.is_host()) {
        const bool is_detailed = request.scrub.is_detailed(request.done);
        part = std::min<std::uint64_t>(part, is_detailed ? slice_size : options_.upkeep_bytes);
    }
    for (;; part = half_of(part)) {
        auto plan = plan_of(request, part, around, in_band);
        if (!plan) return plan.error();
        if (largest_window(*plan) <= window)
            return Planned{
                .plan = std::move(*plan), .part = part, .in_band = in_band, .detour = {}};
        if (part <= slice_size) return Error{Code::exhausted};
    }
}

Result<Plan> RequestPlanner::plan_of(const Request& request, std::uint64_t part, Mask around,
                                     bool in_band) const {
    PlanOptions options = options_for(in_band);
    if (request.recomputes_parity) options.partial = PartialWrite::reconstruct;
    if (!request.is_host()) return plan_upkeep(request, part, options);
    options.preparing = Preparing::beside_others;  // somebody waits for it
    if (request.host->operation == HostOperation::flush) return plan_flush_if_any();
    const Range range{request.host->range.offset + request.done, part};
    if (request.is_host_read()) return plan_reading(request, range, around, options);
    auto plan = plan_write(*view_.layout, view_.health, range, options);
    if (plan && request.host->durable && !view_.has_journal()) flush_after_commit(*plan);
    return plan;
}

Result<Plan> RequestPlanner::plan_upkeep(const Request& request, std::uint64_t part,
                                         const PlanOptions& options) const {
    const StripeRun stripe{.stripe = request.upkeep->stripe,
                           .offset = static_cast<std::uint32_t>(request.done),
                           .length = static_cast<std::uint32_t>(part)};
    switch (request.upkeep->kind) {
        case UpkeepKind::rebuild:
            return plan_rebuild(*view_.layout, view_.health, request.upkeep->targets, stripe,
                                options);
        case UpkeepKind::scrub:
            if (request.scrub.is_detailed(request.done))
                return plan_inquest(*view_.layout, view_.health, stripe, options);
            return plan_scrub(*view_.layout, view_.health, stripe, options);
        case UpkeepKind::repair:
            return plan_repair(*view_.layout, view_.health, stripe, options);
        case UpkeepKind::flush:
            break;
    }
    return plan_flush_if_any();
}

/// What a journal's box has prepared outlives its power, and nothing is answered before all have:
/// every write is durable, and there is nothing left to flush. Upkeep's writes go the same way.
Result<Plan> RequestPlanner::plan_flush_if_any() const {
    return view_.has_journal() ? Plan{} : plan_flush(*view_.layout, view_.health);
}

/// Around all that are slow, or those it has waited for in vain, or nobody: as far as the code can.
Result<Plan> RequestPlanner::plan_reading(const Request& request, Range range, Mask around,
                                          const PlanOptions& options) const {
    for (const Mask without : {around, request.late}) {
        if (without == 0) continue;
        const auto health = view_.health_without(without);
        if (!health) continue;
        if (auto plan = plan_read(*view_.layout, *health, range, options)) return plan;
    }
    return plan_read(*view_.layout, view_.health, range, options);
}

bool RequestPlanner::can_read_without(const Request& request, Mask boxes) const {
    const auto health = view_.health_without(boxes);
    const Range range{request.host->range.offset + request.done, request.part};
    return health && plan_read(*view_.layout, *health, range, options_.plan).has_value();
}

Result<RequestPlanner::Planned> RequestPlanner::plan_restoring(const Request& request,
                                                               const CorruptRow& row) const {
    Health health = view_.health;
    bool fits = true;
    for (std::uint8_t place = 0; place < view_.layout->boxes(); ++place)
        if (contains(row.places, place))
            fits = health.cannot_read(BoxIndex{place}, row.stripe) && fits;
    if (!fits) return Error{Code::io_failed};
    Avoided detour;
    for (const bool detours : {false, true}) {
        const bool in_band = goes_in_band(request, detours);
        auto plan = plan_rebuild(*view_.layout, health, row.places,
                                 {.stripe = row.stripe, .offset = row.offset, .length = slice_size},
                                 options_for(in_band));
        if (!plan) return plan.error();
        Planned planned{.plan = std::move(*plan), .part = 0, .in_band = in_band, .detour = detour};
        if (detours) return planned;
        detour = avoided_by(request, planned);
        if (detour.empty()) return planned;
    }
    return Error{Code::io_failed};
}

Avoided RequestPlanner::avoided_by(const Request& request, const Planned& planned) const {
    Avoided avoided;
    if (links_.empty() || planned.in_band || !can_detour()) return avoided;
    for (const Order& order : planned.plan.orders) {
        if (order.to.kind != PartyKind::box) continue;
        const std::uint8_t place = number(order.to.box);
        for (const Party& party : parties_of(order)) {
            if (party == the_host && links_.is_avoided(request.session, place))
                avoided.to_host |= only(place);
            if (party.kind == PartyKind::box && links_.is_avoided(place, number(party.box)))
                avoided.boxes.emplace_back(place, number(party.box));
        }
    }
    return avoided;
}

}  // namespace weft::raid
