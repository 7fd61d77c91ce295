// SPDX-License-Identifier: Apache-2.0
// The initiator's TCP mover alone, against PDUs made by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "iscsi/tcp_initiator_mover.hpp"
#include "support/golden.hpp"
#include "wire/iscsi.hpp"

namespace weft::iscsi {

using test::Bytes;

struct SentPdu {
    wire::BasicHeader basic;
    Bytes header;
    Bytes data;
};

/// The mover's user and its peer.
class TcpInitiatorFixture final : public InitiatorDatamoverUser {
public:
    TcpInitiatorMover mover{*this};
    std::vector<std::string> log;
    std::vector<InitiatorMoverTask*> tasks;
    std::optional<InitiatorAnswer> last;
    Bytes last_sense;
    std::optional<Error> lost_for;
    std::uint32_t status_number = 1;
    bool follows_numbers = false;  ///< acknowledges what it hears
    bool spoil_next_data = false;

    explicit TcpInitiatorFixture(ConnectionTerms terms) : digest_(terms.data_digest) {
        terms.tasks_max = 4;
        mover.begin_full_feature(terms);
    }
    ~TcpInitiatorFixture() { mover.closed(std::nullopt); }

    void opened() override { log.push_back("opened"); }
    void control(const ReceivedPdu& pdu) override {
        log.push_back("control " + std::to_string(pdu.data.size()));
    }
    InitiatorMoverTask* find_task(wire::InitiatorTaskTag tag) override {
        for (auto* task : tasks)
            if (task->command.task_tag == tag) return task;
        return nullptr;
    }
    void responded(InitiatorMoverTask& task, const InitiatorAnswer& answer) override {
        last = answer;
        last_sense.assign(answer.sense.begin(), answer.sense.end());
        log.push_back("responded " + std::to_string(task.slot));
    }
    void retired(InitiatorMoverTask& task) override {
        log.push_back("retired " + std::to_string(task.slot));
        std::erase(tasks, &task);
    }
    void heard(const wire::TargetNumbers& numbers, StatusCount count) override {
        if (count == StatusCount::counts && follows_numbers)
            status_number = numbers.status_number + 1;
    }
    std::uint32_t expected_status_number() override { return status_number; }
    void lost(std::optional<Error> why) override { lost_for = why; }

    /// All that the mover has to send, as PDUs.
    std::vector<SentPdu> sent() {
        Bytes stream;
        std::array<ConstBuffer, 3> pieces;
        while (mover.pending(pieces) > 0) {
            const Bytes piece(pieces[0].begin(), pieces[0].end());
            stream.insert(stream.end(), piece.begin(), piece.end());
            mover.sent(piece.size());
        }
        std::vector<SentPdu> pdus;
        for (std::size_t at = 0; at < stream.size();) {
            const ConstBuffer rest = ConstBuffer(stream).subspan(at);
            SentPdu pdu{.basic = *decode<wire::BasicHeader>(rest), .header = {}, .data = {}};
            pdu.header.assign(rest.begin(), rest.begin() + 48);
            pdu.data.assign(rest.begin() + 48, rest.begin() + 48 + pdu.basic.data_length);
            at += 48 + pdu.basic.padded_data_size();
            if (digest_ && pdu.basic.data_length > 0) at += 4;
            pdus.push_back(std::move(pdu));
        }
        return pdus;
    }
    template <class Pdu>
    void come(Pdu pdu, ConstBuffer data) {
        Bytes octets(48);
        encode(pdu, octets);
        octets.insert(octets.end(), data.begin(), data.end());
        octets.resize(48 + round_up(data.size(), 4));
        if (digest_ && !data.empty()) {
            const auto sum = crc32c(ConstBuffer(octets).subspan(48));
            for (int shift = 0; shift < 32; shift += 8)
                octets.push_back(static_cast<std::byte>(sum >> shift & 0xff));
            if (std::exchange(spoil_next_data, false)) octets[48] ^= std::byte{1};
        }
        for (std::size_t at = 0; at < octets.size() && !mover.finished();) {
            const Buffer place = mover.want();
            ASSERT_FALSE(place.empty());
            const std::size_t count = std::min({place.size(), octets.size() - at, std::size_t{7}});
            std::memcpy(place.data(), octets.data() + at, count);
            at += count;
            mover.filled(count);
        }
    }

private:
    bool digest_;
};

struct MoverTask final : InitiatorMoverTask {
    Bytes memory;
    std::vector<Buffer> pieces;

    MoverTask(std::uint32_t number, std::size_t size, bool write) : memory(size) {
        for (std::size_t i = 0; i < size; ++i) memory[i] = static_cast<std::byte>(i * 3 + 1);
        pieces = {Buffer(memory).first(size / 3), Buffer(memory).subspan(size / 3)};
        slot = number;
        command.task_tag = static_cast<wire::InitiatorTaskTag>(number + 100);
        command.expected_transfer_length = static_cast<std::uint32_t>(size);
        command.read = !write;
        command.write = write;
        (write ? data_out : data_in) = pieces;
    }
};

inline void start(TcpInitiatorFixture& fixture, MoverTask& task) {
    fixture.tasks.push_back(&task);
    fixture.mover.start(task);
}

inline Bytes joined(const std::vector<SentPdu>& pdus) {
    Bytes all;
    for (const auto& pdu : pdus) all.insert(all.end(), pdu.data.begin(), pdu.data.end());
    return all;
}

}  // namespace weft::iscsi
