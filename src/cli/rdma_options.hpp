// SPDX-License-Identifier: Apache-2.0
// What all `weft rdma` commands have in common: how to connect, and how to wait.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cli/command.hpp"
#include "cli/outside.hpp"
#include "weft/rdma.hpp"

namespace weft::cli {

struct RdmaWishes {
    std::string checksums = "on", placement = "verified", wait = "block", congestion;
    int revision = 2;
    bool markers = false, no_peer_to_peer = false, only_standard = false;
    bool as_json = false;
};

void declare(CLI::App& options, RdmaWishes& wishes);
verbs::ConnectOptions connect_options(const RdmaWishes& wishes);
LinuxWorldOptions world_options(const RdmaWishes& wishes);

/// HOST:PORT, or a Misuse.
Address rdma_address(const std::string& text);

/// Runs the world until `done`, sleeping or spinning as was wished, or until Ctrl-C: then it says
/// false.
bool drive(LinuxWorld& world, const RdmaWishes& wishes, const std::function<bool()>& done);

/// "checksums, 16 reads each way, both Weft": what a connection agreed on.
std::string show_facts(const verbs::ConnectionFacts& facts);

/// Microseconds with a fitting number of digits.
std::string show_microseconds(Duration span);

}  // namespace weft::cli
