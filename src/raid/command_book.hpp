// SPDX-License-Identifier: Apache-2.0
// Commands that boxes were sent and have not answered, by their tickets. Each belongs to whoever
// waits for its answer: an attempt, or a superseded read that has taken over from one.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "raid/box.hpp"
#include "raid/order.hpp"
#include "weft/instant.hpp"
#include "wire/scsi_array.hpp"

namespace weft::raid {

class Attempt;
class CommandHolder;

struct SentCommand {
    /// What it does to the transaction at the box.
    enum class Purpose : std::uint8_t { order, commit, end };

    CommandHolder* holder = nullptr;
    Purpose purpose{};
    Party to{};
    wire::BoxIdentity box{};  ///< that had the place when it was sent
    std::size_t order = 0;    ///< of the plan; means nothing to an end
    bool closes = false;      ///< done, it leaves no window open at the box
    Instant since{};

    std::uint8_t place() const { return number(to.box); }
    bool goes_to_box() const { return to.kind == PartyKind::box; }
};

/// The answer; none if there will be none: the command or the box was lost.
using CommandAnswer = std::optional<wire::ArrayAnswer>;

inline bool is_done(const CommandAnswer& answer) {
    return answer && answer->outcome == wire::ArrayOutcome::done;
}

class CommandHolder {
public:
    virtual void command_ended(const SentCommand& command, const CommandAnswer& answer) = 0;
    /// None: it is a superseded read.
    virtual Attempt* as_attempt() { return nullptr; }

protected:
    ~CommandHolder() = default;
};

class CommandBook {
public:
    CommandTicket add(const SentCommand& command) {
        const CommandTicket ticket{++tickets_};
        commands_.emplace(ticket, command);
        return ticket;
    }
    std::optional<SentCommand> take(CommandTicket ticket) {
        auto found = commands_.extract(ticket);
        return found ? std::optional(found.mapped()) : std::nullopt;
    }
    void pass_on(const CommandHolder& from, CommandHolder& to) {
        for (auto& [ticket, command] : commands_)
            if (command.holder == &from) command.holder = &to;
    }
    std::vector<CommandTicket> of(const wire::BoxIdentity& box) const {
        std::vector<CommandTicket> tickets;
        for (const auto& [ticket, command] : commands_)
            if (command.goes_to_box() && command.box == box) tickets.push_back(ticket);
        return tickets;
    }
    const std::map<CommandTicket, SentCommand>& all() const { return commands_; }

private:
    std::map<CommandTicket, SentCommand> commands_;
    std::uint64_t tickets_ = 0;
};

}  // namespace weft::raid
