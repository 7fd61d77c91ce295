// SPDX-License-Identifier: Apache-2.0
#include "raid/attempt_maker.hpp"

namespace weft::raid {
namespace {

Mask boxes_of(const Plan& plan) {
    Mask boxes = 0;
    for (const Order& order : plan.orders)
        if (order.to.kind == PartyKind::box) boxes |= only(number(order.to.box));
    return boxes;
}

}  // namespace

RequestPlanner::Options AttemptMaker::planner_options(const VolumeEngineOptions& options,
                                                      const OwnWork& own) {
    const bool has_windows = own.windows() >= options.windows;
    return {.plan = options.plan,
            .window_bytes = options.window_bytes,
            .upkeep_bytes = options.upkeep_bytes,
            .own_window_bytes = has_windows ? own.window_limit() : 0};
}

/// Of a write that was cut short amid its commit: what is left at odds, and whether that can be
/// undone by doing it again.
Result<void> AttemptMaker::make_up_for(Request& request) const {
    if (request.uncommitted == 0) return {};
    const Layout& layout = *view_.layout;
    Mask away = ~Mask{0}, columns_lost_elsewhere = 0;
    for (const Band& band : request.bands) {
        away &= view_.health.absent_at(band.stripe);
        columns_lost_elsewhere |= view_.health.lost_columns(layout, band.stripe) &
                                  (only(layout.data_columns()) - 1) & ~band.columns;
    }
    request.uncommitted &= ~away;
    if (request.uncommitted == 0) return {};
    request.recomputes_parity = true;
    if (layout.level() != Level::mirror && columns_lost_elsewhere != 0)
        return Error{Code::io_failed};
    return {};
}

/// First what it has come upon is restored, then its next part is served.
Result<RequestPlanner::Planned> AttemptMaker::plan_next(Request& request, Attempt::Purpose& purpose,
                                                        Instant now) {
    const bool restores = request.repairs.needed();
    const auto made_up = make_up_for(request);
    if (!made_up && !restores) return made_up.error();
    WEFT_TRY(auto restoring, corrupt_.plan(request));
    purpose = restoring ? Attempt::Purpose::restore : Attempt::Purpose::serve;
    if (restoring) return std::move(*restoring);
    return planner_.plan_part(request, hedged_.to_avoid(request, now));
}

/// None: no window is free where it is needed.
Result<std::unique_ptr<Attempt>> AttemptMaker::make(AttemptOwner& owner, Request& request,
                                                    Instant now) {
    Attempt::Terms terms;
    WEFT_TRY(auto planned, plan_next(request, terms.purpose, now));
    request.part = planned.part;
    lacked_own_window_ = false;
    const auto window = windows_.take(boxes_of(planned.plan));
    if (!window) return std::unique_ptr<Attempt>();
    terms.window = *window;
    do terms.transaction = ledger_.begin();
    while (windows_.is_key_kept(*window, terms.transaction));
    if (planned.plan.controller_window > 0) {
        Buffer local = request.host ? request.host->local : Buffer{};
        if (!local.empty()) local = local.subspan(request.done);
        auto own = own_.open(terms.transaction, planned.plan.controller_window, local);
        if (!own) windows_.give_back(*window);
        lacked_own_window_ = !own && own.error().code == Code::exhausted;
        if (lacked_own_window_) return std::unique_ptr<Attempt>();
        if (!own) return own.error();
        terms.own = *own;
    }
    terms.plan = std::move(planned.plan);
    terms.in_band = planned.in_band;
    terms.detour = std::move(planned.detour);
    terms.journaled = view_.has_journal();
    terms.repeats_commits =
        request.is_host() && options_.plan.style == Style::vectored && !terms.journaled;
    terms.generation = view_.volume.generation;
    terms.began = now;
    return std::make_unique<Attempt>(owner, request, std::move(terms));
}

}  // namespace weft::raid
