// SPDX-License-Identifier: Apache-2.0
#include "raid/executed_commands.hpp"

#include <algorithm>

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
    std::vector<Note> notes;
    if (hosts_.empty()) return notes;
    const auto of_each =
        static_cast<std::ptrdiff_t>(std::max<std::size_t>(most / hosts_.size(), 1));
    for (const auto& [identity, host] : hosts_) {
        auto first = host.commands.begin();
        std::advance(first, std::max<std::ptrdiff_t>(std::ssize(host.commands) - of_each, 0));
        for (; first != host.commands.end(); ++first) notes.emplace_back(identity, *first);
    }
    return notes;
}

}  // namespace weft::raid
