// SPDX-License-Identifier: Apache-2.0
// Protection domains.
#include "abi/verbs/context.hpp"

using namespace weft::abi;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* face) {
    Hold hold;
    auto& context = of(*face);
    if (int wrong = why_not(context, Kind::domain)) return refuse(wrong);
    return make_or_refuse([&]() -> ibv_pd* {
        auto domain = std::make_unique<Domain>(context);
        domain->engine_side = Engine::get().device().make_domain();
        return domain.release();
    });
}

int ibv_dealloc_pd(ibv_pd* face) {
    Hold hold;
    auto& domain = of(*face);
    if (domain.is_inherited()) return 0;
    if (domain.users > 0) return EBUSY;
    delete &domain;
    return 0;
}

}  // extern "C"
