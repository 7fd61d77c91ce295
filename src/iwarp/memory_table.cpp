// SPDX-License-Identifier: Apache-2.0
#include "iwarp/memory_table.hpp"

#include <utility>

namespace weft::iwarp {

using Kind = MemoryEntry::Kind;
using State = MemoryEntry::State;

namespace {

std::uint32_t index_of(SteeringTag tag) {
    return static_cast<std::uint32_t>(tag) >> 8;
}
std::uint8_t key_of(SteeringTag tag) {
    return static_cast<std::uint8_t>(tag);
}

/// The offset of the first byte, if these pieces can be a region that begins there.
Result<std::uint64_t> check_pieces(std::span<const Buffer> pieces, std::size_t pieces_max,
                                   std::uint64_t address, Addressing addressing) {
    if (pieces.size() > pieces_max) return refused(MemoryFault::too_many_pieces);
    auto first = addressing == Addressing::from_zero ? 0 : address;
    auto size = PieceList::size_of(pieces);
    bool fits = size && (*size == 0 || first <= UINT64_MAX - (*size - 1));
    if (!fits) return refused(MemoryFault::offset_wraps);
    return first;
}

/// Whether a window with these rights may stand on a region with those.
bool may_bind(Rights window, Rights region) {
    constexpr auto changing = Rights::remote_write | Rights::remote_atomic;
    if (!allows(region, Rights::bind_windows)) return false;
    if (!allows(Rights::remote_read | changing, window)) return false;
    return (window & changing) == Rights{} || allows(region, Rights::local_write);
}

}  // namespace

MemoryTable::MemoryTable(std::size_t capacity, std::uint64_t seed)
    : capacity_(capacity), tags_(capacity, seed) {
    entries_.reserve(capacity);
}

Result<MemoryRange> MemoryTable::resolve(SteeringTag tag, std::uint64_t offset, std::size_t size,
                                         Rights asked, Asker asker) const {
    if (size == 0) return MemoryRange{};
    const bool writes = asked == Rights::remote_write;
    const MemoryEntry* entry = writes ? find_valid(tag) : find_open(tag);
    if (entry == nullptr) return refused(MemoryFault::invalid_tag);
    if (!entry->is_for(asker)) return refused(MemoryFault::wrong_domain);
    if (!entry->grants(asked) || !asker.may(asked)) return refused(MemoryFault::no_rights);
    WEFT_TRY(auto place, entry->place_of(offset, size));
    if (entry->state == State::discarding) return nowhere(size);
    const MemoryEntry& region = entries_[entry->region];
    return region.pieces.range(entry->in_region + place, size);
}

const MemoryEntry* MemoryTable::find_valid(SteeringTag tag) const {
    const MemoryEntry* entry = entry_at(tag);
    if (entry == nullptr || !entry->is_valid()) return nullptr;
    return entry->key == key_of(tag) ? entry : nullptr;
}

const MemoryEntry* MemoryTable::find_open(SteeringTag tag) const {
    const MemoryEntry* entry = find_valid(tag);
    return entry != nullptr && entry->state == State::open ? entry : nullptr;
}

const MemoryEntry* MemoryTable::entry_at(SteeringTag tag) const {
    const auto use = tags_.use_at(index_of(tag));
    if (use.slot >= entries_.size()) return nullptr;
    const auto& entry = entries_[use.slot];
    return entry.round == use.round ? &entry : nullptr;
}

MemoryEntry* MemoryTable::find_open(SteeringTag tag) {
    return const_cast<MemoryEntry*>(std::as_const(*this).find_open(tag));
}

MemoryEntry* MemoryTable::find_valid(SteeringTag tag) {
    return const_cast<MemoryEntry*>(std::as_const(*this).find_valid(tag));
}

MemoryEntry* MemoryTable::entry_at(SteeringTag tag) {
    return const_cast<MemoryEntry*>(std::as_const(*this).entry_at(tag));
}

SteeringTag MemoryTable::tag_of(const MemoryEntry& entry) {
    return static_cast<SteeringTag>(entry.index << 8 | entry.key);
}

Result<MemoryEntry*> MemoryTable::take_entry(Kind kind, DomainId domain) {
    bool fresh = entries_.size() < capacity_;
    if (!fresh && free_.empty()) return refused(MemoryFault::table_full);
    MemoryEntry& entry = fresh ? entries_.emplace_back() : free_.pop_front();
    const auto use = fresh ? tags_.first(static_cast<std::uint32_t>(entries_.size() - 1))
                           : tags_.next({entry.slot, entry.round});
    entry.slot = use.slot;
    entry.round = use.round;
    entry.index = tags_.index_of(use);
    entry.kind = kind;
    entry.state = State::closed;
    entry.domain = domain;
    entry.region = entry.slot;
    entry.key_order = tags_.draw_key_order();
    entry.key = tags_.key(entry.key_order, 0);
    entry.keys_given = 1;
    return &entry;
}

void MemoryTable::open_region(MemoryEntry& entry, std::span<const Buffer> pieces,
                              std::uint64_t first, Rights rights) {
    entry.pieces.assign(pieces);
    entry.first = first;
    entry.size = *PieceList::size_of(pieces);
    entry.rights = rights;
    entry.state = State::open;
}

Result<SteeringTag> MemoryTable::add_region(DomainId domain, std::span<const Buffer> pieces,
                                            std::uint64_t address, Rights rights,
                                            Addressing addressing) {
    WEFT_TRY(auto first, check_pieces(pieces, pieces_per_region_max, address, addressing));
    WEFT_TRY(MemoryEntry * entry, take_entry(Kind::region, domain));
    open_region(*entry, pieces, first, rights);
    return tag_of(*entry);
}

Result<SteeringTag> MemoryTable::allocate(DomainId domain, std::size_t pieces_max) {
    if (pieces_max > pieces_per_region_max) return refused(MemoryFault::too_many_pieces);
    WEFT_TRY(MemoryEntry * entry, take_entry(Kind::allocated, domain));
    entry->pieces_max = pieces_max;
    entry->pieces.reserve(pieces_max);
    return tag_of(*entry);
}

std::optional<SteeringTag> MemoryTable::fresh_tag(SteeringTag tag) {
    MemoryEntry* entry = entry_at(tag);
    if (entry == nullptr || !entry->in_use() || entry->kind != Kind::allocated) return std::nullopt;
    if (entry->keys_given == memory_keys) return std::nullopt;
    const auto key = tags_.key(entry->key_order, entry->keys_given++);
    return static_cast<SteeringTag>(index_of(tag) << 8 | key);
}

Result<void> MemoryTable::fast_register(const verbs::FastRegistration& registration, Asker asker) {
    MemoryEntry* entry = entry_at(registration.tag);
    if (entry == nullptr || !entry->in_use() || entry->kind != Kind::allocated)
        return refused(MemoryFault::invalid_tag);
    if (!entry->is_for(asker)) return refused(MemoryFault::wrong_domain);
    if (entry->is_valid()) return refused(MemoryFault::already_open);
    if (entry->holds > 0) return refused(MemoryFault::still_lent);
    WEFT_TRY(auto first, check_pieces(registration.pieces, entry->pieces_max, registration.address,
                                      registration.addressing));
    entry->key = key_of(registration.tag);
    open_region(*entry, registration.pieces, first, registration.rights);
    return {};
}

Result<SteeringTag> MemoryTable::add_window(DomainId domain, verbs::WindowKind kind) {
    bool by_domain = kind == verbs::WindowKind::by_domain;
    WEFT_TRY(MemoryEntry * entry,
             take_entry(by_domain ? Kind::window_by_domain : Kind::window_by_queue_pair, domain));
    return tag_of(*entry);
}

Result<MemoryEntry*> MemoryTable::window_to_bind(SteeringTag tag, Asker asker) {
    MemoryEntry* window = entry_at(tag);
    if (window == nullptr || !window->in_use() || !window->is_window())
        return refused(MemoryFault::invalid_tag);
    if (window->domain != asker.domain) return refused(MemoryFault::wrong_domain);
    if (window->kind == Kind::window_by_queue_pair && window->state == State::open)
        return refused(MemoryFault::already_open);
    return window;
}

Result<MemoryEntry*> MemoryTable::region_to_show(const verbs::WindowBinding& binding, Asker asker) {
    MemoryEntry* region = find_open(binding.region);
    if (region == nullptr || region->is_window()) return refused(MemoryFault::invalid_tag);
    if (!region->is_for(asker)) return refused(MemoryFault::wrong_domain);
    if (!may_bind(binding.rights, region->rights)) return refused(MemoryFault::no_rights);
    if (binding.size == 0) return refused(MemoryFault::out_of_bounds);
    return region;
}

Result<SteeringTag> MemoryTable::bind(const verbs::WindowBinding& binding, Asker asker) {
    WEFT_TRY(MemoryEntry * window, window_to_bind(binding.window, asker));
    bool by_domain = window->kind == Kind::window_by_domain;
    auto key = static_cast<std::uint8_t>(key_of(binding.window) + (by_domain ? 1 : 0));
    if (by_domain && binding.size == 0) {
        close(*window);
        window->key = key;
        return tag_of(*window);
    }
    WEFT_TRY(MemoryEntry * region, region_to_show(binding, asker));
    WEFT_TRY(auto place, region->place_of(binding.address, binding.size));
    close(*window);
    window->key = key;
    window->rights = binding.rights;
    window->queue_pair = asker.queue_pair;
    window->region = region->slot;
    window->first = binding.addressing == Addressing::from_zero ? 0 : binding.address;
    window->size = binding.size;
    window->in_region = place;
    window->state = State::open;
    ++region->windows;
    return tag_of(*window);
}

/// What is valid now, and whose owner may say that it is no longer.
Result<MemoryEntry*> MemoryTable::entry_to_end(SteeringTag tag, Asker asker) {
    MemoryEntry* entry = find_valid(tag);
    if (entry == nullptr) return refused(MemoryFault::invalid_tag);
    if (!entry->is_for(asker)) return refused(MemoryFault::wrong_domain);
    bool can_be = entry->kind == Kind::window_by_queue_pair ||
                  (entry->kind == Kind::allocated && entry->windows == 0);
    if (!can_be) return refused(MemoryFault::cannot_invalidate);
    return entry;
}

Result<void> MemoryTable::invalidate(SteeringTag tag, Asker asker) {
    WEFT_TRY(MemoryEntry * entry, entry_to_end(tag, asker));
    close(*entry);
    return {};
}

Result<void> MemoryTable::discard(SteeringTag tag, Asker asker) {
    WEFT_TRY(MemoryEntry * entry, entry_to_end(tag, asker));
    if (entry->kind != Kind::allocated) return refused(MemoryFault::cannot_invalidate);
    if (!entry->grants(Rights::remote_write)) return refused(MemoryFault::no_rights);
    if (!nowhere_) {
        nowhere_ = std::make_unique<Nowhere>();
        nowhere_->pieces.fill(nowhere_->octets);
    }
    close(*entry);  // of its pieces some may be lent still: they stay as they are
    entry->rights = Rights::remote_write;
    entry->state = State::discarding;
    return {};
}

MemoryRange MemoryTable::nowhere(std::size_t size) const {
    WEFT_CHECK(size <= write_max);
    return MemoryRange(nowhere_->pieces, 0, size);
}

Result<void> MemoryTable::invalidate_for_peer(SteeringTag tag, Asker asker) {
    constexpr auto remote = Rights::remote_read | Rights::remote_write | Rights::remote_atomic;
    const MemoryEntry* entry = find_open(tag);
    if (entry && entry->is_for(asker) && !entry->is_window() &&
        (entry->rights & remote) == Rights{})
        return refused(MemoryFault::cannot_invalidate);
    return invalidate(tag, asker);
}

Result<void> MemoryTable::remove(SteeringTag tag) {
    MemoryEntry* entry = entry_at(tag);
    if (entry == nullptr || !entry->in_use()) return refused(MemoryFault::invalid_tag);
    if (entry->kind == Kind::region && entry->key != key_of(tag))
        return refused(MemoryFault::invalid_tag);
    if (entry->windows > 0) return refused(MemoryFault::has_windows);
    close(*entry);
    entry->state = State::removed;
    free_unless_held(*entry);
    return {};
}

bool MemoryTable::is_held(SteeringTag tag) const {
    const MemoryEntry* entry = entry_at(tag);
    if (entry == nullptr || entry->holds == 0) return false;
    return entry->kind != Kind::region || entry->key == key_of(tag);
}

SteeringTag MemoryTable::hold(SteeringTag tag) {
    MemoryEntry* entry = find_open(tag);
    WEFT_CHECK(entry != nullptr);
    MemoryEntry& region = entries_[entry->region];
    ++region.holds;
    return tag_of(region);
}

void MemoryTable::release(SteeringTag held) {
    MemoryEntry* region = entry_at(held);
    // The key of a held region does not change: only a fast registration could, and is refused.
    WEFT_CHECK(region != nullptr && region->key == key_of(held) && region->holds > 0);
    --region->holds;
    if (region->state == State::open || region->holds > 0) return;
    if (region->state == State::removed) free_unless_held(*region);
    if (last_release_) last_release_(held);
}

void MemoryTable::unbind_windows(SteeringTag region) {
    MemoryEntry* shown = entry_at(region);
    if (shown == nullptr || shown->windows == 0) return;
    for (auto& entry : entries_)
        if (entry.is_window() && entry.state == State::open && entry.region == shown->slot)
            close(entry);
}

SteeringTag MemoryTable::tag_now(SteeringTag tag) const {
    const MemoryEntry* entry = entry_at(tag);
    return entry == nullptr ? tag : tag_of(*entry);
}

void MemoryTable::close(MemoryEntry& entry) {
    if (!entry.is_valid()) return;
    entry.state = State::closed;
    ++revocations_;
    if (entry.is_window()) --entries_[entry.region].windows;
}

void MemoryTable::free_unless_held(MemoryEntry& entry) {
    if (entry.holds > 0) return;
    entry = MemoryEntry{.slot = entry.slot, .round = entry.round, .index = entry.index};
    free_.push_back(entry);
}

}  // namespace weft::iwarp
