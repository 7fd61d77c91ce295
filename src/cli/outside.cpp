// SPDX-License-Identifier: Apache-2.0
#include "cli/outside.hpp"

#include <fmt/format.h>

#include <csignal>

#include "base/error_text.hpp"
#include "cli/command.hpp"

namespace weft::cli {

std::unique_ptr<LinuxWorld> make_world(const LinuxWorldOptions& options) {
    auto world = open_linux_world(options);
    if (!world && !options.congestion_control.empty())
        throw Refusal{fmt::format("TCP's congestion control '{}' cannot be had here: {}",
                                  options.congestion_control, to_text(world.error()))};
    if (!world) throw Refusal{fmt::format("cannot start: {}", to_text(world.error()))};
    return std::move(*world);
}

void hear_signals(LinuxWorld& world, const std::function<void()>& then) {
    for (int signal : {SIGINT, SIGTERM})
        if (auto heard = world.on_signal(signal, then); !heard)
            throw Refusal{fmt::format("cannot hear signals: {}", to_text(heard.error()))};
}

}  // namespace weft::cli
