// SPDX-License-Identifier: Apache-2.0
// Which writes have been executed, as a record of the controller's store. Boxes note those they
// took part in; this is for when boxes come and go, since whoever was rebuilt has the blocks and
// not the notes, and whoever had them may be gone when the host asks again.
#pragma once

#include "raid/executed_commands.hpp"
#include "raid/records.hpp"

namespace weft::raid {

struct ExecutedRecord {
    wire::VolumeIdentity volume{};
    std::vector<ExecutedCommands::Note> notes;

    bool operator==(const ExecutedRecord&) const = default;
};

std::string executed_record_name(const wire::VolumeIdentity& volume);
std::vector<std::byte> encode_executed_record(const ExecutedRecord& record);
/// `truncated`; `malformed` for a wrong checksum, another kind, or what is no list of notes.
Result<ExecutedRecord> parse_executed_record(ConstBuffer octets);

}  // namespace weft::raid
