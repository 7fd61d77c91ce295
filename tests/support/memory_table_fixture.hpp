// SPDX-License-Identifier: Apache-2.0
// A small memory table, memory to register in it, and short words for what tests ask of it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "iwarp/memory_table.hpp"

namespace weft::test {

/// Every byte of a range, by its address.
inline std::vector<std::byte*> addresses(iwarp::MemoryRange range) {
    std::vector<std::byte*> all;
    while (!range.empty()) {
        all.push_back(range.front().data());
        range.drop_front(1);
    }
    return all;
}

class MemoryTableTest : public testing::Test {
protected:
    using Fault = std::optional<iwarp::MemoryFault>;
    static constexpr auto all_rights = Rights::local_write | Rights::remote_read |
                                       Rights::remote_write | Rights::remote_atomic |
                                       Rights::bind_windows;
    static constexpr std::uint64_t base = 0x10000;  ///< the address regions are known by
    static constexpr iwarp::Asker us{iwarp::DomainId{7}, iwarp::QueuePairId{1}};
    static constexpr iwarp::Asker our_other_pair{iwarp::DomainId{7}, iwarp::QueuePairId{2}};
    static constexpr iwarp::Asker stranger{iwarp::DomainId{8}, iwarp::QueuePairId{1}};

    SteeringTag add(std::vector<Buffer> pieces, Rights rights = all_rights,
                    Addressing addressing = Addressing::by_address) {
        return *table.add_region(us.domain, pieces, base, rights, addressing);
    }
    /// The whole memory, as one region.
    SteeringTag add_all(Rights rights = all_rights) { return add({memory}, rights); }

    verbs::FastRegistration registration(SteeringTag tag) {
        return {.tag = tag, .pieces = {memory}, .address = base, .rights = all_rights};
    }
    /// An allocated tag that has all memory, as `us`.
    SteeringTag fast_register() {
        auto tag = *table.allocate(us.domain, 4);
        EXPECT_TRUE(table.fast_register(registration(tag), us));
        return tag;
    }

    static Fault fault(const auto& result) {
        return result ? std::nullopt : Fault(iwarp::fault_of(result.error()));
    }
    /// Why `us` (or another) may not use `size` bytes there; none if it may.
    Fault use(SteeringTag tag, std::uint64_t offset, std::size_t size,
              Rights asked = Rights::remote_read, iwarp::Asker asker = us) const {
        auto range = table.resolve(tag, offset, size, asked, asker);
        EXPECT_TRUE(!range || range->size() == size);
        return fault(range);
    }
    /// Where the bytes are that `us` gets to see there.
    std::vector<std::byte*> bytes(SteeringTag tag, std::uint64_t offset, std::size_t size) const {
        auto range = table.resolve(tag, offset, size, Rights::remote_read, us);
        return range ? addresses(*range) : std::vector<std::byte*>{};
    }
    std::vector<std::byte*> memory_from(std::size_t first, std::size_t size) {
        return addresses(iwarp::MemoryRange(std::array{Buffer(memory)}, first, size));
    }

    static std::uint32_t index(SteeringTag tag) { return static_cast<std::uint32_t>(tag) >> 8; }
    static std::uint32_t key(SteeringTag tag) { return static_cast<std::uint32_t>(tag) & 0xff; }
    static SteeringTag with_key(SteeringTag tag, std::uint32_t key) {
        return static_cast<SteeringTag>(index(tag) << 8 | (key & 0xff));
    }

    std::array<std::byte, 64> memory{};
    iwarp::MemoryTable table{8, 100};
};

}  // namespace weft::test
