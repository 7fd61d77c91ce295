// SPDX-License-Identifier: Apache-2.0
// Records of the controller's store as octets: a head that says of what kind, the body, a CRC32C.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/crc32c.hpp"
#include "wire/array_superblock.hpp"

namespace weft::raid {

template <class Body>
inline constexpr wire::ArrayRecordKind record_kind{};
template <>
inline constexpr auto record_kind<wire::ArrayClusterRecord> = wire::ArrayRecordKind::cluster;
template <>
inline constexpr auto record_kind<wire::ArrayVolume> = wire::ArrayRecordKind::volume;
template <>
inline constexpr auto record_kind<wire::ArrayBoxRecord> = wire::ArrayRecordKind::box;
template <>
inline constexpr auto record_kind<wire::ArraySpareRecord> = wire::ArrayRecordKind::spare;
template <>
inline constexpr auto record_kind<wire::ArrayHostRecord> = wire::ArrayRecordKind::host;
template <>
inline constexpr auto record_kind<wire::ArrayRebuildRecord> = wire::ArrayRecordKind::rebuild;
template <>
inline constexpr auto record_kind<wire::ArrayEventRecord> = wire::ArrayRecordKind::event;

inline std::string volume_record_name(const wire::VolumeIdentity& volume) {
    return "volumes/" + to_digits(volume);
}
inline std::string rebuild_record_name(const wire::VolumeIdentity& volume, std::uint8_t place) {
    return "rebuilds/" + to_digits(volume) + "/" + std::to_string(place);
}

/// A head and a checksum around what a record says.
inline std::vector<std::byte> seal_record(wire::ArrayRecordKind kind, ConstBuffer body) {
    constexpr std::size_t head = wire_size<wire::ArrayRecordHead>();
    std::vector<std::byte> octets(head + body.size() + 4);
    encode(
        wire::ArrayRecordHead{.kind = kind, .body_length = static_cast<std::uint32_t>(body.size())},
        octets);
    std::ranges::copy(body, octets.begin() + head);
    const auto summed = ConstBuffer(octets).first(head + body.size());
    store_big_endian<4>(crc32c(summed), octets.data() + summed.size());
    return octets;
}

/// What it says. `truncated`; `malformed` for a wrong checksum, another kind, or another length.
inline Result<ConstBuffer> open_record(wire::ArrayRecordKind kind, ConstBuffer octets) {
    constexpr std::size_t head = wire_size<wire::ArrayRecordHead>();
    if (octets.size() < head + 4) return Error{Code::truncated};
    const auto summed = octets.first(octets.size() - 4);
    WEFT_TRY(auto read, decode<wire::ArrayRecordHead>(octets));
    if (read.kind != kind || read.body_length != summed.size() - head ||
        load_big_endian<4>(octets.data() + summed.size()) != crc32c(summed))
        return Error{Code::malformed};
    return summed.subspan(head);
}

template <class Body>
std::vector<std::byte> encode_record(const Body& body) {
    static_assert(record_kind<Body> != wire::ArrayRecordKind{}, "no kind of record");
    return seal_record(record_kind<Body>, encoded(body));
}

/// As open_record(); `malformed` also for a length that is not the kind's.
template <class Body>
Result<Body> parse_record(ConstBuffer octets) {
    WEFT_TRY(auto body, open_record(record_kind<Body>, octets));
    if (body.size() != wire_size<Body>()) return Error{Code::malformed};
    return decode<Body>(body);
}

}  // namespace weft::raid
