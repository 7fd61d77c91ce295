// SPDX-License-Identifier: Apache-2.0
// What stands above the iSER datamovers in their tests: a target that is a run of memory, and an
// initiator that reads and writes it. There is no login: the terms hold from the beginning.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "block/scatter.hpp"
#include "iscsi/datamover.hpp"
#include "wire/iscsi_segments.hpp"
#include "wire/iscsi_task_management.hpp"

namespace weft::test {

/// Cuts memory into pieces of these sizes in turn, as a scatter list.
inline std::vector<Buffer> cut(Buffer memory, std::size_t each) {
    std::vector<Buffer> pieces;
    while (!memory.empty()) {
        auto size = std::min(memory.size(), each);
        pieces.push_back(memory.first(size));
        memory = memory.subspan(size);
    }
    return pieces;
}

/// A disk without SCSI: octets 2 to 5 of a command block say where the data lies.
class MemoryTarget final : public iscsi::TargetDatamoverUser {
public:
    explicit MemoryTarget(std::size_t size, std::uint32_t slots = 64)
        : memory(size), tasks(slots), lists(slots) {
        for (std::uint32_t i = slots; i-- > 0;) {
            tasks[i].slot = i;
            free.push_back(&tasks[i]);
        }
    }

    std::unique_ptr<iscsi::TargetDatamover> mover;
    std::vector<std::byte> memory;
    std::size_t piece_size = 1000;
    bool withholds_places = false;  ///< until give_places()
    bool answers_abandoned = true;  ///< or ends them without a word, as aborted tasks are
    std::vector<std::byte> sense;   ///< what every answer ends with, if not empty
    std::vector<iscsi::DataOutcome> outcomes;
    std::vector<wire::RejectReason> refusals;
    std::vector<std::vector<std::byte>> pings;
    std::size_t commands = 0, answers = 0;
    bool is_lost = false;
    std::optional<Error> why;

    void give_places() {
        withholds_places = false;
        for (auto* task : std::exchange(waiting, {})) begin(*task);
    }
    std::size_t busy() const { return tasks.size() - free.size(); }

    iscsi::TargetMoverTask* command(const iscsi::ReceivedPdu& pdu) override {
        EXPECT_TRUE(pdu.data.empty());
        auto command = *decode<wire::ScsiCommandPdu>(pdu.header);
        ++commands;
        if (free.empty()) return nullptr;
        auto& task = *free.back();
        free.pop_back();
        task = {.slot = task.slot, .tag = command.task_tag};
        task.immediate_length = command.data_length;
        task.expects_unsolicited = command.write && !command.final;
        if (command.write) task.out_length = command.expected_transfer_length;
        if (command.read) task.in_length = command.expected_transfer_length;
        if (command.read && command.write) {
            auto length = decode<wire::BidirectionalReadLength>(pdu.additional_headers);
            task.in_length = length ? length->expected_transfer_length : 0;
        }
        offsets[task.slot] = static_cast<std::size_t>(load_big_endian<4>(
            reinterpret_cast<const std::byte*>(command.command_block.data()) + 2));
        return &task;
    }
    void begin(iscsi::TargetMoverTask& task) override {
        if (withholds_places) return waiting.push_back(&task);
        if (task.out_length + task.immediate_length == 0) return answer(task);
        auto& list = lists[task.slot];
        list = cut(part(offsets[task.slot], task.out_length), piece_size);
        mover->take_data(task, list);
    }
    void data_taken(iscsi::TargetMoverTask& task, iscsi::DataOutcome outcome) override {
        outcomes.push_back(outcome);
        if (outcome != iscsi::DataOutcome::abandoned || answers_abandoned) return answer(task);
        mover->abandon(task);
        task = {.slot = task.slot};
        free.push_back(&task);
    }
    void answered(iscsi::TargetMoverTask& task) override {
        ++answers;
        free.push_back(&task);
    }
    void control(const iscsi::ReceivedPdu& pdu) override {
        auto ping = decode<wire::NopOutPdu>(pdu.header);
        if (!ping) return;
        pings.emplace_back(pdu.data.begin(), pdu.data.end());
        std::array<std::byte, wire::basic_header_size> header{};
        encode(wire::NopInPdu{.task_tag = ping->task_tag}, header);
        mover->send({.header = header, .data = pdu.data}, iscsi::StatusCount::counts);
    }
    iscsi::TargetMoverTask* find_task(wire::InitiatorTaskTag tag) override {
        for (auto& task : tasks)
            if (task.tag == tag && task.out_length > 0) return &task;
        return nullptr;
    }
    wire::TargetNumbers numbers(iscsi::StatusCount count) override {
        return {.status_number =
                    count == iscsi::StatusCount::counts ? status_number++ : status_number};
    }
    void acknowledged(std::uint32_t) override {}
    void refused(const iscsi::ReceivedPdu&, wire::RejectReason reason) override {
        refusals.push_back(reason);
    }
    void lost(std::optional<Error> reason) override {
        is_lost = true;
        why = reason;
    }

private:
    Buffer part(std::size_t offset, std::size_t size) {
        auto rest = Buffer(memory).subspan(std::min(offset, memory.size()));
        return rest.first(std::min(rest.size(), size));
    }
    void answer(iscsi::TargetMoverTask& task) {
        auto& list = lists[task.slot];
        list = cut(part(offsets[task.slot], task.in_length), piece_size);
        mover->answer(task, {.data_in = list, .response = {.task_tag = task.tag}, .sense = sense});
    }

