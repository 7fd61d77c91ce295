// SPDX-License-Identifier: Apache-2.0
// Golden bytes: text files under tests/golden that a reviewer can hold beside the RFC.
//
//     # comment line
//     0000  4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65 | key "MPA ID Req Frame"
//     0010  10 02                                           | flags S, revision 2
//
// The offset must be right; whatever follows '|' is for people.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weft/buffer.hpp"

namespace weft::test {

using Bytes = std::vector<std::byte>;

/// The octets of tests/golden/<name>. Fails the test, with the line, if the file is not well
/// formed.
Bytes golden(const std::string& name);

/// The octets written in a text like "c1 40 1bad cafe"; white space is ignored.
Bytes from_hex(std::string_view text);
std::string to_hex(ConstBuffer octets);

Bytes join(std::initializer_list<ConstBuffer> parts);

}  // namespace weft::test
