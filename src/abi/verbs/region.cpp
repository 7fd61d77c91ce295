// SPDX-License-Identifier: Apache-2.0
// Registered memory. Nothing is pinned: the bytes are read and written by this process itself, and
// memory that was unmapped under a registration fails the work that meets it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "abi/limits.hpp"
#include "abi/verbs/context.hpp"
#include "abi/verbs/event_descriptor.hpp"
#include "abi/verbs/inventory.hpp"
#include "abi/verbs/rights.hpp"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace weft::abi {

struct Region::Return {
    ~Return() {
        if (descriptor >= 0) ::close(descriptor);
    }
    bool is_done = false;
    int descriptor = -1;  ///< readable when it is; made only if somebody waits
};

namespace {

constexpr unsigned known_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB;

int check_access(unsigned access) {
    access &= ~static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
    if (access & IBV_ACCESS_ON_DEMAND) return EOPNOTSUPP;
    if (access & ~known_access) return EINVAL;
    bool changed_by_peers = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    return changed_by_peers && !(access & IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0;
}

/// Whether something is mapped at every page. The system looks, and does nothing else.
bool is_mapped(const void* address, std::size_t length) {
    if (length == 0) return true;
    auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto first = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
    auto end = reinterpret_cast<std::uintptr_t>(address) + length;
    return end > first && ::msync(reinterpret_cast<void*>(first), end - first, MS_ASYNC) == 0;
}

struct Wish {
    void* address = nullptr;
    std::size_t length = 0;
    std::uint64_t first = 0;  ///< of the first byte, as peers count
    unsigned access = 0;
};

int check(const Wish& wish) {
    if (int wrong = check_access(wish.access)) return wrong;
    return is_mapped(wish.address, wish.length) ? 0 : EFAULT;
}

Result<std::unique_ptr<verbs::MemoryRegion>> ask_engine(Domain& domain, const Wish& wish) {
    Buffer memory{static_cast<std::byte*>(wish.address), wish.length};
    auto first = wish.access & IBV_ACCESS_ZERO_BASED ? 0 : wish.first;
    return domain.engine_side->register_pieces({&memory, 1}, first, rights_of(wish.access));
}

void show(Region& region, const Wish& wish) {
    region.addr = wish.address;
    region.length = wish.length;
    region.access = wish.access;
    region.lkey = region.rkey = static_cast<std::uint32_t>(region.engine_side->tag());
    region.handle = region.lkey;
}

ibv_mr* register_memory(ibv_pd* face, const Wish& wish) {
    if (int wrong = check(wish)) return refuse(wrong);
    Hold hold;
    auto& domain = of(*face);
    auto& context = of(*face->context);
    if (domain.is_inherited()) return refuse(EIO);
    if (int wrong = why_not(context, Kind::region)) return refuse(wrong);
    return make_or_refuse([&]() -> ibv_mr* {
        auto region = std::make_unique<Region>(context, domain);
        auto made = ask_engine(domain, wish);
        if (!made) return refuse(errno_of(made.error()));
        region->engine_side = std::move(*made);
        show(*region, wish);
        return region.release();
    });
}

/// Closes the tag, if it is not yet; true if the network has no byte of the memory. Inside a Hold.
Result<bool> begin_return(Region& region) {
    if (!region.returning) {
        auto returning = std::make_shared<Region::Return>();
        auto begun = region.engine_side->deregister([returning] {
            returning->is_done = true;
            if (returning->descriptor >= 0) count_event(returning->descriptor);
        });
        if (!begun) return begun.error();
        region.returning = std::move(returning);
        Engine::get().poll();
    }
    if (!region.returning->is_done && region.returning->descriptor < 0)
        region.returning->descriptor = make_event_descriptor();
    return region.returning->is_done;
}

/// Inside a Hold. A peer takes nothing, and has had its time. Programs free their memory now,
/// whatever they are told, and the network must not send what comes to lie there next: so those
/// connections end.
bool insist_on_return(Region& region) {
    for (auto& [number, queue_pair] : Inventory::get().queue_pairs)
        queue_pair->engine_side->give_back(region.engine_side->tag());
    Engine::get().push();
    return region.returning->is_done;
}

/// Waits until all bytes are back, so that nobody sees what the caller does with the memory next.
/// Outside a Hold. EBUSY: windows are bound to it.
int take_back(Region& region) {
    using Clock = std::chrono::steady_clock;
    auto end = Clock::now() + std::chrono::milliseconds(limits::deregistration_ms);
    for (;;) {
        Engine* engine = nullptr;
        long long left = 0;
        {
            Hold hold;
            auto is_back = begin_return(region);
            if (!is_back) return EBUSY;
            if (*is_back) return 0;
            left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
            if (left <= 0) return insist_on_return(region) ? 0 : EBUSY;
            engine = &Engine::get();
        }
        // Without a descriptor nobody is woken, and it must be looked at now and then.
        bool is_told = region.returning->descriptor >= 0;
        engine->wait_readable(region.returning->descriptor,
                              static_cast<int>(is_told ? left : std::min(left, 10LL)));
    }
}

/// What the region is to be after a change of some of its properties.
Wish changed(const Region& region, int flags, void* address, std::size_t length, int access) {
    Wish wish{region.addr, region.length, 0, region.access};
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        wish.address = address;
        wish.length = length;
        wish.first = reinterpret_cast<std::uintptr_t>(address);
    } else {
        wish.first = region.engine_side->address();
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS) wish.access = static_cast<unsigned>(access);
    return wish;
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int access) {
    return register_memory(domain, {address, length, reinterpret_cast<std::uintptr_t>(address),
                                    static_cast<unsigned>(access)});
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* domain, void* address, std::size_t length, std::uint64_t first,
                        int access) {
    return register_memory(domain, {address, length, first, static_cast<unsigned>(access)});
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t length, std::uint64_t first,
                         unsigned access) {
    return register_memory(domain, {address, length, first, access});
}

int ibv_rereg_mr(ibv_mr* face, int flags, ibv_pd* new_domain, void* address, std::size_t length,
                 int access) {
    auto fail = [](int why, int how) {
        errno = why;
        return how;
    };
    constexpr int all = IBV_REREG_MR_FLAGS_SUPPORTED;
    if (flags == 0 || (flags & ~all)) return fail(EINVAL, IBV_REREG_MR_ERR_INPUT);
    if ((flags & IBV_REREG_MR_CHANGE_PD) && !new_domain)
        return fail(EINVAL, IBV_REREG_MR_ERR_INPUT);
    auto& region = of(*face);
    auto& domain = of(flags & IBV_REREG_MR_CHANGE_PD ? *new_domain : *face->pd);
    Wish wish;
    std::unique_ptr<weft::verbs::MemoryRegion> fresh;
    {
        Hold hold;
        if (region.is_inherited() || domain.is_inherited())
            return fail(EIO, IBV_REREG_MR_ERR_INPUT);
        wish = changed(region, flags, address, length, access);
        if (int wrong = check(wish)) return fail(wrong, IBV_REREG_MR_ERR_INPUT);
        auto made = ask_engine(domain, wish);
        if (!made) return fail(errno_of(made.error()), IBV_REREG_MR_ERR_INPUT);
        fresh = std::move(*made);
    }
    int failed = take_back(region);
    Hold hold;
    if (failed) {
        fresh.reset();
        return fail(failed, region.returning ? IBV_REREG_MR_ERR_CMD : IBV_REREG_MR_ERR_INPUT);
    }
    region.returning.reset();
    region.engine_side = std::move(fresh);
    region.pd = &domain;
    region.domain_use.emplace(domain.users);
    show(region, wish);
    return 0;
}

int ibv_dereg_mr(ibv_mr* face) {
    auto& region = of(*face);
    {
        Hold hold;
        if (region.is_inherited()) return 0;
    }
    if (int failed = take_back(region)) return failed;
    Hold hold;
    delete &region;
    return 0;
}

}  // extern "C"
