// SPDX-License-Identifier: Apache-2.0
#include "wire/mpa.hpp"

#include <algorithm>
#include <cstring>

#include "base/crc32c.hpp"

namespace weft::wire {
namespace {

/// Before revision 2 the flag was a reserved bit, which a receiver does not look at.
bool begins_enhanced(const MpaTerms& terms) {
    return terms.enhanced && terms.revision >= 2;
}

void copy(ConstBuffer from, Buffer to) {
    WEFT_CHECK(to.size() >= from.size());
    if (!from.empty()) std::memmove(to.data(), from.data(), from.size());
}

}  // namespace

Result<MpaPrivateData> decode_private_data(const MpaTerms& terms, ConstBuffer octets) {
    if (terms.private_data_size > private_data_limit) return Error{.code = Code::malformed};
    if (octets.size() < terms.private_data_size)
        return Error{.code = Code::truncated, .where = static_cast<std::uint32_t>(octets.size())};
    MpaPrivateData data{.enhanced = {}, .application = octets.first(terms.private_data_size)};
    if (begins_enhanced(terms)) {
        if (data.application.size() < wire_size<EnhancedTerms>())
            return Error{.code = Code::malformed};
        WEFT_TRY(data.enhanced, decode<EnhancedTerms>(data.application));
        data.application = data.application.subspan(wire_size<EnhancedTerms>());
    }
    return data;
}

MpaTerms terms_for(MpaTerms terms, const MpaPrivateData& data) {
    auto size = data.application.size() + (data.enhanced ? wire_size<EnhancedTerms>() : 0);
    WEFT_CHECK(size <= private_data_limit);
    WEFT_CHECK(!data.enhanced || terms.revision >= 2);
    terms.enhanced = data.enhanced.has_value();
    terms.private_data_size = static_cast<std::uint16_t>(size);
    return terms;
}

std::size_t encode_private_data(const MpaPrivateData& data, Buffer octets) {
    std::size_t at = 0;
    if (data.enhanced) {
        encode(*data.enhanced, octets);
        at += wire_size<EnhancedTerms>();
    }
    copy(data.application, octets.subspan(at));
    return at + data.application.size();
}

void encode_fpdu_trailer(std::size_t ulpdu_size, std::uint32_t checksum, Buffer octets) {
    auto padding = fpdu_padding(ulpdu_size);
    WEFT_CHECK(octets.size() >= padding + fpdu_checksum_size);
    std::fill_n(octets.begin(), padding, std::byte{0});
    store_little_endian<fpdu_checksum_size>(checksum, octets.data() + padding);
}

std::uint32_t fpdu_checksum(ConstBuffer octets) {
    WEFT_CHECK(octets.size() >= fpdu_checksum_size);
    return static_cast<std::uint32_t>(
        load_little_endian<fpdu_checksum_size>(octets.last(fpdu_checksum_size).data()));
}

void seal_fpdu(Buffer octets) {
    WEFT_CHECK(octets.size() >= fpdu_checksum_size);
    auto covered = octets.first(octets.size() - fpdu_checksum_size);
    store_little_endian<fpdu_checksum_size>(crc32c(covered), octets.data() + covered.size());
}

bool fpdu_is_intact(ConstBuffer octets) {
    return octets.size() >= fpdu_checksum_size &&
           fpdu_checksum(octets) == crc32c(octets.first(octets.size() - fpdu_checksum_size));
}

std::size_t insert_markers(ConstBuffer fpdu, std::uint64_t marked, Buffer octets) {
    WEFT_CHECK(!fpdu.empty());
    WEFT_CHECK(octets.size() >= marked_size(marked, fpdu.size()));
    const auto length_position = marked_position(plain_position(marked));
    std::size_t written = 0;
    while (!fpdu.empty()) {
        auto position = marked + written;
        auto room = until_marker(position);
        if (room == 0) {
            auto pointer = position < length_position ? 0 : position - length_position;
            encode(Marker{.fpdu_pointer = static_cast<std::uint16_t>(pointer)},
                   octets.subspan(written));
            written += wire_size<Marker>();
            continue;
        }
        auto piece = fpdu.first(std::min<std::uint64_t>(room, fpdu.size()));
        copy(piece, octets.subspan(written));
        written += piece.size();
        fpdu = fpdu.subspan(piece.size());
    }
    return written;
}

Result<std::size_t> remove_markers(ConstBuffer fpdu, std::uint64_t marked, Buffer octets) {
    const auto length_position = marked_position(plain_position(marked));
    std::size_t read = 0;
    std::size_t written = 0;
    while (read < fpdu.size()) {
        auto position = marked + read;
        auto room = until_marker(position);
        if (room == 0) {
            WEFT_TRY(auto marker, decode<Marker>(fpdu.subspan(read)));
            auto expected = position < length_position ? 0 : position - length_position;
            // The two low bits are reserved: "treated as zero for computation" (section 4.3).
            if ((marker.fpdu_pointer & ~3u) != expected)
                return Error{.code = Code::malformed, .where = static_cast<std::uint32_t>(read)};
            read += wire_size<Marker>();
            continue;
        }
        auto piece = fpdu.subspan(read, std::min<std::uint64_t>(room, fpdu.size() - read));
        copy(piece, octets.subspan(written));
        written += piece.size();
        read += piece.size();
    }
    return written;
}

}  // namespace weft::wire
