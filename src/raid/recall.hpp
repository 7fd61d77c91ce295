// SPDX-License-Identifier: Apache-2.0
// What a box's journal remembers, as a controller is told it.
#pragma once

#include <vector>

#include "weft/buffer.hpp"
#include "weft/result.hpp"
#include "wire/scsi_array.hpp"

namespace weft::raid {

struct Recalled {
    wire::TransactionNumber settled{};  ///< of those below only what was never decided is listed
    std::vector<wire::ArrayRecalled> transactions;
    std::vector<wire::ArrayExecutedNote> notes;

    bool operator==(const Recalled&) const = default;
};

std::vector<std::byte> encode_recall(const Recalled& recalled);
/// `truncated`, `malformed`.
Result<Recalled> parse_recall(ConstBuffer octets);

}  // namespace weft::raid
