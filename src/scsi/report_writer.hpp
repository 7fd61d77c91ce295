// SPDX-License-Identifier: Apache-2.0
// Writes a report into memory, header by header. What does not fit is counted and not written, so
// that a report's lengths are true however little of it was asked for.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/bytes.hpp"
#include "base/wire_format.hpp"

namespace weft::scsi {

class ReportWriter {
public:
    explicit ReportWriter(Buffer room) : room_(room) {
        std::fill(room_.begin(), room_.end(), std::byte{0});
    }

    std::size_t size() const { return size_; }

    void put(ConstBuffer octets) {
        if (size_ < room_.size()) {
            auto fits = std::min(octets.size(), room_.size() - size_);
            std::copy_n(octets.begin(), fits, room_.begin() + static_cast<std::ptrdiff_t>(size_));
        }
        size_ += octets.size();
    }
    template <class Header>
    requires requires(Sizer& sizer, Header& header) { Header::describe(sizer, header); }
    void put(const Header& header) { put(ConstBuffer(encoded(header))); }
    void put(std::string_view text) { put(bytes_of(text)); }
    void put_octet(std::uint8_t octet) {
        auto value = static_cast<std::byte>(octet);
        put(ConstBuffer(&value, 1));
    }
    template <std::size_t Count>
    void put_number(std::uint64_t number) {
        std::array<std::byte, Count> octets{};
        store_big_endian<Count>(number, octets.data());
        put(ConstBuffer(octets));
    }
    void skip(std::size_t count) { size_ += count; }
    void pad(std::size_t unit) { size_ = static_cast<std::size_t>(round_up(size_, unit)); }

    /// Writes over what is there already: a length, once it is known.
    template <class Header>
    void put_at(std::size_t place, const Header& header) {
        auto after = std::exchange(size_, place);
        put(header);
        size_ = after;
    }

private:
    Buffer room_;
    std::size_t size_ = 0;
};

}  // namespace weft::scsi
