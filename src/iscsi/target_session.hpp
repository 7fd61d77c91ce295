// SPDX-License-Identifier: Apache-2.0
// A session at a target: an I_T nexus, the connections it uses, the order of its commands and the
// tasks they have become. A discovery session has no nexus and takes no commands.
//
// The session lives until its last connection is gone and its unit has given back every task; a
// new session of the same name waits for that, so that no command of the old can overtake one of
// the new.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "iscsi/command_order.hpp"
#include "iscsi/login_target.hpp"
#include "iscsi/target_limits.hpp"
#include "iscsi/target_task.hpp"
#include "scsi/target.hpp"

namespace weft::iscsi {

class TargetNode;
struct OfferedTarget;

class TargetSession {
public:
    /// A PDU that waits for its turn: a command, or a copy of another request.
    struct Turn {
        TargetTask* task = nullptr;
        TargetConnection* connection = nullptr;
        std::vector<std::byte> header{};
        std::vector<std::byte> data{};
    };

    /// `target`: none for discovery; then `nexus` is none too.
    TargetSession(TargetNode& node, LoginName name, Terms terms, OfferedTarget* target,
                  scsi::Nexus* nexus, std::uint16_t handle);
    TargetSession(const TargetSession&) = delete;
    TargetSession& operator=(const TargetSession&) = delete;
    ~TargetSession();

    const LoginName& name() const { return name_; }
    const Terms& terms() const { return terms_; }
    std::uint16_t handle() const { return handle_; }
    OfferedTarget* target() const { return target_; }
    scsi::Nexus* nexus() const { return nexus_; }
    scsi::Target& scsi_target() const;
    const std::vector<TargetConnection*>& connections() const { return connections_; }
    TargetConnection* find(std::uint16_t connection_id) const;
    bool ending() const { return ending_; }
    TargetNode& node() { return node_; }
    /// Tasks with the unit or on their way to the initiator.
    std::size_t tasks() const { return tasks_used_; }

    /// The first connection says where the numbers begin.
    void begin(std::uint32_t command_number);
    void join(TargetConnection& connection);
    /// The connection is gone: so are its tasks. With the last, the session ends.
    void leave(TargetConnection& connection);
    /// Closes every connection; the session ends when they are gone.
    void close();
    /// Tasks of connections that are gone, still with their unit.
    bool has_orphans() const { return orphans_ > 0; }
    bool begun() const { return window_.has_value(); }

    // The order of commands.
    std::uint32_t expected_command_number() const { return window_ ? window_->expected() : 0; }
    std::uint32_t max_command_number();
    bool admits(std::uint32_t number) const { return window_ && window_->admits(number); }
    /// It takes its turn now or later.
    void enter(std::uint32_t number, Turn turn);

    // Tasks.
    /// None: too many immediate commands.
    TargetTask* new_task(bool immediate);
    /// It can be found by its tag from now on, until it ends.
    void list(TargetTask& task);
    /// None: no task of this session has the tag.
    TargetTask* find_task(wire::InitiatorTaskTag tag) const;
    /// The task's unit is done with it: another command may come in its place.
    void task_answers(TargetTask& task);
    void task_ended(TargetTask& task);
    /// Void what waits for its turn with this number. False: nothing there to be voided.
    bool void_number(std::uint32_t number);
    /// Ends a task that waits for its turn, or for data nobody wants, without an answer.
    void withdraw(TargetTask& task);
    /// The same for all of this unit (none: of all units) with numbers before this one.
    void withdraw_before(std::uint32_t number, std::optional<wire::LogicalUnit> unit);
    /// Ends every task of this connection (none: of the session) that is not answered yet, and says
    /// when their unit has given them back. `asker` hears nothing once it is gone itself.
    void end_tasks(TargetConnection* of, TargetConnection& asker, std::function<void()> over);
    bool ends_tasks(const TargetConnection* of) const;

    std::size_t managements = 0;  ///< task management functions under way

private:
    /// Somebody logs out, and is answered when these tasks are over.
    struct Farewell {
        TargetConnection* of;
        TargetConnection* asker;
        std::function<void()> over;
    };

    void unlist(TargetTask& task);
    void pass_turn(TargetTask& task);
    void tell_farewells();
    void take_turns();
    void run(Turn turn);
    void end_if_left();

    TargetNode& node_;
    LoginName name_;
    Terms terms_;
    OfferedTarget* target_;
    scsi::Nexus* nexus_;
    std::uint16_t handle_;
    std::vector<TargetConnection*> connections_;
    std::optional<CommandOrder<Turn>> window_;
    bool taking_turns_ = false;
    bool closing_ = false;  ///< nobody may take over what is left
    bool ending_ = false;
    std::vector<Farewell> farewells_;  ///< one for each connection, or for all

    std::vector<std::unique_ptr<TargetTask>> tasks_;
    TargetTask* free_ = nullptr;
    std::array<TargetTask*, task_list_size> by_tag_{};  ///< chained where tags fall together
    std::uint32_t tasks_used_ = 0;
    std::uint32_t immediate_used_ = 0;
    std::uint32_t orphans_ = 0;
    std::uint32_t unanswered_ = 0;  ///< of those that are not immediate
};

}  // namespace weft::iscsi
