// SPDX-License-Identifier: Apache-2.0
// The part of TOML that a list of targets needs: tables, arrays of tables, and keys with strings,
// whole numbers, truth values and arrays of those. As JSON, since the rest of the program speaks
// it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace weft::cli {

/// Throws a Refusal that names `file`, the line, and what is wrong with it.
nlohmann::json parse_toml(std::string_view text, const std::string& file);

}  // namespace weft::cli
