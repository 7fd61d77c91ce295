// SPDX-License-Identifier: Apache-2.0
// A bench has nothing to recover: what it needs it gets, or it ends and says what was refused.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "weft/result.hpp"

namespace weft::bench {

template <typename T>
T insist(Result<T> result, const char* what) {
    if (!result) {
        fmt::print(stderr, "{}: refused, code {}\n", what, static_cast<int>(result.error().code));
        std::_Exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace weft::bench
