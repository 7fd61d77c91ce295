// SPDX-License-Identifier: Apache-2.0
#include "scsi/transport_identifier.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "wire/scsi_reservation.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

constexpr std::string_view separator = ",i,0x";
constexpr char digits[] = "0123456789abcdef";

std::optional<unsigned> value_of(char digit) {
    if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
    if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a' + 10);
    if (digit >= 'A' && digit <= 'F') return static_cast<unsigned>(digit - 'A' + 10);
    return std::nullopt;
}

}  // namespace

std::vector<std::byte> transport_identifier(const NexusName& name) {
    std::string text = name.initiator;
    text += separator;
    for (auto octet : name.session_identifier) {
        text += digits[octet >> 4];
        text += digits[octet & 15];
    }
    text.push_back('\0');
    text.resize(round_up(text.size(), 4), '\0');
    constexpr auto start_size = wire_size<IscsiTransportIdentifier>();
    std::vector<std::byte> octets(start_size + text.size());
    encode(IscsiTransportIdentifier{.format = IscsiIdentifierFormat::port,
                                    .length_after = static_cast<std::uint16_t>(text.size())},
           octets);
    std::ranges::copy(bytes_of(text), octets.begin() + start_size);
    return octets;
}

std::optional<NexusName> named_by(ConstBuffer identifier) {
    const auto start = decode<IscsiTransportIdentifier>(identifier);
    if (!start || start->format != IscsiIdentifierFormat::port) return std::nullopt;
    auto rest = identifier.subspan(wire_size<IscsiTransportIdentifier>());
    if (start->length_after > rest.size()) return std::nullopt;
    auto text = text_of(rest.first(start->length_after));
    text = text.substr(0, text.find('\0'));
    const auto at = text.find(separator);
    if (at == std::string_view::npos) return std::nullopt;
    const auto hexadecimal = text.substr(at + separator.size());
    NexusName name;
    if (hexadecimal.size() != name.session_identifier.size() * 2) return std::nullopt;
    name.initiator = text.substr(0, at);
    for (std::size_t i = 0; i < name.session_identifier.size(); ++i) {
        auto high = value_of(hexadecimal[2 * i]);
        auto low = value_of(hexadecimal[2 * i + 1]);
        if (!high || !low) return std::nullopt;
        name.session_identifier[i] = static_cast<std::uint8_t>(*high << 4 | *low);
    }
    return name;
}

}  // namespace weft::scsi
