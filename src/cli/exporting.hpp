// SPDX-License-Identifier: Apache-2.0
// What the exports have in common, whatever they speak: disks named on the command line, where to
// listen, and how to end.
#pragma once

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/outside.hpp"
#include "weft/block_device.hpp"
#include "weft/linux_world.hpp"

namespace weft::cli {

/// A disk in memory of the size `text` says, of which `limit` may hold data ("" is all). Throws a
/// Misuse or a Refusal.
std::unique_ptr<BlockDevice> make_memory_disk(const std::string& text, const std::string& limit);

/// "auto", "ring" or "threads".
FileEngine file_engine_of(const std::string& name);

/// HOST:PORT, or a Misuse.
Address tcp_address_of(const std::string& text);
/// HOST:PORT,HOST:PORT and so on, one at least, or a Misuse.
std::vector<Address> tcp_addresses_of(const std::string& text);

inline constexpr int interrupted = 130;  // what shells expect of a program that Ctrl-C ended

/// Runs the world until told to stop, then ends the server: what was asked for is answered before
/// we leave, unless the client does not take the answer. A second signal ends us at once.
template <class Server, class Begun>
void serve_until_stopped(LinuxWorld& world, Server& server, const Begun& begun) {
    hear_signals(world, [&] { world.stop(); });
    begun();
    world.run();
    hear_signals(world, [] { std::_Exit(interrupted); });
    bool patient = true;
    auto patience = world.make_timer([&] { patient = false; });
    patience->set(world.now() + std::chrono::seconds(5));
    server.drain();
    world.run_until([&] { return server.quiet() || !patient; });
    server.stop();
    world.run_until([&] { return server.quiet(); });
    // Signals that come while we take things down have nothing left to stop.
    for (int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);
}

}  // namespace weft::cli
