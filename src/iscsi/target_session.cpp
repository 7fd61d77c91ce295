// SPDX-License-Identifier: Apache-2.0
#include "iscsi/target_session.hpp"

#include <algorithm>

#include "iscsi/target_connection.hpp"
#include "iscsi/target_node.hpp"

namespace weft::iscsi {
namespace {

std::size_t place_of(wire::InitiatorTaskTag tag) {
    return static_cast<std::uint32_t>(tag) % task_list_size;
}

}  // namespace

TargetSession::TargetSession(TargetNode& node, LoginName name, Terms terms, OfferedTarget* target,
                             scsi::Nexus* nexus, std::uint16_t handle)
    : node_(node),
      name_(std::move(name)),
      terms_(terms),
      target_(target),
      nexus_(nexus),
      handle_(handle) {}

TargetSession::~TargetSession() {
    WEFT_CHECK(tasks_used_ == 0 && connections_.empty());
}

scsi::Target& TargetSession::scsi_target() const {
    WEFT_CHECK(target_ != nullptr);
    return *target_->device;
}

TargetConnection* TargetSession::find(std::uint16_t connection_id) const {
    for (auto* connection : connections_)
        if (connection->id() == connection_id) return connection;
    return nullptr;
}

void TargetSession::begin(std::uint32_t command_number) {
    window_.emplace(command_number, command_window);
}

void TargetSession::join(TargetConnection& connection) {
    connections_.push_back(&connection);
}

void TargetSession::leave(TargetConnection& connection) {
    std::erase(connections_, &connection);
    if (window_)
        window_->each_waiting([&](Turn& turn) {
            if (turn.connection == &connection) turn.connection = nullptr;
        });
    std::erase_if(farewells_, [&](auto& each) { return each.asker == &connection; });
    for (auto& task : tasks_) {
        if (task->connection() != &connection) continue;
        if (task->waiting()) pass_turn(*task);
        task->connection_lost();
        if (!task->executing()) continue;
        // What its unit still has, nobody waits for any more.
        task->orphan = true;
        ++orphans_;
        scsi_target().abort(*task);
    }
    tell_farewells();
    if (!connections_.empty()) node_.connection_left();
    end_if_left();
}

void TargetSession::close() {
    closing_ = true;
    if (connections_.empty()) return end_if_left();
    for (auto* connection : std::vector(connections_)) connection->close();
}

/// Without a connection there is nothing to keep: tasks cannot be taken over (recovery level 2).
/// Unless somebody is about to take the last connection's place.
void TargetSession::end_if_left() {
    if (!connections_.empty() || ending_) return;
    if (!closing_ && node_.awaits_seat_in(*this)) return node_.connection_left();
    ending_ = true;
    if (nexus_ == nullptr) return node_.session_gone(*this);
    scsi_target().leave(*std::exchange(nexus_, nullptr), [this] { node_.session_gone(*this); });
}

std::uint32_t TargetSession::max_command_number() {
    if (!window_) return 0;
    const auto waiting = static_cast<std::uint32_t>(window_->waiting());
    const auto ordinary = tasks_used_ - immediate_used_;
    // What waits for its turn has a task already, and lies within the window it was told.
    const auto unanswered = unanswered_ - std::min(unanswered_, waiting);
    const auto busy = ordinary - std::min(ordinary, waiting);
    constexpr auto ordinary_tasks_max = command_window + unsent_answers_max;
    const auto room = std::min(command_window - std::min(command_window, unanswered),
                               ordinary_tasks_max - std::min(ordinary_tasks_max, busy));
    if (room > 0) window_->offer(room);
    return window_->max();
}

void TargetSession::enter(std::uint32_t number, Turn turn) {
    window_->enter(number, std::move(turn));
    take_turns();
}

void TargetSession::take_turns() {
    if (std::exchange(taking_turns_, true)) return;
    while (auto turn = window_->next()) run(std::move(*turn));
    taking_turns_ = false;
}

void TargetSession::run(Turn turn) {
    if (turn.task != nullptr) return turn.task->execute();
    if (turn.connection == nullptr || turn.header.empty()) return;
    turn.connection->request({.basic = *decode<wire::BasicHeader>(turn.header),
                              .header = turn.header,
                              .additional_headers = {},
                              .data = turn.data});
}

TargetTask* TargetSession::new_task(bool immediate) {
    if (immediate && immediate_used_ >= immediate_commands_max) return nullptr;
    if (free_ == nullptr) {
        if (tasks_.size() >= session_tasks_max) return nullptr;
        tasks_.push_back(std::make_unique<TargetTask>(*this));
        free_ = tasks_.back().get();
        free_->slot = static_cast<std::uint32_t>(tasks_.size() - 1);
    }
    auto* task = std::exchange(free_, free_->next_free);
    task->next_free = nullptr;
    ++tasks_used_;
    (immediate ? immediate_used_ : unanswered_) += 1;
    task->counts_unanswered = !immediate;
    return task;
}

void TargetSession::list(TargetTask& task) {
    auto& place = by_tag_[place_of(task.tag)];
    task.next_listed = std::exchange(place, &task);
    task.listed = true;
}

TargetTask* TargetSession::find_task(wire::InitiatorTaskTag tag) const {
    for (auto* task = by_tag_[place_of(tag)]; task != nullptr; task = task->next_listed)
        if (task->tag == tag) return task;
    return nullptr;
}

void TargetSession::unlist(TargetTask& task) {
    if (!std::exchange(task.listed, false)) return;
    auto** link = &by_tag_[place_of(task.tag)];
    while (*link != &task) link = &(*link)->next_listed;
    *link = std::exchange(task.next_listed, nullptr);
}

void TargetSession::task_answers(TargetTask& task) {
    if (std::exchange(task.counts_unanswered, false)) --unanswered_;
}

void TargetSession::task_ended(TargetTask& task) {
    task_answers(task);
    unlist(task);
    if (task.immediate()) --immediate_used_;
    --tasks_used_;
    task.next_free = std::exchange(free_, &task);
    if (std::exchange(task.orphan, false) && --orphans_ == 0) node_.connection_left();
    tell_farewells();
    if (window_ && window_->open() == 0 && !connections_.empty()) {
        // The window is opening again: if nothing else tells, the initiator would never know.
        if (max_command_number(); window_->open() > 0) connections_.front()->tell_window();
    }
}

/// What waited at its number is nothing any more; the number stays used up.
void TargetSession::pass_turn(TargetTask& task) {
    window_->each_waiting([&](Turn& turn) {
        if (turn.task == &task) turn = {};
    });
}

void TargetSession::withdraw(TargetTask& task) {
    if (task.waiting()) pass_turn(task);
    task.withdraw();
}

void TargetSession::withdraw_before(std::uint32_t number, std::optional<wire::LogicalUnit> unit) {
    for (auto& task : tasks_) {
        if (!task->waiting() && !task->draining()) continue;
        const bool meant = !unit || task->TargetMoverTask::logical_unit == *unit;
        if (meant && SequenceNumber32(task->command_number()) < SequenceNumber32(number))
            withdraw(*task);
    }
}

void TargetSession::end_tasks(TargetConnection* of, TargetConnection& asker,
                              std::function<void()> over) {
    for (auto& task : tasks_) {
        if (of != nullptr && task->connection() != of) continue;
        if (task->waiting() || task->draining())
            withdraw(*task);
        else if (task->executing())
            scsi_target().abort(*task);
    }
    farewells_.push_back({.of = of, .asker = &asker, .over = std::move(over)});
    tell_farewells();
}

bool TargetSession::ends_tasks(const TargetConnection* of) const {
    return std::ranges::any_of(farewells_, [&](auto& each) { return each.of == of; });
}

void TargetSession::tell_farewells() {
    auto is_over = [this](const Farewell& farewell) {
        return std::ranges::none_of(tasks_, [&](auto& task) {
            return task->executing() &&
                   (farewell.of == nullptr || task->connection() == farewell.of);
        });
    };
    while (!farewells_.empty()) {
        auto told = std::ranges::find_if(farewells_, is_over);
        if (told == farewells_.end()) return;
        auto over = std::move(told->over);
        farewells_.erase(told);
        over();
    }
}

bool TargetSession::void_number(std::uint32_t number) {
    if (!admits(number)) return false;
    window_->enter(number, {});
    take_turns();
    return true;
}

}  // namespace weft::iscsi
