// SPDX-License-Identifier: Apache-2.0
// All registered memory of a device. There is one way from a steering tag to bytes: resolve(),
// which checks index, key, domain, rights and bounds. It is the security boundary of the house.
//
// A tag is a 24-bit index and an 8-bit key. The index finds the entry at once; the key must be the
// one of its present registration. Which they are, MemoryTags chooses: an index that was given out
// does not come again before all others of its slot were, so tags that were removed stay dead.
// Regions hold memory; windows show a part of a region with rights
// of their own; allocated entries wait to be given memory by a fast registration.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/intrusive_queue.hpp"
#include "iwarp/memory_entry.hpp"
#include "iwarp/memory_holds.hpp"
#include "iwarp/memory_tags.hpp"
#include "weft/verbs.hpp"

namespace weft::iwarp {

/// The most that resolve() is asked for on behalf of a peer that writes: a segment's payload.
inline constexpr std::size_t write_max = UINT16_MAX;
/// A region's pieces: a gibibyte of scattered 4 KiB pages is four such regions.
inline constexpr std::size_t pieces_per_region_max = 1u << 16;

class MemoryTable final : public MemoryHolds {
public:
    /// `seed`: decides which tags are given out and in which order. A peer must not know it.
    MemoryTable(std::size_t capacity, std::uint64_t seed);
    MemoryTable(const MemoryTable&) = delete;
    MemoryTable& operator=(const MemoryTable&) = delete;

    // What the owners of memory do. Tags that come back are new ones: their key has moved on.

    /// `address` is the first byte's offset, unless they count from zero.
    Result<SteeringTag> add_region(DomainId domain, std::span<const Buffer> pieces,
                                   std::uint64_t address, Rights rights, Addressing addressing);
    /// An entry without memory: resolve() refuses it until fast_register().
    Result<SteeringTag> allocate(DomainId domain, std::size_t pieces_max);
    /// A tag of an allocated entry for its next fast_register(), with a key that none before it
    /// had. None: it has had all keys, or is none; then allocate another.
    std::optional<SteeringTag> fresh_tag(SteeringTag tag);
    /// Puts memory under an allocated tag that has none, and takes the key the tag comes with.
    /// Refused as still_lent (Code::exhausted) while bytes of the memory it had before are held:
    /// they would become bytes of the new. Work that meets this waits for a release().
    Result<void> fast_register(const verbs::FastRegistration& registration, Asker asker);
    Result<SteeringTag> add_window(DomainId domain, verbs::WindowKind kind);
    /// Returns the tag by which the window is known from now on. A window of the first kind may be
    /// bound again and takes the key after that of `binding.window`, whether or not that is its
    /// present one: the binding of which it was may have been flushed. A size of 0 unbinds it. One
    /// of the second kind must be invalidated first, takes the key that `binding.window` comes
    /// with, and is from now on for the asker's queue pair alone.
    Result<SteeringTag> bind(const verbs::WindowBinding& binding, Asker asker);

    /// From now on the tag opens nothing; its entry stays, to be registered or bound again. Only
    /// allocated entries and windows of the second kind can be invalidated, by whoever may use
    /// them; and it must be valid (RFC 5040 section 7.2).
    Result<void> invalidate(SteeringTag tag, Asker asker);
    /// The same because a peer says so: only what is open to peers (RFC 5042 section 6.4.5). What
    /// an answer of another connection comes in by is none of its business.
    Result<void> invalidate_for_peer(SteeringTag tag, Asker asker);
    /// The memory is its owner's again, as after invalidate(), and is_held() until it is. But peers
    /// may go on writing by the tag, under the same domain, rights and bounds: those bytes go
    /// nowhere. To all but a remote Write the tag is as invalid as a closed one. invalidate() or
    /// remove() ends that. What could be invalidated can be discarded, if peers may write to it.
    Result<void> discard(SteeringTag tag, Asker asker);

