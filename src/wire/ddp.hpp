// SPDX-License-Identifier: Apache-2.0
// DDP, Direct Data Placement (RFC 5041), with the RDMAP control octet (RFC 5040) it carries.
//
// A tagged segment names the memory its payload belongs in. That is the whole of RDMA's zero copy:
// the receiver needs no one's help to know where the bytes go. An untagged segment names a queue of
// buffers its receiver has posted, and takes the next one.
//
// A refusal's `where` tells the two version errors apart: 0 for DDP's, 1 for RDMAP's.
#pragma once

#include <variant>

#include "base/wire_format.hpp"
#include "weft/registered_memory.hpp"

namespace weft::wire {

using weft::SteeringTag;                     // names a registered memory region
enum class TaggedOffset : std::uint64_t {};  ///< a place inside it

/// RFC 5040 section 4.1, figure 4; from immediate_data on RFC 7306 section 4.1, figure 2.
enum class RdmapOpcode : std::uint8_t {
    write = 0x0,
    read_request = 0x1,
    read_response = 0x2,
    send = 0x3,
    send_invalidate = 0x4,
    send_solicited = 0x5,
    send_solicited_invalidate = 0x6,
    terminate = 0x7,
    immediate_data = 0x8,
    immediate_data_solicited = 0x9,
    atomic_request = 0xa,
    atomic_response = 0xb,
};

/// Which of the receiver's queues of buffers an untagged segment is for.
enum class QueueNumber : std::uint32_t {
    send = 0,
    read_request = 1,  ///< atomic requests too
    terminate = 2,
    atomic_response = 3,
};

/// The segment header an opcode calls for.
constexpr bool is_tagged(RdmapOpcode opcode) {
    return opcode == RdmapOpcode::write || opcode == RdmapOpcode::read_response;
}
/// The queue an untagged opcode is bound to.
constexpr QueueNumber queue_of(RdmapOpcode opcode) {
    switch (opcode) {
        case RdmapOpcode::read_request:
        case RdmapOpcode::atomic_request:
            return QueueNumber::read_request;
        case RdmapOpcode::terminate:
            return QueueNumber::terminate;
        case RdmapOpcode::atomic_response:
            return QueueNumber::atomic_response;
        default:
            return QueueNumber::send;
    }
}
constexpr bool is_assigned(RdmapOpcode opcode) {
    return opcode <= RdmapOpcode::atomic_response;
}
constexpr bool invalidates(RdmapOpcode opcode) {
    return opcode == RdmapOpcode::send_invalidate ||
           opcode == RdmapOpcode::send_solicited_invalidate;
}
constexpr bool solicits_event(RdmapOpcode opcode) {
    return opcode == RdmapOpcode::send_solicited ||
           opcode == RdmapOpcode::send_solicited_invalidate ||
           opcode == RdmapOpcode::immediate_data_solicited;
}

/// RFC 5041 section 4.2, figure 4.
struct TaggedSegment {
    bool last = false;  ///< of its message
    RdmapOpcode opcode{};
    SteeringTag steering_tag{};
    TaggedOffset offset{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<1>("tagged", 1), bits<1>("last", h.last), reserved<4>,
               fixed<2>("ddp version", 1));
        v.pack(fixed<2>("rdmap version", 1), reserved<2>, bits<4>("opcode", h.opcode));
        v("steering tag", h.steering_tag);
        v("offset", h.offset);
    }
    bool operator==(const TaggedSegment&) const = default;
};
static_assert(wire_size<TaggedSegment>() == 14);

/// RFC 5041 section 4.3, figure 5.
struct UntaggedSegment {
    bool last = false;  ///< of its message
    RdmapOpcode opcode{};
    SteeringTag invalidate{};  ///< where invalidates(opcode); otherwise sent as 0 and ignored
    QueueNumber queue{};
    std::uint32_t message_number = 1;  ///< counts the messages of a queue, from one, and wraps
    std::uint32_t message_offset = 0;  ///< of this segment's payload

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<1>("tagged", 0), bits<1>("last", h.last), reserved<4>,
               fixed<2>("ddp version", 1));
        v.pack(fixed<2>("rdmap version", 1), reserved<2>, bits<4>("opcode", h.opcode));
        v("invalidate", h.invalidate);
        v("queue", h.queue);
        v("message number", h.message_number);
        v("message offset", h.message_offset);
    }
    bool operator==(const UntaggedSegment&) const = default;
};
static_assert(wire_size<UntaggedSegment>() == 18);

inline constexpr std::size_t segment_header_limit = wire_size<UntaggedSegment>();

/// The size of the header that begins with this octet.
constexpr std::size_t segment_header_size(std::byte first) {
    return (first & std::byte{0x80}) != std::byte{0} ? wire_size<TaggedSegment>()
                                                     : wire_size<UntaggedSegment>();
}

using Segment = std::variant<TaggedSegment, UntaggedSegment>;

/// Reads whichever header the first octet announces.
Result<Segment> decode_segment(ConstBuffer octets);

}  // namespace weft::wire
