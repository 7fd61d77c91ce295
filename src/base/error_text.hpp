// SPDX-License-Identifier: Apache-2.0
// An Error as a person should read it. Faces add the noun: "disk.img: the disk or network failed".
#pragma once

#include <string>

#include "weft/result.hpp"

namespace weft {

/// What the code means, as the end of a sentence.
const char* to_text(Code code);

/// The same with the numbers an Error carries, when they say something.
std::string to_text(Error error);

}  // namespace weft
