// SPDX-License-Identifier: Apache-2.0
// Which writes have been executed, by host and number: so that one that is asked for again, because
// its answer was lost with a session or a controller, is not executed twice. Between the two
// somebody else may have written the same blocks, whose answer was heard.
//
// Bounded: of each host the highest numbers are kept, many times more than it may have under way,
// and of hosts those that wrote last.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "wire/array_identity.hpp"

namespace weft::raid {

class ExecutedCommands {
public:
    /// Of a host whose identity is all zero nothing is kept: nobody asks again under it.
    void note(const wire::HostIdentity& host, std::uint64_t command);
    bool contains(const wire::HostIdentity& host, std::uint64_t command) const;
    std::size_t hosts() const { return hosts_.size(); }
    using Note = std::pair<wire::HostIdentity, std::uint64_t>;
    /// So many at most, of the hosts that wrote last; of each the highest, more than it may have
    /// under way. Those that wrote last come last, as they should be noted again.
    std::vector<Note> latest(std::size_t most) const;

private:
    struct Host {
        std::set<std::uint64_t> commands;
        std::uint64_t last_note = 0;
    };
    using Hosts = std::map<wire::HostIdentity, Host>;
    Hosts hosts_;
    std::uint64_t notes_ = 0;
};

}  // namespace weft::raid
