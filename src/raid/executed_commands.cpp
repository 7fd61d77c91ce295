// SPDX-License-Identifier: Apache-2.0
#include "raid/executed_commands.hpp"

#include <algorithm>
#include <functional>

#include "raid/limits.hpp"

namespace weft::raid {

void ExecutedCommands::note(const wire::HostIdentity& identity, std::uint64_t command) {
    if (identity == wire::HostIdentity{}) return;
    if (hosts_.size() >= limits::executed_hosts && !hosts_.contains(identity))
        hosts_.erase(std::ranges::min_element(
            hosts_, {}, [](const auto& each) { return each.second.last_note; }));
    Host& host = hosts_[identity];
    host.last_note = ++notes_;
    host.commands.insert(command);
    if (host.commands.size() > limits::executed_commands)
        host.commands.erase(host.commands.begin());
}

bool ExecutedCommands::contains(const wire::HostIdentity& host, std::uint64_t command) const {
    auto found = hosts_.find(host);
    return found != hosts_.end() && found->second.commands.contains(command);
}

std::vector<ExecutedCommands::Note> ExecutedCommands::latest(std::size_t most) const {
    std::vector<const Hosts::value_type*> hosts;
    for (const auto& each : hosts_) hosts.push_back(&each);
    std::ranges::sort(hosts, std::greater{},
                      [](const auto* each) { return each->second.last_note; });
    std::vector<Note> notes;
    for (const auto* each : hosts) {
        const auto& commands = each->second.commands;
        const auto count = std::min({commands.size(), limits::requests, most - notes.size()});
        const auto last = std::next(commands.rbegin(), static_cast<std::ptrdiff_t>(count));
        for (auto next = commands.rbegin(); next != last; ++next)
            notes.emplace_back(each->first, *next);
    }
    std::ranges::reverse(notes);
    return notes;
}

}  // namespace weft::raid
