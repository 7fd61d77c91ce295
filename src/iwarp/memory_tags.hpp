// SPDX-License-Identifier: Apache-2.0
// Which tags a memory table gives out: RFC 5040 section 8.1.1 wants them hard to predict and sparse
// over their whole range.
//
// An index stands for a slot of the table and a round, the how-manieth use of that slot. All slots
// of all rounds together are all indices there are, in an order that a seed makes: a permutation of
// 24 bits (a Feistel network of four rounds whose functions are tables of random numbers), undone
// as fast as done, and the last ones undone are remembered. So an index comes back only when all
// others of its slot have been used, and a peer who knows some indices knows nothing of the others.
// Keys come in a random order too, another for each use of a slot, and none comes twice in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::iwarp {

/// Indices are 1 to this: an index of 0 is never given out, so no tag is ever 0.
inline constexpr std::uint32_t memory_index_max = (1u << 24) - 1;
/// Slots of a table. Each has at least two indices, since one of them may be 0.
inline constexpr std::size_t memory_slots_max = 1u << 23;
inline constexpr std::uint32_t memory_keys = 256;

class MemoryTags {
public:
    struct Use {
        std::uint32_t slot = 0;
        std::uint32_t round = 0;
        bool operator==(const Use&) const = default;
    };
    /// In which order the keys of one use come.
    enum class KeyOrder : std::uint16_t {};

    MemoryTags(std::size_t slots, std::uint64_t seed);

    std::uint32_t index_of(Use use) const;
    /// `index`: any number of 24 bits. The slot may be one that the table does not have.
    Use use_at(std::uint32_t index) const {
        auto& known = undone_[index % undone_.size()];
        if (known.index != index) known = {.index = index, .number = undo(index)};
        return {.slot = known.number & ((1u << slot_bits_) - 1),
                .round = known.number >> slot_bits_};
    }
    /// The slot's use after this one. After the last comes the first again.
    Use next(Use use) const;
    /// The first use of a slot.
    Use first(std::uint32_t slot) const;

    KeyOrder draw_key_order();
    /// The key that comes `number`-th, of memory_keys.
    std::uint8_t key(KeyOrder order, std::uint32_t number) const;

private:
    static constexpr unsigned half_bits = 12;
    static constexpr std::uint32_t half_size = 1u << half_bits;

    struct Undone {
        std::uint32_t index = 0;
        std::uint32_t number = 0;  ///< of slot and round
    };

    std::uint32_t undo(std::uint32_t index) const;
    Use skip_index_zero(Use use) const;
    std::uint64_t draw();

    std::uint64_t state_;
    unsigned slot_bits_;
    std::array<std::array<std::uint16_t, half_size>, 4> rounds_;
    std::array<std::uint8_t, memory_keys> keys_;  ///< each once
    /// By the index's last bits. What an index stands for never changes, so none is ever wrong.
    mutable std::array<Undone, 64> undone_;
};

}  // namespace weft::iwarp
