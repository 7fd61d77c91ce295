// SPDX-License-Identifier: Apache-2.0
#include "wire/scsi_mode.hpp"

namespace weft::wire {

namespace {

/// The start of a page has two octets, or four if it has a subpage number.
struct PageStart {
    bool savable = false;
    bool has_subpage = false;
    ModePageCode code{};
    std::uint8_t second_octet = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("savable", h.savable), bits<1>("has subpage", h.has_subpage),
               bits<6>("code", h.code));
        v("second octet", h.second_octet);
    }
};

}  // namespace

Result<std::optional<ModePage>> ModePages::next() {
    if (rest_.empty()) return std::optional<ModePage>{};
    WEFT_TRY(const auto start, decode<PageStart>(rest_));
    std::size_t size = 2 + std::size_t{start.second_octet};
    if (start.has_subpage) {
        if (rest_.size() < 4) return Error{.code = Code::truncated};
        size = 4 + static_cast<std::size_t>(load_big_endian<2>(rest_.data() + 2));
    }
    if (size > rest_.size())
        return Error{.code = Code::truncated, .where = static_cast<std::uint32_t>(rest_.size())};
    const ModePage page{.code = start.code,
                        .subpage = start.has_subpage ? start.second_octet : std::uint8_t{0},
                        .savable = start.savable,
                        .whole = rest_.first(size)};
    rest_ = rest_.subspan(size);
    return std::optional(page);
}

}  // namespace weft::wire
