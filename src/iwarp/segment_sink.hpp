// SPDX-License-Identifier: Apache-2.0
// What framing and placement say to each other. The FPDU receiver finds where segments begin and
// end and whether they are intact; the sink knows what they mean and where their payload belongs.
#pragma once

#include "weft/buffer.hpp"
#include "weft/result.hpp"
#include "wire/ddp.hpp"

namespace weft::iwarp {

struct InboundSegment {
    wire::Segment header;
    ConstBuffer header_octets;   ///< as they came: a Terminate quotes them
    std::size_t ulpdu_size = 0;  ///< header and payload
    std::size_t payload_size = 0;
};

enum class Readiness : std::uint8_t {
    ready,
    not_yet,  ///< a Send, and no receive is posted for it
};

class SegmentSink {
public:
    /// A segment has begun: may it, and is there a place for its payload? Asked again after
    /// not_yet. With checksums verified first, it is known to be intact.
    virtual Result<Readiness> begin(const InboundSegment& segment) = 0;
    /// Where its next octets belong: one run, perhaps longer than what is left of the segment.
    /// Empty only if the memory was taken away since begin().
    virtual Buffer place() = 0;
    /// place() was empty, or not there, and there are octets for it: what to tell the peer. Asked
    /// once.
    virtual Error memory_gone() = 0;
    virtual void placed(std::size_t count) = 0;
    /// The segment is placed whole, and intact.
    virtual Result<void> end(const InboundSegment& segment) = 0;

protected:
    ~SegmentSink() = default;
};

}  // namespace weft::iwarp
