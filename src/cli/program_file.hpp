// SPDX-License-Identifier: Apache-2.0
// A program somebody named: where it is, and whether other libraries can be put under it.
#pragma once

#include <string>

namespace weft::cli {

/// What shells answer for a program that cannot be started.
enum StartStatus : int { cannot_be_run = 126, not_found = 127 };

/// Its path, found along PATH unless the name has a slash; throws a Refusal.
std::string find_program(const std::string& name);

/// Throws a Refusal for a program the loader would start without a look at LD_LIBRARY_PATH, or for
/// which our libraries are of the wrong kind: it would run, and find no RNIC, and nobody would know
/// why.
void expect_library_path_is_used(const std::string& path);

}  // namespace weft::cli
