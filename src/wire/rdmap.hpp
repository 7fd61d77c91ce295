// SPDX-License-Identifier: Apache-2.0
// RDMAP, the messages of RDMA (RFC 5040, RFC 7306): what stands behind the DDP segment header in
// those that are not plain payload. Write, Read Response and the four Sends are: they need no more
// than wire/ddp.hpp, which also has the opcodes. Terminate is in wire/terminate.hpp.
#pragma once

#include "wire/ddp.hpp"

namespace weft::wire {

/// RFC 5040 section 4.4, figure 6: "send me that memory of yours into this memory of mine". The
/// source may not be looked at if the size is 0.
struct ReadRequest {
    SteeringTag sink_tag{};  ///< of the one who asks; the response carries it back unread
    TaggedOffset sink_offset{};
    std::uint32_t size = 0;
    SteeringTag source_tag{};
    TaggedOffset source_offset{};

    static constexpr void describe(auto& v, auto& h) {
        v("sink tag", h.sink_tag);
        v("sink offset", h.sink_offset);
        v("size", h.size);
        v("source tag", h.source_tag);
        v("source offset", h.source_offset);
    }
    bool operator==(const ReadRequest&) const = default;
};
static_assert(wire_size<ReadRequest>() == 28);

/// RFC 7306 section 6.2, figure 7. The octets are the applications' own: no byte order is implied.
struct ImmediateData {
    Octets<8> octets{};

    static constexpr void describe(auto& v, auto& h) { v("octets", h.octets); }
    bool operator==(const ImmediateData&) const = default;
};
static_assert(wire_size<ImmediateData>() == 8);

/// RFC 7306 section 5.2.1, figure 5.
enum class AtomicOperation : std::uint8_t { fetch_add = 0, compare_swap = 2 };

/// RFC 7306 section 5.2.1, figure 4. The mask of a fetch_add has a bit at the top of each field
/// that keeps its carry to itself: 0 adds all 64 bits as one number.
struct AtomicRequest {
    AtomicOperation operation{};
    std::uint32_t request_identifier = 0;  ///< the response carries it back
    SteeringTag remote_tag{};
    TaggedOffset remote_offset{};  ///< of eight octets, aligned to eight
    std::uint64_t add_or_swap = 0;
    std::uint64_t add_or_swap_mask = 0;
    std::uint64_t compare = 0;           ///< fetch_add sends 0
    std::uint64_t compare_mask = ~0ull;  ///< fetch_add sends all ones

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<28>, bits<4>("operation", h.operation));
        v("request identifier", h.request_identifier);
        v("remote tag", h.remote_tag);
        v("remote offset", h.remote_offset);
        v("add or swap", h.add_or_swap);
        v("add or swap mask", h.add_or_swap_mask);
        v("compare", h.compare);
        v("compare mask", h.compare_mask);
    }
    bool operator==(const AtomicRequest&) const = default;
};
static_assert(wire_size<AtomicRequest>() == 52);

/// RFC 7306 section 5.2.2, figure 6. (Section 4 says 32 octets; the figure has 12.)
struct AtomicResponse {
    std::uint32_t request_identifier = 0;
    std::uint64_t original_value = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("request identifier", h.request_identifier);
        v("original value", h.original_value);
    }
    bool operator==(const AtomicResponse&) const = default;
};
static_assert(wire_size<AtomicResponse>() == 12);

}  // namespace weft::wire
