// SPDX-License-Identifier: Apache-2.0
#include "abi/cm/devices.hpp"

#include <map>
#include <string>

#include "abi/cm/limits.hpp"
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

/// Inside a Hold. To ask the system for all interfaces takes as long as a connection, and everybody
/// waits meanwhile: who makes many finds here what was so a moment ago.
ibv_context* device_with(const std::string& address) {
    struct Known {
        ibv_context* device;
        Instant until;
    };
    struct AllKnown : Born {
        std::map<std::string, Known> by_address;
    };
    static auto* all = new AllKnown;
    if (all->is_inherited()) all = new AllKnown;
    auto now = Engine::get().world().now();
    if (auto known = all->by_address.find(address); known != all->by_address.end()) {
        if (now < known->second.until) return known->second.device;
        all->by_address.clear();
    }
    auto* found = shared_context(address);
    if (!found) return nullptr;
    all->by_address[address] = {&found->face(), now + limits::device_memory};
    return &found->face();
}

}  // namespace

bool attach_device(Identifier& one) {
    auto address = local_end(one).address().host;
    address = address.substr(0, address.find('%'));  // devices know nothing of zones
    ibv_context* device = nullptr;
    {
        Hold hold;
        device = device_with(address);
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
    return make_or_refuse([&]() -> ibv_context** {
        auto found = shared_contexts();
        if (!found) return refuse(found.error().detail);
        auto& contexts = *found;
        auto** list = new ibv_context*[contexts.size() + 1];
        for (std::size_t i = 0; i < contexts.size(); ++i) list[i] = &contexts[i]->face();
        list[contexts.size()] = nullptr;
        if (count) *count = static_cast<int>(contexts.size());
        return list;
    });
}

void rdma_free_devices(ibv_context** list) {
    delete[] list;
}

}  // extern "C"
