// SPDX-License-Identifier: Apache-2.0
// Files with secrets, keys and passwords of CHAP: as ssh does, one that other users of the machine
// may read or change is refused. Pipes and devices are no files that lie about, and are taken.
#pragma once

#include <string>

namespace weft::cli {

/// Throws a Refusal that names the file and its mode, if others than its owner may use it.
void require_private(const std::string& path);

}  // namespace weft::cli
