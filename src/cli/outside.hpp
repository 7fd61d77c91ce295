// SPDX-License-Identifier: Apache-2.0
// What commands need of the machine they run on: its world, and the wish to stop.
#pragma once

#include <functional>
#include <memory>

#include "weft/linux_world.hpp"

namespace weft::cli {

/// The world, or a Refusal.
std::unique_ptr<LinuxWorld> make_world(const LinuxWorldOptions& options);

/// Calls `then` on Ctrl-C and when asked to terminate; replaces what was called before.
void hear_signals(LinuxWorld& world, const std::function<void()>& then);

}  // namespace weft::cli
