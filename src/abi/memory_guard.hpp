// SPDX-License-Identifier: Apache-2.0
// Makes touching memory that an application has unmapped a failed operation and not the end of the
// program: SIGSEGV and SIGBUS amid such an access are caught, all others go where they always went.
// An application that installs handlers of its own later takes this away again.
#pragma once

namespace weft::abi {

void install_memory_guard();

}  // namespace weft::abi
