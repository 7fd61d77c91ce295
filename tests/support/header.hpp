// SPDX-License-Identifier: Apache-2.0
// The three things every described header is tested for, against octets someone else wrote.
#pragma once

#include <gtest/gtest.h>

#include "base/wire_format.hpp"
#include "support/golden.hpp"

namespace weft::test {

/// The octets say `expected`; `expected` is written as these octets; no shorter run of them is
/// taken for a header. Octets behind the header are allowed and not looked at.
template <class Header>
void expect_header(ConstBuffer octets, const Header& expected) {
    ASSERT_GE(octets.size(), wire_size<Header>());
    octets = octets.first(wire_size<Header>());
    auto decoded = decode<Header>(octets);
    ASSERT_TRUE(decoded) << "refused: " << to_hex(octets);
    EXPECT_EQ(*decoded, expected) << "decoded: " << to_text(*decoded);
    EXPECT_EQ(to_hex(encoded(expected)), to_hex(octets)) << to_text(expected);
    for (std::size_t size = 0; size < octets.size(); ++size) {
        auto refused = decode<Header>(octets.first(size));
        ASSERT_FALSE(refused) << size << " octets were enough";
        EXPECT_EQ(refused.error().code, Code::truncated);
    }
}

}  // namespace weft::test
