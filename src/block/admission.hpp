// SPDX-License-Identifier: Apache-2.0
// What every device asks of a request before it does anything: one answer, in one place, so that a
// file, a memory disk and a server far away refuse the same requests with the same words.
//
// The codes are those of weft/block_device.hpp. A device adds what only it knows.
#pragma once

#include <optional>

#include "weft/block_device.hpp"

namespace weft::block {

/// Whether the device holds something else afterwards.
bool changes_data(BlockOperation operation);

/// Whether it has a scatter list.
bool moves_data(BlockOperation operation);

/// Whether the scatter list is as long as the request says. If not its maker is wrong, not a peer:
/// something to check, not to refuse.
bool memory_fits(const BlockRequest& request);

/// Why a device with these traits cannot carry the request out; none if it can.
std::optional<Error> refusal_of(const BlockRequest& request, const BlockTraits& traits);
std::optional<Error> refusal_of(BlockOperation operation, std::uint64_t offset,
                                std::uint64_t length, const BlockTraits& traits);

}  // namespace weft::block
