// SPDX-License-Identifier: Apache-2.0
// What arriving segments mean: the rules of DDP (RFC 5041) and RDMAP (RFC 5040, RFC 7306).
//
// A tagged segment goes where its tag says, if the tag allows it. An untagged one goes to the queue
// it names: Sends into the receives the application posted, in order; Read Requests to the
// responder; a Terminate ends it all. Each broken rule has its own fault, and nothing is placed
// before all rules of a segment were checked.
#pragma once

#include <array>
#include <cstdint>

#include "base/fixed_vector.hpp"
#include "iwarp/memory_table.hpp"
#include "iwarp/outstanding_reads.hpp"
#include "iwarp/read_responder.hpp"
#include "iwarp/segment_sink.hpp"
#include "iwarp/session_owner.hpp"
#include "iwarp/terms.hpp"
#include "wire/terminate.hpp"

namespace weft::iwarp {

class Inbound final : public SegmentSink {
public:
    Inbound(SessionOwner& owner, MemoryTable& memory, Asker asker, const Terms& terms,
            ReadResponder& responder, OutstandingReads& reads);

    Result<Readiness> begin(const InboundSegment& segment) override;
    Buffer place() override;
    Error memory_gone() override;
    void placed(std::size_t count) override;
    Result<void> end(const InboundSegment& segment) override;

    /// The session has ended: the owner is to hear nothing more, also of the segment at hand.
    void stop() { stopped_ = true; }

    /// What the peer gave as its reason for the end; then nothing that follows counts.
    const std::optional<wire::TerminateControl>& peer_terminate() const { return peer_terminate_; }
    /// And what it quotes.
    Quoted peer_quoted() const;
    /// Whether the segment at hand is a Read Request that was read whole; then a Terminate quotes
    /// it.
    const std::optional<wire::ReadRequest>& read_request() const { return read_request_; }
    bool peer_has_spoken() const { return peer_has_spoken_; }
    /// Writes that are here whole, and brought something.
    std::uint64_t writes_received() const { return writes_received_; }

private:
    enum class Purpose : std::uint8_t { write, read, receive };
    struct Place {
        MemoryRange bytes;
        std::uint64_t offset = 0;
        SteeringTag tag{};  ///< 0: memory of our own, always there
        Rights rights{};
        Purpose purpose{};  ///< whose memory it is, if it goes away
    };

    Result<Readiness> begin_tagged(const wire::TaggedSegment& header, std::size_t size);
    Result<Readiness> begin_untagged(const wire::UntaggedSegment& header, std::size_t size);
    Result<Readiness> begin_write(const wire::TaggedSegment& header, std::size_t size);
    Result<Readiness> begin_read_response(const wire::TaggedSegment& header, std::size_t size);
    Result<Readiness> begin_send(const wire::UntaggedSegment& header, std::size_t size);
    Result<Readiness> begin_control(const wire::UntaggedSegment& header, std::size_t size);
    Result<void> find_room_in_receive(std::size_t size);
    Result<void> add_place(SteeringTag tag, std::uint64_t offset, std::size_t size,
                           Purpose purpose);
    Error end_receive_without_memory();
    Error end_read_without_memory();
    bool is_ready_message(const wire::UntaggedSegment& header, std::size_t size) const;

    void end_tagged(const wire::TaggedSegment& header, std::size_t size);
    Result<void> end_send(const wire::UntaggedSegment& header, std::size_t size);
    Result<void> end_control(const wire::UntaggedSegment& header, std::size_t size);
    Result<void> end_atomic_response(ConstBuffer body);
    Result<wire::Terminate> terminate() const;
    void end_immediate(const wire::UntaggedSegment& header, ConstBuffer body);
    void end_read(std::uint64_t original);

    SessionOwner& owner_;
    MemoryTable& memory_;
    const Asker asker_;
    const Terms& terms_;
    ReadResponder& responder_;
    OutstandingReads& reads_;

    FixedVector<Place, ranges_per_message> places_;  ///< of the segment at hand
    std::size_t place_at_ = 0;
    std::uint64_t revocations_seen_ = 0;  ///< since when the places are known to be good

    std::array<std::uint32_t, 4> next_message_{1, 1, 1, 1};  ///< number, by queue
    const PostedReceive* receive_ = nullptr;                 ///< being filled
    wire::RdmapOpcode receive_opcode_{};
    std::uint32_t received_ = 0;
    std::uint64_t write_bytes_ = 0;  ///< of the write at hand
    std::uint64_t writes_received_ = 0;
    std::uint64_t last_write_bytes_ = 0;  ///< of the one before: an immediate reports it
    bool peer_has_spoken_ = false;
    bool stopped_ = false;

    std::array<std::byte, wire::terminate_limit> control_{};  ///< the body of a short message
    Buffer control_piece_;
    std::optional<wire::ReadRequest> read_request_;
    std::optional<wire::TerminateControl> peer_terminate_;
    std::uint8_t terminate_size_ = 0;  ///< its body stays in control_: nothing comes after it
};

}  // namespace weft::iwarp