    std::vector<iscsi::TargetMoverTask> tasks;
    std::vector<iscsi::TargetMoverTask*> free, waiting;
    std::vector<std::vector<Buffer>> lists;
    std::map<std::uint32_t, std::size_t> offsets;
    std::uint32_t status_number = 1;
};

/// One command of the initiator's and its memory.
struct MemoryCommand {
    iscsi::InitiatorMoverTask task;
    std::vector<std::byte> out, in, headers;
    std::vector<Buffer> out_list, in_list;
    std::vector<std::byte> sense;
    std::size_t offset = 0;
    bool is_answered = false, is_retired = false;
    std::uint64_t placed = 0;
};

class MemoryInitiator final : public iscsi::InitiatorDatamoverUser {
public:
    std::unique_ptr<iscsi::InitiatorDatamover> mover;
    std::size_t piece_size = 700;
    bool is_open = false, is_lost = false;
    std::optional<Error> why;
    std::size_t retirements = 0;
    std::vector<std::vector<std::byte>> pongs;
    std::function<void(MemoryCommand&)> on_retired;

    MemoryCommand& read(std::size_t offset, std::size_t size) { return start(offset, {}, size); }
    MemoryCommand& write(std::size_t offset, std::vector<std::byte> bytes) {
        return start(offset, std::move(bytes), 0);
    }
    MemoryCommand& start(std::size_t offset, std::vector<std::byte> out, std::size_t in_size) {
        auto& made = *(commands[next_tag] = std::make_unique<MemoryCommand>());
        made.out = std::move(out);
        made.in = std::vector<std::byte>(in_size);
        made.out_list = cut(made.out, piece_size);
        made.in_list = cut(made.in, piece_size);
        made.offset = offset;
        auto& command = made.task.command;
        command = {.read = in_size > 0,
                   .write = !made.out.empty(),
                   .task_tag = wire::InitiatorTaskTag{next_tag++}};
        command.expected_transfer_length =
            static_cast<std::uint32_t>(command.write ? made.out.size() : in_size);
        store_big_endian<4>(offset, reinterpret_cast<std::byte*>(command.command_block.data()) + 2);
        if (command.read && command.write) {
            made.headers.resize(wire_size<wire::BidirectionalReadLength>());
            encode(wire::BidirectionalReadLength{static_cast<std::uint32_t>(in_size)},
                   made.headers);
            made.task.additional_headers = made.headers;
        }
        made.task.data_out = made.out_list;
        made.task.data_in = made.in_list;
        made.task.slot = take_slot();
        mover->start(made.task);
        return made;
    }
    void ping(ConstBuffer data) {
        std::array<std::byte, wire::basic_header_size> header{};
        encode(wire::NopOutPdu{.immediate = true, .task_tag = wire::InitiatorTaskTag{0xeeee}},
               header);
        mover->send({.header = header, .data = data});
    }

    void opened() override { is_open = true; }
    void control(const iscsi::ReceivedPdu& pdu) override {
        pongs.emplace_back(pdu.data.begin(), pdu.data.end());
    }
    iscsi::InitiatorMoverTask* find_task(wire::InitiatorTaskTag tag) override {
        auto found = commands.find(static_cast<std::uint32_t>(tag));
        return found == commands.end() ? nullptr : &found->second->task;
    }
    void responded(iscsi::InitiatorMoverTask& task, const iscsi::InitiatorAnswer& answer) override {
        auto& command = command_of(task);
        EXPECT_FALSE(command.is_answered);
        command.is_answered = true;
        command.placed = answer.placed;
        command.sense.assign(answer.sense.begin(), answer.sense.end());
    }
    void retired(iscsi::InitiatorMoverTask& task) override {
        auto& command = command_of(task);
        EXPECT_FALSE(command.is_retired);
        command.is_retired = true;
        ++retirements;
        slots[task.slot] = false;
        if (on_retired) on_retired(command);
    }
    void heard(const wire::TargetNumbers& numbers, iscsi::StatusCount) override {
        EXPECT_EQ(numbers.status_number, expected) << "none is lost, and they keep their order";
        expected = numbers.status_number + 1;
    }
    std::uint32_t expected_status_number() override { return expected; }
    void lost(std::optional<Error> reason) override {
        is_lost = true;
        why = reason;
    }
    std::size_t busy() const {
        return static_cast<std::size_t>(std::count(slots.begin(), slots.end(), true));
    }

private:
    MemoryCommand& command_of(iscsi::InitiatorMoverTask& task) {
        return *commands.at(static_cast<std::uint32_t>(task.command.task_tag));
    }
    std::uint32_t take_slot() {
        for (std::uint32_t i = 0; i < slots.size(); ++i)
            if (!slots[i]) return slots[i] = true, i;
        ADD_FAILURE() << "too many at once";
        return 0;
    }

    std::map<std::uint32_t, std::unique_ptr<MemoryCommand>> commands;
    std::vector<bool> slots = std::vector<bool>(32);
    std::uint32_t next_tag = 1, expected = 1;
};

}  // namespace weft::test
