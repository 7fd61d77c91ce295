// SPDX-License-Identifier: Apache-2.0
// One side of a connection in full operation: a session, memory, and an owner who has work for it
// and receives for its peer. The owner holds the session to its promises: after session_failed()
// nothing is called but work_sent(), and what ends had begun.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "iwarp/session.hpp"
#include "support/fpdu_sender_fixture.hpp"
#include "support/fpdu_writer.hpp"
#include "weft/takes_ahead.hpp"
#include "weft/world.hpp"

namespace weft::test {

inline constexpr auto all_rights = Rights::local_write | Rights::remote_read |
                                   Rights::remote_write | Rights::remote_atomic |
                                   Rights::bind_windows;

class SessionSide final : public iwarp::SessionOwner, public StreamEngine, public TakesAhead {
public:
    static constexpr iwarp::Asker us{iwarp::DomainId{7}, iwarp::QueuePairId{1}};
    static constexpr std::uint64_t base = 0x100000;  ///< the address of the memory's first byte

    explicit SessionSide(const iwarp::Terms& terms, const iwarp::SessionOptions& options = {})
        : session_(std::make_unique<iwarp::Session>(*this, memory, us, buffers, terms, options)) {
        local_ = add_region(0, arena.size(), Rights::local_write);
    }

    Bytes arena = pattern(200'000, 9);  ///< never moves
    iwarp::MemoryTable memory{64, 100};
    iwarp::FpduBuffers buffers{1u << 20, 0};

    // What was heard of the session.
    std::vector<std::string> events;
    std::vector<iwarp::ReceiveOutcome> received;
    std::vector<std::uint64_t> originals;  ///< of reads and atomics that ended
    std::size_t works_sent = 0;
    int spoke = 0;
    int wakes = 0;
    std::optional<wire::TerminateControl> failure;
    iwarp::FaultOf whose{};
    iwarp::Quoted about;
    /// Called last in the call of that name.
    std::function<void()> on_wake = [] {}, on_received = [] {}, on_work_sent = [] {},
                          on_asked = [] {};

    iwarp::Session& session() { return *session_; }
    SteeringTag local_tag() const { return local_; }

    SteeringTag add_region(std::size_t at, std::size_t size, Rights rights,
                           iwarp::DomainId domain = us.domain) {
        Buffer piece = Buffer(arena).subspan(at, size);
        return *memory.add_region(domain, {&piece, 1}, base + at, rights, Addressing::by_address);
    }
    void post_receive(std::size_t at, std::uint32_t size) {
        post_receive({{base + at, size, local_}});
    }
    void post_receive(std::vector<verbs::LocalMemory> local) {
        auto& posted = receives_.emplace_back();
        posted.local = std::move(local);
        posted.receive.local = posted.local;
        session_->receive_posted();
    }

    // Work, in its order.
    OutgoingMessage& post(WireMessage message) {
        auto& work = works_.emplace_back(Work{OutgoingMessage(message), std::nullopt});
        on_wake();
        return work.message;
    }
    void post_send(ConstBuffer bytes, wire::RdmapOpcode opcode = wire::RdmapOpcode::send,
                   SteeringTag invalidate = {}) {
        post({opcode, invalidate, 0, Bytes(bytes.begin(), bytes.end())});
    }
    void post_write(SteeringTag tag, std::uint64_t offset, ConstBuffer bytes) {
        post({wire::RdmapOpcode::write, tag, offset, Bytes(bytes.begin(), bytes.end())});
    }
    void post_read(std::size_t sink_at, std::uint32_t size, SteeringTag source,
                   std::uint64_t offset) {
        auto body = octets_of(wire::ReadRequest{.sink_tag = local_,
                                                .sink_offset = wire::TaggedOffset{base + sink_at},
                                                .size = size,
                                                .source_tag = source,
                                                .source_offset = wire::TaggedOffset{offset}});
        works_.push_back(
            {OutgoingMessage(WireMessage{wire::RdmapOpcode::read_request, {}, 0, body}),
             outstanding(sink_at, size)});
        on_wake();
    }
    void post_atomic(std::size_t sink_at, const wire::AtomicRequest& request) {
        auto read = outstanding(sink_at, 8);
        read.kind = iwarp::OutstandingRead::Kind::atomic;
        read.request_identifier = request.request_identifier;
        works_.push_back({OutgoingMessage(WireMessage{
                              wire::RdmapOpcode::atomic_request, {}, 0, octets_of(request)}),
                          read});
        on_wake();
    }
    iwarp::OutstandingRead outstanding(std::size_t sink_at, std::uint32_t size) const {
        return {.sink_tag = local_, .sink_offset = base + sink_at, .size = size};
    }
    std::size_t works_begun() const { return begun_; }

    /// The peer's octets, in pieces; returns how many it took.
    std::size_t hear(ConstBuffer stream, std::size_t step = SIZE_MAX) {
        std::size_t taken = 0;
        while (taken < stream.size()) {
            Buffer place = session_->want();
            if (place.empty()) break;
            auto count = std::min({place.size(), stream.size() - taken, step});
            std::memcpy(place.data(), stream.data() + taken, count);
            taken += count;
            session_->filled(count);
        }
        return taken;
    }
    /// All it has to say now.
    Bytes say() {
        Bytes said;
        std::array<ConstBuffer, 64> pieces;
        while (auto used = session_->pending(pieces)) {
            std::size_t count = 0;
            for (std::size_t i = 0; i < used; ++i) {
                said.insert(said.end(), pieces[i].begin(), pieces[i].end());
                count += pieces[i].size();
            }
            session_->sent(count);
        }
        return said;
    }

    // As its stream sees it.
    Buffer want() override { return session_->want(); }
    void filled(std::size_t count) override { session_->filled(count); }
    std::size_t take_ahead(ConstBuffer bytes) override { return session_->take_ahead(bytes); }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        return session_->pending(pieces);
    }
    void sent(std::size_t count) override { session_->sent(count); }
    bool finished() const override { return session_->finished(); }
    std::optional<Instant> deadline() const override { return session_->deadline(); }
    void tick(Instant now) override { session_->tick(now); }
    void closed(std::optional<Error>) override {}

