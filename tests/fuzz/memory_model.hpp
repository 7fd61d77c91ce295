// SPDX-License-Identifier: Apache-2.0
// What a memory table must do, said as simply as it can be: every tag knows each of its bytes by
// offset, and whatever is asked is looked for in lists. No cleverness, so that it can be believed;
// the harness holds the real table against it.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "iwarp/memory_table.hpp"

namespace weft::fuzz {

using iwarp::Asker;
using iwarp::MemoryFault;
using Bytes = std::map<std::uint64_t, std::byte*>;  ///< by the offset they are known by

inline std::uint32_t index_of(SteeringTag tag) {
    return static_cast<std::uint32_t>(tag) >> 8;
}
inline bool has(Rights held, Rights right) {
    return (held & right) != Rights{};
}

struct Thing {
    enum Kind { region, allocated, window_by_domain, window_by_queue_pair } kind;
    SteeringTag tag;
    iwarp::DomainId domain{};
    std::size_t pieces_max = 0;
    bool open = false;
    bool discarding = false;  ///< not open, but peers may write, to nowhere
    bool removed = false;
    Rights rights{};
    Bytes bytes{};
    iwarp::QueuePairId queue_pair{};
    Thing* shows = nullptr;  ///< a window's region
    std::size_t holds = 0;

    bool is_window() const { return kind == window_by_domain || kind == window_by_queue_pair; }
};

class MemoryModel {
public:
    explicit MemoryModel(std::size_t capacity) : capacity_(capacity) {}

    bool is_full() const { return things_.size() == capacity_; }
    std::size_t size() const { return things_.size(); }

    /// Takes note of a tag just given out, whose index must be one that none had before.
    Thing& add(Thing thing) {
        WEFT_CHECK(!is_full() && index_of(thing.tag) != 0);
        WEFT_CHECK(indices_.insert(index_of(thing.tag)).second);
        things_.push_back(std::make_unique<Thing>(std::move(thing)));
        return *things_.back();
    }

    /// What stands under the tag's index and has not been removed.
    Thing* with_index(SteeringTag tag) {
        for (auto& thing : things_)
            if (!thing->removed && index_of(thing->tag) == index_of(tag)) return thing.get();
        return nullptr;
    }
    Thing* opened_by(SteeringTag tag) {
        Thing* thing = with_index(tag);
        return thing && thing->open && thing->tag == tag ? thing : nullptr;
    }
    Thing* discarded_by(SteeringTag tag) {
        Thing* thing = with_index(tag);
        return thing && thing->discarding && thing->tag == tag ? thing : nullptr;
    }
    Thing* valid_by(SteeringTag tag) {
        Thing* thing = opened_by(tag);
        return thing ? thing : discarded_by(tag);
    }
    bool has_windows(const Thing& region) const {
        return std::any_of(things_.begin(), things_.end(),
                           [&](auto& thing) { return thing->open && thing->shows == &region; });
    }
    std::size_t held_under(SteeringTag tag) const {
        for (auto& thing : things_)
            if (index_of(thing->tag) == index_of(tag) &&
                (thing->kind != Thing::region || thing->tag == tag))
                return thing->holds;
        return 0;
    }

    void close(Thing& thing) {
        thing.open = thing.discarding = false;
        thing.shows = nullptr;
    }
    void remove(Thing& thing) {
        close(thing);
        thing.removed = true;
        forget_if_done(thing);
    }
    void release(Thing& thing) {
        WEFT_CHECK(thing.holds > 0);
        --thing.holds;
        forget_if_done(thing);
    }

