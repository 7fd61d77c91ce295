// SPDX-License-Identifier: Apache-2.0
#include "raid/dirty_record.hpp"

namespace weft::raid {
namespace {

constexpr std::size_t dirty_head = wire_size<wire::ArrayDirtyHead>(), word_size = 8;

}  // namespace

std::string dirty_record_name(const wire::VolumeIdentity& volume, std::uint8_t place) {
    return "dirty/" + to_digits(volume) + "/" +
           (place == wire::intent_place ? "intent" : std::to_string(place));
}

std::vector<std::byte> encode_dirty_record(const DirtyRecord& record) {
    const auto& words = record.stripes.words();
    std::vector<std::byte> body(dirty_head + words.size() * word_size);
    Buffer rest(body);
    encode(wire::ArrayDirtyHead{.volume = record.volume,
                                .place = record.place,
                                .stripes = record.stripes.stripes(),
                                .words = static_cast<std::uint32_t>(words.size()),
                                .boots = record.boots},
           rest);
    rest = rest.subspan(dirty_head);
    for (auto word : words) {
        store_big_endian<word_size>(word, rest.data());
        rest = rest.subspan(word_size);
    }
    return seal_record(wire::ArrayRecordKind::dirty, body);
}

Result<DirtyRecord> parse_dirty_record(ConstBuffer octets) {
    WEFT_TRY(auto rest, open_record(wire::ArrayRecordKind::dirty, octets));
    WEFT_TRY(auto said, decode<wire::ArrayDirtyHead>(rest));
    rest = rest.subspan(dirty_head);
    const bool is_place = said.place < limits::boxes || said.place == wire::intent_place;
    if (!is_place || rest.size() != std::size_t{said.words} * word_size)
        return Error{Code::malformed};
    std::vector<std::uint64_t> words;
    for (; !rest.empty(); rest = rest.subspan(word_size))
        words.push_back(load_big_endian<word_size>(rest.data()));
    DirtyRecord record{.volume = said.volume,
                       .place = said.place,
                       .stripes = RegionMap(said.stripes, limits::lasting_regions),
                       .boots = said.boots};
    if (!record.stripes.set_words(std::move(words))) return Error{Code::malformed};
    return record;
}

}  // namespace weft::raid
