// SPDX-License-Identifier: Apache-2.0
// How the functions of the libraries fail, and that they do so where there is no memory left: what
// C++ throws then must not reach programs in C.
#pragma once

#include <cerrno>
#include <cstddef>
#include <new>

namespace weft::abi {

/// Those that return a pointer.
inline std::nullptr_t refuse(int why) {
    errno = why;
    return nullptr;
}

/// Those that return a number.
inline int fail_with(int why) {
    errno = why;
    return -1;
}

/// Calls what makes something; an application that has no more memory is told so and goes on.
template <class Make>
auto make_or_refuse(Make make) -> decltype(make()) {
    try {
        return make();
    } catch (const std::bad_alloc&) {
        return refuse(ENOMEM);
    }
}

/// The same of what does something.
template <class Act>
auto act_or_fail(Act act) -> decltype(act()) {
    try {
        return act();
    } catch (const std::bad_alloc&) {
        return static_cast<decltype(act())>(fail_with(ENOMEM));
    }
}

}  // namespace weft::abi
