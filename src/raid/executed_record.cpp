// SPDX-License-Identifier: Apache-2.0
#include "raid/executed_record.hpp"

#include "wire/scsi_array.hpp"

namespace weft::raid {
namespace {

constexpr std::size_t volume_size = wire_size<wire::VolumeIdentity>(),
                      note_size = wire_size<wire::ArrayExecutedNote>();

}  // namespace

std::string executed_record_name(const wire::VolumeIdentity& volume) {
    return "executed/" + to_digits(volume);
}

std::vector<std::byte> encode_executed_record(const ExecutedRecord& record) {
    std::vector<std::byte> body(volume_size + record.notes.size() * note_size);
    Buffer rest(body);
    encode(record.volume, rest);
    rest = rest.subspan(volume_size);
    for (const auto& [host, command] : record.notes) {
        encode(
            wire::ArrayExecutedNote{
                .transaction = {}, .host_identity = host, .host_command = command},
            rest);
        rest = rest.subspan(note_size);
    }
    return seal_record(wire::ArrayRecordKind::executed, body);
}

Result<ExecutedRecord> parse_executed_record(ConstBuffer octets) {
    WEFT_TRY(auto rest, open_record(wire::ArrayRecordKind::executed, octets));
    ExecutedRecord record;
    WEFT_TRY(record.volume, decode<wire::VolumeIdentity>(rest));
    rest = rest.subspan(volume_size);
    if (rest.size() % note_size != 0) return Error{Code::malformed};
    for (; !rest.empty(); rest = rest.subspan(note_size)) {
        WEFT_TRY(auto note, decode<wire::ArrayExecutedNote>(rest));
        record.notes.emplace_back(note.host_identity, note.host_command);
    }
    return record;
}

}  // namespace weft::raid
