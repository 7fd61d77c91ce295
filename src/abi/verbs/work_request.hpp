// SPDX-License-Identifier: Apache-2.0
// Work as applications write it, and as the engine reads it.
#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <optional>
#include <span>

#include "abi/verbs/rights.hpp"
#include "verbs/limits.hpp"
#include "weft/verbs.hpp"

namespace weft::abi {

/// The pieces of memory of one request. Large, and not cleared for each: posting is inside a Hold,
/// so one for all will do.
class Pieces {
public:
    /// False if there are more than `most`.
    bool take(const ibv_sge* list, int count, std::uint32_t most) {
        if (count < 0 || static_cast<std::uint32_t>(count) > most) return false;
        count_ = static_cast<std::size_t>(count);
        for (std::size_t i = 0; i < count_; ++i)
            pieces_[i] = {list[i].addr, list[i].length, SteeringTag{list[i].lkey}};
        return true;
    }
    std::span<const verbs::LocalMemory> all() const { return {pieces_.data(), count_}; }

private:
    std::array<verbs::LocalMemory, verbs::limits::pieces> pieces_;
    std::size_t count_ = 0;
};

inline verbs::WindowBinding binding_of(std::uint32_t window_key, const ibv_mw_bind_info& info) {
    return {.window = SteeringTag{window_key},
            .region = SteeringTag{info.mr ? info.mr->lkey : 0},
            .address = info.addr,
            .size = info.length,
            .rights = rights_of(info.mw_access_flags),
            .addressing = info.mw_access_flags & IBV_ACCESS_ZERO_BASED ? Addressing::from_zero
                                                                       : Addressing::by_address};
}

/// What iWARP has. It cannot say a Send with immediate data, nor cut segments for someone.
inline std::optional<verbs::Operation> operation_of(ibv_wr_opcode opcode) {
    using enum verbs::Operation;
    switch (opcode) {
        case IBV_WR_RDMA_WRITE:
            return write;
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            return write_immediate;
        case IBV_WR_SEND:
            return send;
        case IBV_WR_RDMA_READ:
            return read;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            return compare_and_swap;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            return fetch_and_add;
        case IBV_WR_LOCAL_INV:
            return local_invalidate;
        case IBV_WR_BIND_MW:
            return bind_window;
        case IBV_WR_SEND_WITH_INV:
            return send_invalidate;
        default:
            return std::nullopt;
    }
}

}  // namespace weft::abi
