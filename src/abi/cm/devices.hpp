// SPDX-License-Identifier: Apache-2.0
// Which RNIC an identifier uses: the one whose interface has its local address.
#pragma once

#include "abi/cm/objects.hpp"

namespace weft::abi {

/// Outside a Hold. By the identifier's local address; with the device comes its default domain.
/// False, and errno: there is none.
bool attach_device(Identifier& one);

}  // namespace weft::abi
