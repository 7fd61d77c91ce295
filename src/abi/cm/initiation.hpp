// SPDX-License-Identifier: Apache-2.0
// The initiating side of a connection until somebody answers.
//
// A server's program may tell its port before it listens there: Debian's qperf does. With the
// kernel's devices it nearly always listens in time. Our way to the connection is so much shorter
// that it often does not; so who is refused waits a moment, and tries again a few times.
#pragma once

#include "abi/cm/objects.hpp"

namespace weft::abi {

// Inside a Hold.
/// Connects, with the depths and the private data that the identifier has.
Result<void> initiate(Identifier& one);
/// Nobody listened. Whether it is tried again, and nothing is to be told yet.
bool tries_again(Identifier& one);

}  // namespace weft::abi
