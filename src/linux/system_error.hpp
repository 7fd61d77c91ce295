// SPDX-License-Identifier: Apache-2.0
// From errno to Error: the code says what a caller can do about it, `detail` keeps the number.
#pragma once

#include "weft/result.hpp"

namespace weft::linux {

/// What a failed call on a socket, a path or the loop itself means.
Error system_error(int number);

/// What a failed operation on an open disk means. A narrower answer: whatever went wrong below an
/// open file is a failed disk, unless it is full or cannot do this at all.
Error disk_error(int number);

/// What a failed synchronization means. Never that the disk is full: whoever hears that writes
/// again, and what is not written again would be lost. The system may have dropped anything written
/// since the last one that succeeded, whoever wrote it, and says so once.
Error synchronization_error(int number);

}  // namespace weft::linux
