// SPDX-License-Identifier: Apache-2.0
// Checks that stay on in release. They are for our own mistakes only: whatever a peer, a disk or
// a user can cause is an Error, never a failed check.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace weft {

[[noreturn, gnu::cold, gnu::noinline]] inline void check_failed(const char* what, const char* file,
                                                                int line) {
    std::fprintf(stderr, "weft: %s:%d: this must hold and does not: %s\n", file, line, what);
    std::abort();
}

}  // namespace weft

#define WEFT_CHECK(condition)                    \
    (__builtin_expect(!!(condition), 1) ? void() \
                                        : ::weft::check_failed(#condition, __FILE__, __LINE__))