    static std::optional<MemoryFault> check_place(const Bytes& bytes, std::uint64_t offset,
                                                  std::uint64_t size) {
        using Wide = unsigned __int128;
        if (Wide{offset} + size > Wide{1} << 64) return MemoryFault::offset_wraps;
        if (size > bytes.size()) return MemoryFault::out_of_bounds;
        for (std::uint64_t i = 0; i < size; ++i)
            if (!bytes.contains(offset + i)) return MemoryFault::out_of_bounds;
        return std::nullopt;
    }
    static bool is_for(const Thing& thing, Asker asker) {
        if (thing.kind == Thing::window_by_queue_pair && thing.queue_pair != asker.queue_pair)
            return false;
        return thing.domain == asker.domain;
    }

    std::optional<MemoryFault> check_use(SteeringTag tag, std::uint64_t offset, std::uint64_t size,
                                         Rights asked, Asker asker) {
        if (size == 0) return std::nullopt;
        Thing* thing = asked == Rights::remote_write ? valid_by(tag) : opened_by(tag);
        if (!thing) return MemoryFault::invalid_tag;
        if (!is_for(*thing, asker)) return MemoryFault::wrong_domain;
        bool from_peer = false;
        for (auto right : {Rights::local_write, Rights::remote_read, Rights::remote_write,
                           Rights::remote_atomic, Rights::bind_windows}) {
            if (has(asked, right) && !has(thing->rights, right)) return MemoryFault::no_rights;
            bool local = right == Rights::local_write || right == Rights::bind_windows;
            from_peer |= has(asked, right) && !local;
        }
        if (thing->is_window() && !from_peer) return MemoryFault::no_rights;
        return check_place(thing->bytes, offset, size);
    }

    std::optional<MemoryFault> check_invalidate(SteeringTag tag, Asker asker) {
        Thing* thing = valid_by(tag);
        if (!thing) return MemoryFault::invalid_tag;
        if (!is_for(*thing, asker)) return MemoryFault::wrong_domain;
        if (thing->kind == Thing::window_by_queue_pair) return std::nullopt;
        if (thing->kind == Thing::allocated && !has_windows(*thing)) return std::nullopt;
        return MemoryFault::cannot_invalidate;
    }

    std::optional<MemoryFault> check_discard(SteeringTag tag, Asker asker) {
        if (auto refused = check_invalidate(tag, asker)) return refused;
        Thing* thing = valid_by(tag);
        if (thing->kind != Thing::allocated) return MemoryFault::cannot_invalidate;
        if (!has(thing->rights, Rights::remote_write)) return MemoryFault::no_rights;
        return std::nullopt;
    }

    std::optional<MemoryFault> check_bind(const verbs::WindowBinding& binding, Asker asker) {
        Thing* window = with_index(binding.window);
        if (!window || !window->is_window()) return MemoryFault::invalid_tag;
        if (window->domain != asker.domain) return MemoryFault::wrong_domain;
        bool by_domain = window->kind == Thing::window_by_domain;
        if (!by_domain && window->open) return MemoryFault::already_open;
        if (by_domain && binding.size == 0) return std::nullopt;
        Thing* region = opened_by(binding.region);
        if (!region || region->is_window()) return MemoryFault::invalid_tag;
        if (region->domain != asker.domain) return MemoryFault::wrong_domain;
        bool changes =
            has(binding.rights, Rights::remote_write) || has(binding.rights, Rights::remote_atomic);
        if (!has(region->rights, Rights::bind_windows) ||
            has(binding.rights, Rights::bind_windows) || has(binding.rights, Rights::local_write) ||
            (changes && !has(region->rights, Rights::local_write)))
            return MemoryFault::no_rights;
        if (binding.size == 0) return MemoryFault::out_of_bounds;
        return check_place(region->bytes, binding.address, binding.size);
    }

private:
    void forget_if_done(Thing& thing) {
        if (!thing.removed || thing.holds > 0) return;
        std::erase_if(things_, [&](auto& other) { return other.get() == &thing; });
    }

    const std::size_t capacity_;
    std::vector<std::unique_ptr<Thing>> things_;
    std::set<std::uint32_t> indices_;  ///< all that were ever given out
};

}  // namespace weft::fuzz
