// SPDX-License-Identifier: Apache-2.0
#include "raid/digest.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/crc32c.hpp"

namespace weft::raid {
namespace {

template <std::size_t size>
std::uint32_t linear_checksum(ConstBuffer octets) {
    static const std::uint32_t of_zeroes = crc32c(std::array<std::byte, size>{});
    return crc32c(octets) ^ of_zeroes;
}

std::array<std::uint32_t, rdp_prime> symbol_checksums(ConstBuffer slice) {
    std::array<std::uint32_t, rdp_prime> words{};  // the last is of the imaginary symbol: zero
    for (std::size_t i = 0; i < symbols_per_slice; ++i)
        words[i] = linear_checksum<symbol_size>(slice.subspan(i * symbol_size, symbol_size));
    return words;
}

}  // namespace

void Digest::add(const Digest& other) {
    row ^= other.row;
    for (std::size_t d = 0; d < diagonals.size(); ++d) diagonals[d] ^= other.diagonals[d];
}

Digest digest_of(ConstBuffer slices, Blend blend, Column column) {
    WEFT_CHECK(slices.size() % slice_size == 0);
    Digest digest;
    for (; !slices.empty(); slices = slices.subspan(slice_size)) {
        const auto slice = slices.first(slice_size);
        if (blend != Blend::add) digest.row ^= linear_checksum<slice_size>(slice);
        if (blend == Blend::copy) continue;
        const auto words = symbol_checksums(slice);
        for (std::size_t d = 0; d < symbols_per_slice; ++d)
            digest.diagonals[d] ^= blend == Blend::add
                                       ? words[d]
                                       : words[(d + rdp_prime - column) % rdp_prime] ^ words[d + 1];
    }
    return digest;
}

bool digests_agree(const Layout& layout, std::span<const Digest> digests) {
    if (layout.level() == Level::mirror)
        return std::ranges::all_of(digests, [&](const auto& d) { return d == digests[0]; });
    if (digests.size() != layout.boxes()) return true;  // with a column missing nothing can be said
    return preparations_agree(layout, digests);
}

bool preparations_agree(const Layout& layout, std::span<const Digest> digests) {
    if (layout.level() == Level::mirror)
        return std::ranges::all_of(digests, [&](const auto& d) { return d == digests[0]; });
    Digest sum;
    for (const auto& digest : digests) sum.add(digest);
    return sum == Digest{};
}

}  // namespace weft::raid
