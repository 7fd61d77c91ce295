// SPDX-License-Identifier: Apache-2.0
#include "abi/cm/devices.hpp"

#include <map>

#include "abi/cm/socket_names.hpp"

namespace weft::abi {
namespace {

/// Inside a Hold. Every RNIC's domain for those who name none; a child of fork() has its own.
ibv_pd*& default_domain(ibv_context* device) {
    struct Domains : Born {
        std::map<ibv_context*, ibv_pd*> by_device;
    };
    static auto* domains = new Domains;
    if (domains->is_inherited()) domains = new Domains;
    return domains->by_device[device];
}

ibv_pd* default_domain_of(ibv_context* device) {
    {
        Hold hold;
        if (auto* known = default_domain(device)) return known;
    }
    auto* made = ibv_alloc_pd(device);
    if (!made) return nullptr;
    ibv_pd* kept = nullptr;
    {
        Hold hold;
        auto& place = default_domain(device);
        if (!place) place = made;
        kept = place;
    }
    if (kept != made) ibv_dealloc_pd(made);
    return kept;
}

}  // namespace

bool attach_device(Identifier& one) {
    auto address = local_end(one).address().host;
    address = address.substr(0, address.find('%'));  // devices know nothing of zones
    ibv_context* device = nullptr;
    {
        Hold hold;
        if (auto* context = shared_context(address)) device = &context->face();
    }
    if (!device) return false;
    auto* domain = default_domain_of(device);
    if (!domain) return false;
    one.verbs = device;
    one.pd = domain;
    one.port_num = 1;
    return true;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

ibv_context** rdma_get_devices(int* count) {
    Hold hold;
    auto contexts = shared_contexts();
    auto** list = new ibv_context*[contexts.size() + 1];
    for (std::size_t i = 0; i < contexts.size(); ++i) list[i] = &contexts[i]->face();
    list[contexts.size()] = nullptr;
    if (count) *count = static_cast<int>(contexts.size());
    return list;
}

void rdma_free_devices(ibv_context** list) {
    delete[] list;
}

}  // extern "C"
