// SPDX-License-Identifier: Apache-2.0
// Memory windows: part of a region, shown to peers under a tag and rights of its own.
#include "abi/verbs/context.hpp"
#include "abi/verbs/work_request.hpp"

namespace weft::abi {

ibv_mw* allocate_window(ibv_pd* face, ibv_mw_type type) {
    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return refuse(EINVAL);
    Hold hold;
    auto& domain = of(*face);
    auto& context = of(*face->context);
    if (domain.is_inherited()) return refuse(EIO);
    if (int wrong = why_not(context, Kind::window)) return refuse(wrong);
    return make_or_refuse([&]() -> ibv_mw* {
        auto window = std::make_unique<Window>(context, domain);
        auto made = domain.engine_side->allocate_window(type == IBV_MW_TYPE_1
                                                            ? verbs::WindowKind::by_domain
                                                            : verbs::WindowKind::by_queue_pair);
        if (!made) return refuse(errno_of(made.error()));
        window->engine_side = std::move(*made);
        window->type = type;
        window->rkey = static_cast<std::uint32_t>(window->engine_side->tag());
        window->handle = window->rkey;
        return window.release();
    });
}

int free_window(ibv_mw* face) {
    Hold hold;
    auto& window = of(*face);
    if (!window.is_inherited()) delete &window;
    return 0;
}

/// Type 1: the window takes the next key when the work's turn comes, and applications want to know
/// it now. Should the work be flushed, the keys between are never used.
int bind_window(ibv_qp* face, ibv_mw* window, ibv_mw_bind* wish) {
    Hold hold;
    auto& queue_pair = of(*face);
    if (int wrong = why_unusable(queue_pair)) return wrong;
    if (of(*window).is_inherited()) return EIO;
    auto binding = binding_of(window->rkey, wish->bind_info);
    verbs::SendRequest request{
        .id = wish->wr_id,
        .operation = verbs::Operation::bind_window,
        .signalled = queue_pair.all_signalled || (wish->send_flags & IBV_SEND_SIGNALED),
        .fenced = (wish->send_flags & IBV_SEND_FENCE) != 0,
        .binding = &binding};
    auto posted = queue_pair.engine_side->post(request);
    if (!posted) return errno_of(posted.error());
    window->rkey = ibv_inc_rkey(window->rkey);
    Engine::get().push();
    return 0;
}

}  // namespace weft::abi
