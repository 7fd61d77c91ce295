// SPDX-License-Identifier: Apache-2.0
#include "abi/verbs/context.hpp"

#include <unistd.h>

#include "abi/verbs/devices.hpp"
#include "abi/verbs/event_descriptor.hpp"
#include "abi/verbs/inventory.hpp"

namespace weft::abi {
namespace {

/// What is left null, the headers' inline functions refuse by themselves.
void fill_tables(verbs_context& table) {
    table.sz = sizeof table;
    table.query_port = query_port;
    table.query_device_ex = query_device_ex;
    table.create_cq_ex = create_completion_queue;
    table.create_srq_ex = create_shared_receive_queue;
    table.get_srq_num = number_of_shared_receive_queue;
    table.create_qp_ex = create_queue_pair;

    auto& face = table.context;
    face.abi_compat = __VERBS_ABI_IS_EXTENDED;
    face.cmd_fd = -1;
    face.num_comp_vectors = 1;
    face.mutex = PTHREAD_MUTEX_INITIALIZER;
    face.ops.alloc_mw = allocate_window;
    face.ops.bind_mw = bind_window;
    face.ops.dealloc_mw = free_window;
    face.ops.poll_cq = poll_completions;
    face.ops.req_notify_cq = request_notification;
    face.ops.post_srq_recv = post_shared_receives;
    face.ops.post_send = post_sends;
    face.ops.post_recv = post_receives;
}

Context* shared_context_of(RnicDevice& device) {
    auto& context = Inventory::get().shared_contexts[&device];
    if (context) return context;
    context = open_context(device);
    if (context) ++context->users;  // ours: an application that closes it does no harm
    return context;
}

}  // namespace

Context* open_context(RnicDevice& device) {
    if (!Engine::start()) return nullptr;
    Engine::on_event(hear_async_event);
    int events = make_event_descriptor();
    if (events < 0) return nullptr;
    auto* context = new Context;
    fill_tables(context->table);
    context->device = &device;
    context->face().device = &device.face;
    context->face().async_fd = events;
    return context;
}

void free_context(Context& context) {
    ::close(context.face().async_fd);
    delete &context;
}

Context* shared_context(const std::string& address) {
    return make_or_refuse([&]() -> Context* {
        auto* device = device_with_address(address);
        return device ? shared_context_of(*device) : nullptr;
    });
}

Result<std::vector<Context*>> shared_contexts() {
    WEFT_TRY(auto devices, list_devices());
    std::vector<Context*> contexts;
    for (auto* device : devices)
        if (auto* context = shared_context_of(*device)) contexts.push_back(context);
    return contexts;
}

int errno_of(const Error& error) {
    switch (error.code) {
        case Code::truncated:
        case Code::malformed:
        case Code::out_of_range:
            return EINVAL;
        case Code::unsupported:
            return EOPNOTSUPP;
        case Code::access_denied:
            return EACCES;
        case Code::exhausted:
            return ENOMEM;
        // These come from the system, and then the system's own word is the better one.
        case Code::disconnected:
            return error.detail ? error.detail : ENOTCONN;
        case Code::timed_out:
            return error.detail ? error.detail : ETIMEDOUT;
        case Code::not_found:
            return error.detail ? error.detail : ENOENT;
        case Code::io_failed:
            return error.detail ? error.detail : EIO;
    }
    return EIO;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

ibv_context* ibv_open_device(ibv_device* device) {
    Hold hold;
    return make_or_refuse([&]() -> ibv_context* {
        auto* context = open_context(of(*device));
        return context ? &context->face() : nullptr;
    });
}

int ibv_close_device(ibv_context* face) {
    Hold hold;
    auto& context = of(*face);
    if (context.born.is_inherited()) {
        // The rest of it points into the parent's engine.
        if (context.born.has_descriptors()) ::close(face->async_fd);
        return 0;
    }
    // Programs close a context under objects they never destroyed; those may still be spoken of.
    context.is_closed = true;
    if (context.users == 0) free_context(context);
    return 0;
}

}  // extern "C"
