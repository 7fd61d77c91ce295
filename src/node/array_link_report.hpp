// SPDX-License-Identifier: Apache-2.0
// The links of a box on their way to its controller, and from there to people.
#pragma once

#include <span>
#include <vector>

#include "node/array_link_facts.hpp"
#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft::node {

/// No more than are told at a time.
inline constexpr std::size_t links_told_max = 512;
inline constexpr std::size_t link_list_bytes_max = 256u << 10;

std::vector<std::byte> encode_links(std::span<const ArrayLinkFacts> links);
/// `truncated` or `malformed`.
Result<std::vector<ArrayLinkFacts>> parse_links(ConstBuffer octets);

}  // namespace weft::node