    /// From now on the tag opens nothing, and the entry is free once nobody holds it: see hold().
    /// A region with windows on it is refused. The key is looked at only if it cannot have changed:
    /// the owner of a window or an allocated entry may say any tag it ever had.
    Result<void> remove(SteeringTag tag);
    /// Closes all windows that show a region: for an owner who is going, and its memory with it.
    void unbind_windows(SteeringTag region);
    /// Called with each tag, removed or invalidated, whose memory is given back by its last holder.
    void on_last_release(std::function<void(SteeringTag)> told) { last_release_ = std::move(told); }
    /// The tag by which an entry is known now: the key of a window changes with each binding.
    SteeringTag tag_now(SteeringTag tag) const;
    /// Whether bytes of a removed or invalidated tag's memory are still lent.
    bool is_held(SteeringTag tag) const;

    // What the data path does. None of it allocates, nor does invalidate(), nor any discard() but
    // the first.

    /// The bytes, if `asker` may use them so. A size of 0 is not looked at, and gives no bytes.
    ///
    /// The range is good as long as revocations() stays what it is, or the tag is held. Who comes
    /// back to a range later, as a receiver amid a payload does, looks at that number first, and if
    /// it has changed resolves what is left anew: never the old range.
    Result<MemoryRange> resolve(SteeringTag tag, std::uint64_t offset, std::size_t size,
                                Rights asked, Asker asker) const;
    /// How often a tag has ceased to open what it opened.
    std::uint64_t revocations() const { return revocations_; }

    /// Keeps the memory of a tag that was resolved just now from being given back while bytes of it
    /// are lent to the network. Returns the tag to release() later, once for every hold(): a
    /// window's is its region's, since the window may show another region by then.
    [[nodiscard]] SteeringTag hold(SteeringTag tag) override;
    void release(SteeringTag held) override;

    /// Entries in use, the removed that are still held among them.
    std::size_t size() const { return entries_.size() - free_.size(); }

private:
    /// Memory that is written to and never read: a few octets, as often as it takes for one write.
    struct Nowhere {
        static constexpr std::size_t size = std::size_t{16} << 10;
        std::array<std::byte, size> octets{};
        std::array<Buffer, write_max / size + 1> pieces{};
    };

    static SteeringTag tag_of(const MemoryEntry& entry);
    /// The entry of the tag's index, whatever its state and key; or none.
    const MemoryEntry* entry_at(SteeringTag tag) const;
    MemoryEntry* entry_at(SteeringTag tag);
    const MemoryEntry* find_open(SteeringTag tag) const;
    MemoryEntry* find_open(SteeringTag tag);
    /// The same, or one that is discarding.
    const MemoryEntry* find_valid(SteeringTag tag) const;
    MemoryEntry* find_valid(SteeringTag tag);
    MemoryRange nowhere(std::size_t size) const;
    Result<MemoryEntry*> entry_to_end(SteeringTag tag, Asker asker);

    Result<MemoryEntry*> take_entry(MemoryEntry::Kind kind, DomainId domain);
    void open_region(MemoryEntry& entry, std::span<const Buffer> pieces, std::uint64_t first,
                     Rights rights);
    Result<MemoryEntry*> window_to_bind(SteeringTag tag, Asker asker);
    Result<MemoryEntry*> region_to_show(const verbs::WindowBinding& binding, Asker asker);
    void close(MemoryEntry& entry);
    void free_unless_held(MemoryEntry& entry);

    const std::size_t capacity_;
    MemoryTags tags_;
    std::vector<MemoryEntry> entries_;  ///< those ever used; they do not move
    IntrusiveQueue<MemoryEntry> free_;  ///< of them, the longest free first
    std::uint64_t revocations_ = 0;
    std::unique_ptr<Nowhere> nowhere_;  ///< made by the first discard()
    std::function<void(SteeringTag)> last_release_;
};

}  // namespace weft::iwarp
