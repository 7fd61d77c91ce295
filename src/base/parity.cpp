// SPDX-License-Identifier: Apache-2.0
#include "base/parity.hpp"

#include <isa-l/raid.h>

#include <array>
#include <cstdint>

#include "base/check.hpp"

namespace weft {
namespace {

constexpr std::size_t sources_max = 254;  // GF(2^8) has no more powers of two for Q to tell apart

bool aligned(ConstBuffer memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data()) % parity_alignment == 0;
}

/// ISA-L takes sources and targets as one list of pointers.
struct Vectors {
    std::array<void*, sources_max + 2> list{};
    int count = 0;
    std::size_t size = 0;
    bool good = true;

    void add(ConstBuffer memory) {
        good = good && memory.size() == size && aligned(memory);
        list[static_cast<std::size_t>(count++)] = const_cast<std::byte*>(memory.data());
    }
};

Result<Vectors> gather(std::span<const ConstBuffer> sources, std::span<const Buffer> targets) {
    if (sources.size() < 2 || sources.size() > sources_max) return Error{.code = Code::malformed};
    Vectors vectors;
    vectors.size = sources.front().size();
    for (auto source : sources) vectors.add(source);
    for (auto target : targets) vectors.add(target);
    if (!vectors.good || vectors.size > INT32_MAX) return Error{.code = Code::malformed};
    return vectors;
}

}  // namespace

Result<void> xor_parity(std::span<const ConstBuffer> sources, Buffer target) {
    WEFT_TRY(auto vectors, gather(sources, std::array{target}));
    if (xor_gen(vectors.count, static_cast<int>(vectors.size), vectors.list.data()) != 0)
        return Error{.code = Code::malformed};
    return {};
}

void xor_into(ConstBuffer source, Buffer target) {
    WEFT_CHECK(source.size() == target.size() && source.size() <= INT32_MAX);
    WEFT_CHECK(aligned(source) && aligned(target));
    if (source.empty()) return;
    // ISA-L reads a run of every source before it writes that run, so the target may be a source.
    std::array<void*, 3> vectors{target.data(), const_cast<std::byte*>(source.data()),
                                 target.data()};
    WEFT_CHECK(xor_gen(3, static_cast<int>(source.size()), vectors.data()) == 0);
}

Result<void> pq_parity(std::span<const ConstBuffer> sources, Buffer p, Buffer q) {
    WEFT_TRY(auto vectors, gather(sources, std::array{p, q}));
    if (vectors.size % parity_alignment != 0) return Error{.code = Code::malformed};
    if (pq_gen(vectors.count, static_cast<int>(vectors.size), vectors.list.data()) != 0)
        return Error{.code = Code::malformed};
    return {};
}

}  // namespace weft
