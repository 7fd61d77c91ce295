// SPDX-License-Identifier: Apache-2.0
// All registered memory of a device. There is one way from a steering tag to bytes: resolve(),
// which checks index, key, domain, rights and bounds. It is the security boundary of the house.
//
// A tag is a 24-bit index and an 8-bit key. The index finds the entry at once; the key must be the
// one of its present registration. Regions hold memory; windows show a part of a region with rights
// of their own; allocated entries wait to be given memory by a fast registration.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iwarp/memory_range.hpp"
#include "weft/registered_memory.hpp"
#include "weft/result.hpp"
#include "weft/verbs.hpp"

namespace weft::iwarp {

enum class DomainId : std::uint32_t {};
/// The number of a queue pair, as windows of the second kind remember it.
enum class QueuePairId : std::uint32_t {};

/// On whose behalf a tag is used.
struct Asker {
    DomainId domain{};
    QueuePairId queue_pair{};
};

/// Why a tag was refused: Error::detail of what the table returns.
enum class MemoryFault : std::uint16_t {
    invalid_tag,   ///< no such index, or another key, or no memory under it now
    wrong_domain,  ///< or bound to another queue pair
    no_rights,
    out_of_bounds,
    offset_wraps,       ///< offset and size do not fit 64 bits
    cannot_invalidate,  ///< not a kind of tag that can be, or windows still stand on it
};
MemoryFault fault_of(Error error);

class MemoryTable {
public:
    /// `first_index`: where indices begin to be given out, so that tags are not the same each run.
    MemoryTable(std::size_t capacity, std::uint32_t first_index);

    Result<SteeringTag> add_region(DomainId domain, std::span<const Buffer> pieces,
                                   std::uint64_t address, Rights rights, Addressing addressing);
    /// An entry without memory: resolve() refuses it until fast_register().
    Result<SteeringTag> allocate(DomainId domain, std::size_t pieces_max);
    Result<void> fast_register(const verbs::FastRegistration& registration, Asker asker);
    Result<SteeringTag> add_window(DomainId domain, verbs::WindowKind kind);
    Result<void> bind(const verbs::WindowBinding& binding, Asker asker);

    /// From now on the tag opens nothing; its entry stays, to be registered or bound again. Only
    /// allocated entries and windows of the second kind can be invalidated.
    Result<void> invalidate(SteeringTag tag, Asker asker);
    /// From now on the tag opens nothing, and the entry is free once nobody holds it: see hold().
    /// A region with windows on it is refused.
    Result<void> remove(SteeringTag tag);
    /// Whether a removed tag's memory is still lent.
    bool is_held(SteeringTag tag) const;

    /// The bytes, if `asker` may use them so. A size of 0 is not looked at, and gives no bytes.
    Result<MemoryRange> resolve(SteeringTag tag, std::uint64_t offset, std::size_t size,
                                Rights asked, Asker asker) const;

    /// Keeps the memory of a resolved tag from being given back while bytes of it are lent to the
    /// network. Every hold() has its release().
    void hold(SteeringTag tag);
    void release(SteeringTag tag);

    std::size_t size() const;  ///< entries in use

private:
    // ... see memory_table.cpp
};

}  // namespace weft::iwarp
