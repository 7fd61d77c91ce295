// SPDX-License-Identifier: Apache-2.0
// Takes FPDUs (RFC 5044) off a byte stream and has their payload put where it belongs.
//
// There are two ways. Straight: the payload's place is what want() answers, so whoever reads the
// socket reads into registered memory. Verified: RFC 5044 section 6 lets nothing be placed before
// the checksum is known to be good, so with checksums the FPDU is taken whole into a buffer,
// verified, and its payload copied. Markers stand amid the payload and need the buffer too. Where
// short FPDUs have been read ahead of their places anyway, they are taken from there one by one.
#pragma once

#include <array>

#include "base/crc32c.hpp"
#include "base/stream_receiver.hpp"
#include "iwarp/fpdu_buffers.hpp"
#include "iwarp/limits.hpp"
#include "iwarp/segment_sink.hpp"
#include "wire/mpa.hpp"

namespace weft::iwarp {

enum class Placement : std::uint8_t {
    verified,  ///< after the checksum, as the RFC has it
    eager,     ///< before it, as Linux does; a bad checksum is found when the damage is done
};

struct FpduReceiverOptions {
    bool checksum = true;
    bool markers = false;
    Placement placement = Placement::verified;
};

class FpduReceiver {
public:
    /// `waiter` hears when a buffer is there again that was missing: want() then has an answer.
    FpduReceiver(SegmentSink& sink, FpduBuffers& buffers, FpduBufferWaiter& waiter,
                 const FpduReceiverOptions& options);
    FpduReceiver(const FpduReceiver&) = delete;  // part_ may point into scratch_
    ~FpduReceiver();

    /// Where the next bytes belong. Empty while a segment waits for a receive to be posted, or for
    /// a buffer.
    Buffer want();
    /// After an error the stream is beyond repair: send a Terminate, which quotes segment().
    Result<void> filled(std::size_t count);
    /// Bytes that lie elsewhere: takes the FPDU they begin with, if it is there whole and nothing
    /// of it was taken yet, and says how long it was. It is verified where it lies, and only its
    /// payload is copied. None, if it has to be brought by want(). Errors as above.
    Result<std::size_t> take_whole(ConstBuffer bytes);
    /// A receive was posted: asks the sink again about the segment it was not ready for.
    Result<void> resume();

    /// Nothing more will be received: it needs no buffer any more.
    void stop_waiting() { buffers_.forget(waiter_); }
    bool holds_buffer() const { return !lent_.empty(); }
    /// Nothing more will be received, and nobody is filling what want() gave.
    void drop_buffer();

    bool is_stalled() const { return stage_ == Stage::stalled; }
    bool is_amid_fpdu() const { return stage_ != Stage::start || have_ > 0; }
    std::uint64_t fpdu_count() const { return fpdu_count_; }
    std::uint64_t octet_count() const { return octet_count_; }
    /// The one at hand. Its header_octets are empty if none could be read.
    const InboundSegment& segment() const { return segment_; }

private:
    enum class Stage : std::uint8_t {
        start,          ///< as much as every FPDU has
        untagged_rest,  ///< straight: the four octets an untagged header has more
        payload,        ///< straight
        trailer,        ///< straight
        whole,          ///< verified: the rest of it
        stalled,        ///< the sink is not ready
    };

    void begin_fpdu();
    bool begins_with_room_for_header() const;
    ConstBuffer length_octets() const;
    void begin(Stage stage, Buffer part) { stage_ = stage, part_ = part, have_ = 0; }
    Result<void> advance();
    void add_to_checksum(ConstBuffer placed);

    // Straight.
    Result<void> know_header(ConstBuffer header);
    Result<void> read_header(ConstBuffer octets);
    Result<void> offer_segment();
    void begin_payload_or_trailer();
    Result<void> end_trailer();

    // Verified.
    void begin_whole();
    Result<void> end_whole();
    Result<void> place_from_buffer();
    Result<void> copy_into_place(ConstBuffer payload);

    Result<void> end_fpdu();
    std::size_t first_part_size() const;

    SegmentSink& sink_;
    FpduBuffers& buffers_;
    FpduBufferWaiter& waiter_;
    const bool checksum_;
    const bool markers_;
    const bool verified_first_;

    Stage stage_ = Stage::start;
    Buffer part_;           ///< what is being received; in Stage::payload what is left is counted
    std::size_t have_ = 0;  ///< how much of it has come
    std::size_t payload_left_ = 0;
    bool memory_gone_ = false;  ///< the payload's place was taken away amid the segment

    InboundSegment segment_;
    Crc32c crc_;
    std::size_t fpdu_size_ = 0;          ///< verified: with markers, if there are any
    std::uint64_t stream_position_ = 0;  ///< of this FPDU, for the markers
    std::uint64_t fpdu_count_ = 0;
    std::uint64_t octet_count_ = 0;
    Buffer lent_;  ///< from the pool
    std::array<std::byte, limits::small_fpdu> scratch_;
};
static_assert(StreamReceiver<FpduReceiver>);

}  // namespace weft::iwarp
