// SPDX-License-Identifier: Apache-2.0
// Wraps the segments of messages in FPDUs (RFC 5044 section 4) and lends these out for sending.
//
// Nothing is copied: an FPDU is lent as its header (scratch), its payload (registered memory, piece
// by piece) and its trailer (scratch). Several are lent at once, so that one sendmsg carries many.
// There are three exceptions. A payload of a few octets is copied behind its header: that costs
// less than a piece more in a sendmsg, and programs write their credits and flags with no regard
// for one that is still under way, which hardware forgives and a checksum made before would not.
// Answers to reads come from memory that peers and its owner may change
// at any time, also between checksum and departure: where there are checksums, such a payload is
// copied and the copy is what counts. Towards a peer that asked for markers each FPDU is built in a
// buffer, one at a time: markers stand amid the payload. What all this needs is by far the most of
// what a connection costs, so it is there only while there is something to send, and until rest().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "iwarp/fpdu_buffers.hpp"
#include "iwarp/memory_holds.hpp"
#include "iwarp/segment_cutter.hpp"
#include "wire/mpa.hpp"

namespace weft::iwarp {

struct FpduSenderOptions {
    bool checksum = true;
    bool markers = false;
    std::size_t ulpdu_max = 0;  ///< see wire::largest_ulpdu; header and payload of one segment
};

class FpduSender {
public:
    /// `waiter` hears when a buffer is there again that was missing: pending() then has more.
    FpduSender(MessageSource& source, MemoryHolds& memory, FpduBuffers& buffers,
               FpduBufferWaiter& waiter, const FpduSenderOptions& options);
    ~FpduSender();  ///< releases what it held
    FpduSender(const FpduSender&) = delete;
    FpduSender& operator=(const FpduSender&) = delete;

    /// As StreamEngine::pending(): takes messages from the source as room allows.
    std::size_t pending(std::span<ConstBuffer> pieces);
    void sent(std::size_t count);

    /// Whether an FPDU has been sent in part: the stream makes sense only once it is whole.
    bool amid_fpdu() const { return front_sent_ > 0; }
    /// Takes no more messages, and leaves the one that is being cut as it is: message_sent() will
    /// never come for it. What pending() has given out still goes, to the end of its last FPDU: it
    /// may be on its way already. `last`, if there is one, goes after it: a Terminate, about which
    /// the source hears nothing. Only the first call counts.
    void wind_up(std::optional<Message> last);
    /// Whether it has the room that sending needs. It is taken when it is needed.
    bool has_room() const { return room_ != nullptr; }
    /// Gives that room back, unless something is lent: for a connection that has gone quiet.
    void rest();
    /// FPDUs made so far.
    std::uint64_t fpdu_count() const { return fpdu_count_; }
    std::uint64_t fpdus_sent() const { return fpdu_count_ - lent_; }
    std::uint64_t octets_sent() const { return octets_sent_; }
    bool holds_buffers() const { return copied_bytes_ > 0; }
    /// Whether bytes of that memory are among what is lent, or will be before the message ends.
    bool holds(SteeringTag tag) const;

    /// Nothing more will ever be pending.
    bool is_wound_up() const { return winding_up_ && lent_ == 0 && !last_ && cutter_.done(); }

private:
    using HeldTags = FixedVector<SteeringTag, ranges_per_message>;
    enum class Ends : std::uint8_t {
        nothing,    ///< more of its message follows
        silently,   ///< all that goes of its message, and the source is not told
        a_message,  ///< of the source, which is told
    };
    /// Lent in this order; head and tail are in scratch.
    struct Fpdu {
        ConstBuffer head;  ///< with markers, the whole
        SegmentPayload payload;
        Buffer copy;  ///< of the payload, from the pool; or none. A short one is part of the head
        ConstBuffer tail;
        std::size_t size = 0;
        Ends ends = Ends::nothing;
        HeldTags held;  ///< unless it ends nothing: what to release when it is sent
    };
    /// A trailer, ending where the header of the FPDU after it begins: one piece to send. Behind
    /// the header there is room for a short payload.
    struct Seam {
        static constexpr std::size_t trailer_room = 8;
        static constexpr std::size_t header_room = 24;
        static constexpr std::size_t payload_room = 96;
        alignas(32) std::array<std::byte, trailer_room + header_room + payload_room> octets;
    };
    /// A ring: FPDU i's header is in seam i and its trailer in the next.
    struct Room {
        std::array<Fpdu, limits::fpdus_lent> fpdus;
        std::array<Seam, limits::fpdus_lent> seams;
        std::vector<std::byte> plain,
            marked;  ///< with markers: an FPDU without them, and with them
    };
    class Lending;

    void take_room();
    bool make_next();
    bool begin_message();
    bool must_copy() const;
    Buffer take_copy();
    void drop_copy(Fpdu& fpdu);
    void make(Fpdu& fpdu, Seam& before, Seam& after);
    static void copy_payload(Fpdu& fpdu);
    static Buffer with_payload(Buffer head, SegmentPayload& payload);
    void mark(Fpdu& fpdu);
    void pop();
    void release(const HeldTags& tags);
    Fpdu& lent(std::size_t i) const { return room_->fpdus[(first_ + i) % limits::fpdus_lent]; }

    MessageSource& source_;
    MemoryHolds& memory_;
    FpduBuffers& buffers_;
    FpduBufferWaiter& waiter_;
    FpduSenderOptions options_;
    SegmentCutter cutter_;
    HeldTags cutting_held_;        ///< of the message the cutter has begun
    Ends cutting_ends_{};          ///< what its last FPDU will end
    std::optional<Message> last_;  ///< waits for its turn
    bool winding_up_ = false;

    std::unique_ptr<Room> room_;
    std::uint64_t fpdu_count_ = 0;
    std::uint64_t octets_sent_ = 0;
    std::size_t first_ = 0;
    std::size_t lent_ = 0;
    std::size_t lent_bytes_ = 0;  ///< the sizes of all that are in the ring
    std::size_t copied_bytes_ = 0;
    std::size_t front_sent_ = 0;  ///< octets of the first that are gone
    std::uint64_t position_ = 0;  ///< in the marked stream, of the next FPDU
};

}  // namespace weft::iwarp
