// SPDX-License-Identifier: Apache-2.0
// What the memory table keeps under one index, and the questions a use of it must pass.
//
// A window has no memory of its own: it names the region it shows and how far into it its first
// byte lies. A region names itself, so that from any entry the way to the bytes is the same.
#pragma once

#include <cstdint>

#include "iwarp/memory_fault.hpp"
#include "iwarp/memory_tags.hpp"
#include "iwarp/piece_list.hpp"
#include "weft/registered_memory.hpp"

namespace weft::iwarp {

enum class DomainId : std::uint32_t {};
/// The number of a queue pair, as windows of the second kind remember it.
enum class QueuePairId : std::uint32_t {};

inline constexpr auto every_remote_right =
    Rights::remote_read | Rights::remote_write | Rights::remote_atomic;

/// On whose behalf a tag is used.
struct Asker {
    DomainId domain{};
    QueuePairId queue_pair{};
    /// What the queue pair lets its peer do at most, if it has such a limit.
    const Rights* limit = nullptr;

    bool may(Rights asked) const {
        return limit == nullptr || allows(*limit, asked & every_remote_right);
    }
};

struct MemoryEntry {
    enum class Kind : std::uint8_t {
        region,                ///< has its memory from beginning to end
        allocated,             ///< a region that is given memory by fast registrations
        window_by_domain,      ///< type 1
        window_by_queue_pair,  ///< type 2
    };
    enum class State : std::uint8_t {
        free,
        closed,  ///< in use, and opens nothing: not registered or not bound
        open,
        discarding,  ///< peers may write as if it were open, and what they write goes nowhere
        removed,     ///< opens nothing, and is free once nobody holds it
    };

    Kind kind = Kind::region;
    State state = State::free;
    std::uint8_t key = 0;
    MemoryTags::KeyOrder key_order{};
    std::uint32_t keys_given = 0;  ///< of that order
    Rights rights{};
    DomainId domain{};
    QueuePairId queue_pair{};  ///< type 2: the only one it is for
    std::uint32_t slot = 0;    ///< where in the table this is
    std::uint32_t round = 0;   ///< which use of the slot: see MemoryTags
    std::uint32_t index = 0;   ///< of that use
    std::uint32_t region = 0;  ///< the slot of the region whose bytes these are
    std::uint64_t first = 0;   ///< the offset by which askers know its first byte
    std::uint64_t size = 0;
    std::uint64_t in_region = 0;  ///< how far into the region its first byte lies
    PieceList pieces{};           ///< of a region
    std::size_t pieces_max = 0;   ///< of an allocated one
    std::size_t windows = 0;      ///< bound to this region
    std::size_t holds = 0;        ///< on this region's memory
    MemoryEntry* next = nullptr;  ///< in the queue of free entries

    bool in_use() const { return state == State::closed || is_valid(); }
    /// Some use of the tag is allowed.
    bool is_valid() const { return state == State::open || state == State::discarding; }
    bool is_window() const {
        return kind == Kind::window_by_domain || kind == Kind::window_by_queue_pair;
    }
    bool is_for(Asker asker) const {
        return domain == asker.domain &&
               (kind != Kind::window_by_queue_pair || queue_pair == asker.queue_pair);
    }
    /// A window is for peers: it opens nothing to local work, which has the region's own tag.
    bool grants(Rights asked) const {
        if (is_window() && (asked & every_remote_right) == Rights{}) return false;
        return allows(rights, asked);
    }
    /// How far behind `first` the offset is, if `count` bytes (not none) from there are all inside.
    Result<std::uint64_t> place_of(std::uint64_t offset, std::uint64_t count) const {
        WEFT_CHECK(count > 0);
        if (offset > UINT64_MAX - (count - 1)) return refused(MemoryFault::offset_wraps);
        if (offset < first || count > size || offset - first > size - count)
            return refused(MemoryFault::out_of_bounds);
        return offset - first;
    }
};

}  // namespace weft::iwarp
