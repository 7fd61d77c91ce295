// SPDX-License-Identifier: Apache-2.0
// Writes a stream of FPDUs the plain way, one after the other, right or wrong: what a receiver is
// given to read. FpduStream is its counterpart.
#pragma once

#include <variant>

#include "support/fpdu_stream.hpp"
#include "support/golden.hpp"
#include "wire/mpa.hpp"
#include "wire/rdmap.hpp"

namespace weft::test {

template <class Header>
Bytes octets_of(const Header& header) {
    Bytes octets(wire_size<Header>());
    encode(header, octets);
    return octets;
}

/// Octets of which no two neighbours are alike, so that a misplaced one shows.
inline Bytes pattern(std::size_t size, std::size_t seed) {
    Bytes octets(size);
    for (std::size_t i = 0; i < size; ++i)
        octets[i] = static_cast<std::byte>((i * 7 + i / 251 + seed * 31) & 0xff);
    return octets;
}

class FpduWriter {
public:
    FpduWriter(bool checksum, bool markers) : checksum_(checksum), markers_(markers) {}

    template <class Header>
    FpduWriter& add(const Header& header, ConstBuffer payload = {}) {
        auto octets = octets_of(header);
        return add_ulpdu(join({octets, payload}));
    }
    /// Any octets in an FPDU that is right otherwise.
    FpduWriter& add_ulpdu(ConstBuffer ulpdu) {
        last_ulpdu_.assign(ulpdu.begin(), ulpdu.end());
        Bytes plain(wire::fpdu_size(ulpdu.size()));
        encode(wire::FpduLength{static_cast<std::uint16_t>(ulpdu.size())}, plain);
        std::copy(ulpdu.begin(), ulpdu.end(), plain.begin() + 2);
        if (markers_) {
            Bytes marked(wire::marked_size(octets_.size(), plain.size()));
            wire::insert_markers(plain, octets_.size(), marked);
            plain = marked;
        }
        if (checksum_) wire::seal_fpdu(plain);
        octets_.insert(octets_.end(), plain.begin(), plain.end());
        return *this;
    }
    /// Octets that need not be an FPDU.
    FpduWriter& add_raw(ConstBuffer octets) {
        octets_.insert(octets_.end(), octets.begin(), octets.end());
        return *this;
    }

    /// To be read, or to be spoiled.
    Bytes& octets() { return octets_; }
    /// Of the FPDU added last.
    const Bytes& last_ulpdu() const { return last_ulpdu_; }

private:
    bool checksum_;
    bool markers_;
    Bytes octets_;
    Bytes last_ulpdu_;
};

}  // namespace weft::test
