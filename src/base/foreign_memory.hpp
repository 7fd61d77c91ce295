// SPDX-License-Identifier: Apache-2.0
// Touching registered memory. It belongs to an application that may have unmapped it since; the
// kernel refuses it then with an error, but an access of our own is a signal that ends the program.
// Where that must not be, someone who can catch the signal installs a guard.
#pragma once

namespace weft {

/// Calls touch(with); false if it met memory that is not there, and broke off amid it.
using ForeignMemoryGuard = bool (*)(void (*touch)(void*), void* with);
inline constinit ForeignMemoryGuard foreign_memory_guard = nullptr;

/// `touch` must own nothing: when it is broken off, no destructor runs.
template <typename Touch>
[[nodiscard]] bool touch_foreign_memory(Touch touch) {
    if (foreign_memory_guard)
        return foreign_memory_guard([](void* with) { (*static_cast<Touch*>(with))(); }, &touch);
    touch();
    return true;
}

}  // namespace weft
