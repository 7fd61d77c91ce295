// SPDX-License-Identifier: Apache-2.0
// Cuts messages into DDP segments (RFC 5041 sections 4 and 5): as large as allowed, numbered, each
// with the place its payload belongs in. Nothing is copied; a segment's payload is a list of the
// places where it lies.
#pragma once

#include <array>

#include "base/fixed_vector.hpp"
#include "iwarp/limits.hpp"
#include "iwarp/message.hpp"

namespace weft::iwarp {

using SegmentPayload = FixedVector<ConstBuffer, limits::payload_pieces_per_fpdu>;

class SegmentCutter {
public:
    /// `segment_max`: header and payload together; enough for any header and four octets.
    explicit SegmentCutter(std::size_t segment_max);

    /// Whether all of the last message has been cut, so that the next may begin.
    bool done() const { return done_; }
    void begin(const Message& message);
    wire::RdmapOpcode opcode() const { return message_.opcode; }
    /// Whether a segment of the message has been cut.
    bool has_cut() const { return done_ || offset_ > 0; }
    /// The next segment carries no more than this.
    std::size_t next_payload_max() const;
    /// Writes the next segment's header at the front of `header`, which has room for any, and puts
    /// its payload into `payload`, which is empty. Returns the header's size.
    std::size_t cut(Buffer header, SegmentPayload& payload);
    /// Leaves the message as it is.
    void abandon() { done_ = true; }

private:
    /// Where in the message's payload the next segment begins.
    struct Cursor {
        std::span<const Message::Source> behind;
        MemoryRange here;  ///< empty only at the end

        void enter_next();
        void advance(std::size_t count);
    };

    std::size_t gather(std::size_t most, SegmentPayload& payload);
    void encode_header(Buffer header, bool last) const;

    std::size_t segment_max_;
    bool done_ = true;
    Message message_;
    Cursor cursor_;
    std::uint32_t offset_ = 0;                     ///< in the message, of the next segment
    std::uint32_t left_ = 0;                       ///< octets not cut yet
    std::uint32_t message_number_ = 0;             ///< of this message, in its queue
    std::array<std::uint32_t, 4> last_numbers_{};  ///< by QueueNumber
};

}  // namespace weft::iwarp
