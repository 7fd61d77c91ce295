// SPDX-License-Identifier: Apache-2.0
// Records of the controller's store as octets: a head that says of what kind, the body, a CRC32C.
#pragma once

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

template <class Body>
std::vector<std::byte> encode_record(const Body& body) {
    static_assert(record_kind<Body> != wire::ArrayRecordKind{}, "no kind of record");
    constexpr std::size_t head = wire_size<wire::ArrayRecordHead>(), size = wire_size<Body>();
    std::vector<std::byte> octets(head + size + 4);
    encode(wire::ArrayRecordHead{.kind = record_kind<Body>, .body_length = size}, octets);
    encode(body, Buffer(octets).subspan(head));
    store_big_endian<4>(crc32c(ConstBuffer(octets).first(head + size)),
                        octets.data() + head + size);
    return octets;
}

/// `truncated`; `malformed` for a wrong checksum, another kind, or a length that is not the kind's.
template <class Body>
Result<Body> parse_record(ConstBuffer octets) {
    constexpr std::size_t head = wire_size<wire::ArrayRecordHead>(), size = wire_size<Body>();
    if (octets.size() < head + size + 4) return Error{Code::truncated};
    WEFT_TRY(auto read, decode<wire::ArrayRecordHead>(octets));
    if (read.kind != record_kind<Body> || read.body_length != size ||
        octets.size() != head + size + 4 ||
        load_big_endian<4>(octets.data() + head + size) != crc32c(octets.first(head + size)))
        return Error{Code::malformed};
    return decode<Body>(octets.subspan(head));
}

}  // namespace weft::raid
