// SPDX-License-Identifier: Apache-2.0
// What a SCSI status and its sense data mean to whoever sent the command: it is done, it should be
// sent again, or it has failed and in which of our words.
#pragma once

#include "iscsi/initiator_command.hpp"
#include "wire/scsi_sense.hpp"

namespace weft::iscsi {

enum class FateKind : std::uint8_t {
    done,
    again,  ///< it was not carried out, for a reason that is over now
    later,  ///< the same, for a reason that may last a moment
    failed,
};

struct Fate {
    FateKind kind = FateKind::failed;
    Error error{.code = Code::io_failed};
    /// What the target said with it.
    wire::SenseKey key{};
    wire::AdditionalSense additional{};
};

/// Of a command that was delivered.
Fate fate_of(const CommandEnd& end);

}  // namespace weft::iscsi
