// SPDX-License-Identifier: Apache-2.0
// Promises in time: how long an array waits for what, and what it gives to whom. Options of `weft
// controller serve`; docs/failures.md has the table.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "node/controller_node.hpp"

namespace weft::cli {

/// A duration as text, written as people do, checked when the arguments are parsed.
struct DurationWish {
    std::string text;
    Duration least{}, most{};

    CLI::Option* declare(CLI::App& options, const std::string& name, const std::string& what);
    Duration value() const;
};

struct PromiseWishes {
    DurationWish request_patience{"60s", std::chrono::seconds(1), std::chrono::hours(1)};
    DurationWish box_silence{"10s", std::chrono::seconds(1), std::chrono::minutes(10)};
    DurationWish spare_patience{"30s", std::chrono::seconds(1), std::chrono::hours(24)};
    unsigned rebuild_share = 20;
    unsigned host_requests = 128;

    void declare(CLI::App& options);
    /// Throws a Misuse if they contradict each other.
    void apply(node::ControllerNode::Options& options) const;
};

/// Those in force, in seconds and percent.
nlohmann::json promises_json(const node::ControllerNode::Options& options);

}  // namespace weft::cli
