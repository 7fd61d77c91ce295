// SPDX-License-Identifier: Apache-2.0
// riomap(), riounmap() and riowrite().
#include "abi/sockets/mapping.hpp"

#include <rdma/rsocket.h>

#include <algorithm>

#include "abi/sockets/calls.hpp"
#include "abi/sockets/table.hpp"

#undef ibv_reg_mr  // its rights are no constant here

namespace weft::abi::sockets {
namespace {

/// The first of the peer's slots that no mapping has.
std::optional<std::uint32_t> free_slot(Socket& socket) {
    auto slots = socket.stream().peers_mapping_slots();
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
        auto has_it = [&](const LocalMapping& one) { return one.slot == slot; };
        if (std::ranges::none_of(socket.mappings, has_it)) return slot;
    }
    return std::nullopt;
}

/// 0, or an error number.
int map(Socket& socket, void* memory, std::size_t size, int protection, std::uint64_t offset) {
    std::lock_guard locked(socket.lock);
    if (!socket.endpoint || (protection & ~PROT_WRITE) != 0) return EINVAL;
    LocalMapping mapping{.offset = offset};
    int access = IBV_ACCESS_LOCAL_WRITE;
    if (protection & PROT_WRITE) {
        access |= IBV_ACCESS_REMOTE_WRITE;
        mapping.slot = free_slot(socket);
        if (!mapping.slot) return ENOMEM;
    }
    mapping.region = ibv_reg_mr(socket.endpoint->domain(), memory, size, access);
    if (!mapping.region) return errno;
    socket.mappings.push_back(mapping);
    return 0;
}

/// One message's worth, with room for it.
void write_some(Socket& socket, std::unique_lock<std::mutex>& lock, ConstBuffer bytes,
                const Window& to) {
    auto& stream = socket.stream();
    auto& outgoing = stream.outgoing();
    if (bytes.size() <= socket.endpoint->inline_bytes())
        return stream.note(outgoing.write_inline(bytes, to));
    auto count = static_cast<std::uint32_t>(bytes.size());
    auto room = outgoing.room(count);
    lock.unlock();
    std::copy_n(bytes.begin(), room[0].size(), room[0].begin());
    std::copy_n(bytes.begin() + room[0].size(), room[1].size(), room[1].begin());
    lock.lock();
    if (stream.is_connected()) stream.note(outgoing.write(count, to));
}

/// 0 or an error number; `bytes` and `offset` move on as far as it came.
int write_all(Socket& socket, ConstBuffer& bytes, std::uint64_t& offset, int flags) {
    std::lock_guard turn(socket.sending);
    std::unique_lock lock(socket.lock);
    Patience patience{.may_wait = !socket.settings.is_nonblocking() && !(flags & MSG_DONTWAIT)};
    if (int failed = await_open(socket, lock, patience)) return failed;
    if (int failed = tell_mappings(socket, lock, patience)) return failed;
    auto& stream = socket.stream();
    refresh(socket, lock);  // what the peer has mapped since
    while (!bytes.empty()) {
        if (!stream.can_write_mapped()) {
            int failed = wait_until(socket, lock, patience, [&] {
                return stream.can_write_mapped() || !stream.is_writable();
            });
            if (failed) return failed;
        }
        if (!stream.is_writable()) return ECONNRESET;
        auto target = stream.find_mapping(offset);
        if (!target) return 0;
        auto count =
            std::min(stream.outgoing().next_transfer_unasked(bytes.size()), target->length);
        write_some(socket, lock, bytes.first(count), *target);
        bytes = bytes.subspan(count);
        offset += count;
    }
    return 0;
}

}  // namespace

int tell_mappings(Socket& socket, std::unique_lock<std::mutex>& lock, const Patience& patience) {
    auto& stream = socket.stream();
    for (;;) {
        auto untold = [](const LocalMapping& one) { return one.slot && !one.is_told; };
        if (std::ranges::none_of(socket.mappings, untold)) return 0;
        if (!stream.can_send()) {
            int failed = wait_until(socket, lock, patience,
                                    [&] { return stream.can_send() || !stream.is_writable(); });
            if (failed) return failed;
        }
        if (!stream.is_writable()) return ECONNRESET;
        // It may have been unmapped while we waited.
        auto next = std::ranges::find_if(socket.mappings, untold);
        if (next == socket.mappings.end()) return 0;
        next->is_told = true;
        const auto& region = *next->region;
        stream.tell_mapping(*next->slot,
                            {next->offset,
                             {reinterpret_cast<std::uintptr_t>(region.addr), region.rkey,
                              static_cast<std::uint32_t>(region.length)}});
    }
}

}  // namespace weft::abi::sockets

using namespace weft::abi::sockets;

extern "C" {

off_t riomap(int number, void* memory, size_t size, int protection, int, off_t offset) {
    return act_or_fail([&]() -> off_t {
        auto socket = Table::find(number);
        if (!socket) return -1;
        if (offset == -1) offset = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(memory));
        int failed = map(*socket, memory, size, protection, static_cast<std::uint64_t>(offset));
        return failed ? fail_with(failed) : offset;
    });
}

int riounmap(int number, void* memory, size_t size) {
    auto socket = Table::find(number);
    if (!socket) return -1;
    std::lock_guard locked(socket->lock);
    auto found = std::ranges::find_if(socket->mappings, [&](const LocalMapping& one) {
        return one.region->addr == memory && one.region->length == size;
    });
    if (found == socket->mappings.end()) return fail_with(EINVAL);
    ibv_dereg_mr(found->region);
    socket->mappings.erase(found);
    return 0;
}

size_t riowrite(int number, const void* bytes, size_t count, off_t offset, int flags) {
    return act_or_fail([&]() -> size_t {
        auto socket = Table::find(number);
        if (!socket) return static_cast<size_t>(-1);
        weft::ConstBuffer left{static_cast<const std::byte*>(bytes), count};
        auto place = static_cast<std::uint64_t>(offset);
        int failed = write_all(*socket, left, place, flags);
        if (failed && left.size() == count) return static_cast<size_t>(fail_with(failed));
        return count - left.size();
    });
}

}  // extern "C"
