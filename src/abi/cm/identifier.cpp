// SPDX-License-Identifier: Apache-2.0
// The life of an identifier, apart from what it is used for.
#include <utility>

#include "abi/cm/objects.hpp"
#include "abi/verbs/acknowledgements.hpp"
#include "abi/verbs/inventory.hpp"

namespace weft::abi {

Identifier::Identifier(void* its_context, rdma_port_space space, ibv_qp_type type) : rdma_cm_id{} {
    context = its_context;
    ps = space;
    qp_type = type;
}

Identifier::~Identifier() {
    silence(*this);
    auto* own = is_synchronous ? reports_to() : nullptr;
    report_to(*this, nullptr);
    if (own) bury(*own);
}

void Identifier::call_later(Duration delay, std::function<void()> task) {
    auto& world = Engine::get().world();
    timer = world.make_timer(std::move(task));
    timer->set(world.now() + delay);
}

QueuePair* queue_pair_of(Identifier& one) {
    auto& all = Inventory::get().queue_pairs;
    auto found = all.find(one.queue_pair);
    bool is_it = found != all.end() && found->second->resets == one.queue_pair_resets;
    return is_it ? found->second : nullptr;
}

void silence(Identifier& one) {
    bool was_in_use = one.stage == Stage::connecting || one.stage == Stage::accepted ||
                      one.stage == Stage::connected;
    one.timer.reset();
    one.listener.reset();
    one.request.reset();
    one.connection.reset();
    one.reserved_port.close();
    one.stage = Stage::over;
    if (was_in_use)
        if (auto* queue_pair = queue_pair_of(one)) set_state(*queue_pair, IBV_QPS_ERR);
    take_events_of(one);
}

bool give_own_channel(Identifier& one) {
    auto channel = make_channel();
    if (!channel) return false;
    report_to(one, channel.release());
    one.is_synchronous = true;
    return true;
}

namespace {

bool is_known(rdma_port_space space) {
    return space == RDMA_PS_TCP || space == RDMA_PS_UDP || space == RDMA_PS_IPOIB ||
           space == RDMA_PS_IB;
}

}  // namespace

int make_identifier(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                    rdma_port_space space, ibv_qp_type type) {
    return act_or_fail([&]() -> int {
        if (!id || !is_known(space)) return fail_with(EINVAL);
        Hold hold;
        if (!Engine::start()) return -1;
        if (channel && of(*channel).is_inherited()) return fail_with(EIO);
        auto made = std::make_unique<Identifier>(context, space, type);
        if (channel)
            report_to(*made, &of(*channel));
        else if (!give_own_channel(*made))
            return -1;
        *id = made.release();
        return 0;
    });
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space space) {
    bool of_datagrams = space == RDMA_PS_UDP || space == RDMA_PS_IPOIB;
    return make_identifier(channel, id, context, space, of_datagrams ? IBV_QPT_UD : IBV_QPT_RC);
}

int rdma_destroy_id(rdma_cm_id* id) {
    if (!id) return fail_with(EINVAL);
    auto& one = of(*id);
    {
        Hold hold;
        if (one.is_inherited()) {
            one.has_descriptors() ? one.reserved_port.close() : one.reserved_port.forget();
            return 0;  // the rest of it points into the parent's engine
        }
        silence(one);
    }
    show(one, nullptr);
    await_acknowledgements(one, one.events_acknowledged, one.events_delivered);
    Hold hold;
    delete &one;
    return 0;
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
    return act_or_fail([&]() -> int {
        if (!id) return fail_with(EINVAL);
        auto& one = of(*id);
        if (one.is_synchronous && !channel) return fail_with(EINVAL);
        if (one.is_synchronous) show(one, nullptr);
        std::uint32_t delivered = 0;
        {
            Hold hold;
            if (one.is_inherited() || (channel && of(*channel).is_inherited()))
                return fail_with(EIO);
            auto* own = one.is_synchronous ? one.reports_to() : nullptr;
            if (channel) {
                report_to(one, &of(*channel));
                one.is_synchronous = false;
            } else if (!give_own_channel(one)) {
                return -1;
            }
            if (own) bury(*own);
            delivered = one.events_delivered;
        }
        await_acknowledgements(one, one.events_acknowledged, delivered);
        return 0;
    });
}

}  // extern "C"
