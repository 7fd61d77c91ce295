// SPDX-License-Identifier: Apache-2.0
// What all commands to a controller have in common: where it is, a key, and --json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/command.hpp"
#include "cli/management.hpp"

namespace weft::cli {

struct ArrayWishes {
    std::string controller, key;
    bool as_json = false;

    void declare(CLI::App& options);
    AtController where() const;
    /// Asks the controller that is in office. Throws a Refusal or a Misuse.
    nlohmann::json ask(const nlohmann::json& request) const;
    /// Asks, and says that it was done: as `sentence`, or as the answer.
    int do_it(const nlohmann::json& request, const std::string& sentence) const;
};

/// What one machine may have open at a controller or box, if nothing else is said.
inline constexpr std::size_t host_connections_usual = 128;
void declare_host_connections(CLI::App& options, std::size_t& most);

/// A size, or a Misuse.
std::uint64_t size_of(const std::string& text);
/// Of a volume: not 0.
std::uint64_t volume_size_of(const std::string& text);

}  // namespace weft::cli