    // As its session sees it.
    std::optional<iwarp::Message> next_work() override {
        expect_alive();
        on_asked();
        if (begun_ == works_.size()) return std::nullopt;
        auto& work = works_[begun_];
        if (work.read) {
            if (session_->reads().full()) return std::nullopt;
            session_->reads().push(*work.read);
        }
        ++begun_;
        return work.message.message();
    }
    void work_sent() override {
        ASSERT_LT(works_sent, begun_);
        ++works_sent;
        on_work_sent();
    }
    void read_ended(std::uint64_t original) override {
        note("read ended " + std::to_string(original));
        originals.push_back(original);
        on_wake();  // more work may go now
    }
    void read_failed() override { note("read failed"); }
    const iwarp::PostedReceive* take_receive() override {
        expect_alive();
        EXPECT_FALSE(is_taken_) << "a message began amid another";
        if (taken_ == receives_.size()) return nullptr;
        is_taken_ = true;
        return &receives_[taken_++].receive;
    }
    void receive_ended(const iwarp::ReceiveOutcome& outcome) override {
        note("received " + std::to_string(outcome.bytes));
        EXPECT_TRUE(is_taken_);
        is_taken_ = false;
        received.push_back(outcome);
        on_received();
    }
    void wake() override {
        expect_alive();
        ++wakes;
        on_wake();
    }
    void peer_spoke() override {
        note("spoke");
        EXPECT_EQ(++spoke, 1);
    }
    void session_failed(const wire::TerminateControl& why, iwarp::FaultOf who,
                        const iwarp::Quoted& what) override {
        note("failed");
        failure = why;
        whose = who;
        about = what;
    }

private:
    struct Work {
        OutgoingMessage message;
        std::optional<iwarp::OutstandingRead> read;
    };
    struct Posted {
        iwarp::PostedReceive receive;
        std::vector<verbs::LocalMemory> local;
    };
    void expect_alive() const { EXPECT_FALSE(failure) << "called after session_failed()"; }
    void note(const std::string& event) {
        expect_alive();
        events.push_back(event);
    }

    SteeringTag local_{};
    std::deque<Work> works_;  ///< stays: what has begun is before begun_
    std::size_t begun_ = 0;
    std::deque<Posted> receives_;  ///< stays: what was taken is before taken_
    std::size_t taken_ = 0;
    bool is_taken_ = false;  ///< and has not ended
    std::unique_ptr<iwarp::Session> session_;
};

}  // namespace weft::test
