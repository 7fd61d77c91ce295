// SPDX-License-Identifier: Apache-2.0
#include "wire/ethernet.hpp"

#include <charconv>

namespace weft::wire {

std::string EthernetAddress::text() const {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (auto octet : octets) {
        if (!text.empty()) text += ':';
        text += digits[octet >> 4];
        text += digits[octet & 15];
    }
    return text;
}

Result<EthernetAddress> EthernetAddress::from_text(std::string_view text) {
    constexpr std::size_t text_size = 17;
    if (text.size() != text_size) return Error{.code = Code::malformed};
    EthernetAddress address;
    for (std::size_t i = 0; i < address.octets.size(); ++i) {
        const char* pair = text.data() + 3 * i;
        auto read = std::from_chars(pair, pair + 2, address.octets[i], 16);
        bool separated = i == 0 || pair[-1] == ':';
        if (read.ec != std::errc{} || read.ptr != pair + 2 || !separated)
            return Error{.code = Code::malformed, .where = static_cast<std::uint32_t>(3 * i)};
    }
    return address;
}

}  // namespace weft::wire
