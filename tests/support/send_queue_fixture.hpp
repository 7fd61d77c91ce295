// SPDX-License-Identifier: Apache-2.0
// A send queue with registered memory to send from, and short words for what a connection does with
// it: takes its messages, tells it that they are sent, and that answers have come.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "verbs/send_queue.hpp"
#include "wire/rdmap.hpp"

namespace weft::test {

class SendQueueTest : public testing::Test {
protected:
    using Operation = verbs::Operation;
    using Status = verbs::Status;
    using Opcode = wire::RdmapOpcode;

    static constexpr std::uint32_t capacity = 4, pieces = 2, inline_room = 16;
    static constexpr iwarp::Asker us{iwarp::DomainId{7}, iwarp::QueuePairId{1}};
    static constexpr auto all_rights =
        Rights::local_write | Rights::remote_read | Rights::remote_write | Rights::bind_windows;

    SendQueueTest() {
        for (std::size_t i = 0; i < memory.size(); ++i)
            memory[i] = static_cast<std::byte>('a' + i % 26);
    }

    /// Part of the memory, which counts from zero.
    verbs::LocalMemory at(std::uint64_t offset, std::uint32_t size) const {
        return {offset, size, tag};
    }
    Result<void> post(const verbs::SendRequest& request) { return queue.post(request, terms); }
    Result<void> post_send(std::uint64_t id, std::uint32_t size = 8) {
        std::array local{at(0, size)};
        return post({.id = id, .local = local});
    }
    Result<void> post_read(std::uint64_t id, Operation operation = Operation::read) {
        std::array local{at(8, 8)};
        return post({.id = id, .operation = operation, .local = local});
    }
    /// The opcode of the message that goes now, if one does.
    std::optional<Opcode> begin() {
        auto message = queue.next_message(reads);
        if (!message) return std::nullopt;
        payload.clear();
        for (auto source : message->payload)
            for (; !source.bytes.empty(); source.bytes.drop_front(1))
                payload.push_back(source.bytes.front().front());
        last = *message;
        return message->opcode;
    }
    void answer() {
        reads.pop();
        queue.read_ended();
    }
    std::string payload_text() const {
        return {reinterpret_cast<const char*>(payload.data()), payload.size()};
    }
    std::vector<verbs::Completion> completions() {
        std::vector<verbs::Completion> all;
        while (auto one = queue.next_completion()) all.push_back(*one);
        return all;
    }
    std::vector<std::uint64_t> completed() {
        std::vector<std::uint64_t> ids;
        for (auto& each : completions()) ids.push_back(each.id);
        return ids;
    }

    std::array<std::byte, 64> memory{};
    iwarp::MemoryTable table{16, 3};
    SteeringTag tag = *table.add_region(us.domain, std::array{Buffer(memory)}, 0, all_rights,
                                        Addressing::from_zero);
    iwarp::Terms terms{.outbound_reads = 2, .peer = iwarp::Peer::weft};
    iwarp::OutstandingReads reads{2};
    verbs::SendQueue queue{{capacity, pieces, inline_room}, table, us};

    iwarp::Message last;  ///< what begin() took
    std::vector<std::byte> payload;
};

using Ids = std::vector<std::uint64_t>;

}  // namespace weft::test
