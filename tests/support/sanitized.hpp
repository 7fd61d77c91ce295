// SPDX-License-Identifier: Apache-2.0
// Whether a sanitizer watches, which makes everything many times as dear. Tests that draw hundreds
// of cheap runs draw fewer then: what these look for the plain build finds as well.
#pragma once

#include <cstdint>

namespace weft::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
#else
inline constexpr bool is_sanitized = false;
#endif

inline constexpr std::uint64_t fewer_if_sanitized(std::uint64_t count) {
    return is_sanitized ? count / 10 : count;
}

}  // namespace weft::test
