// SPDX-License-Identifier: Apache-2.0
// iSER, iSCSI Extensions for RDMA (RFC 7145): 28 octets in front of every message sent.
//
// The header advertises the memory of a command: the target reads a write's data from one buffer
// and writes a read's data into the other, so no data PDU ever travels. RFC 5046's shorter header,
// without the offsets, is not used by anyone and not known here.
#pragma once

#include "wire/ddp.hpp"

namespace weft::wire {

/// The upper four bits of the first octet say which of the three messages it is.
enum class IserMessageType : std::uint8_t {
    control = 1,
    hello = 2,
    hello_reply = 3,
};

inline constexpr std::size_t iser_header_size = 28;
/// RFC 7145 sections 9.3 and 9.4. Its informative figures and RFC 5046 say 1.
inline constexpr std::uint8_t iser_version = 10;

constexpr IserMessageType iser_message_type(std::byte first_octet) {
    return static_cast<IserMessageType>(std::to_integer<unsigned>(first_octet) >> 4);
}

/// Memory an initiator opens to the target for one command.
struct AdvertisedBuffer {
    SteeringTag steering_tag{};
    TaggedOffset base_offset{};

    static constexpr void describe(auto& v, auto& h) {
        v("steering tag", h.steering_tag);
        v("base offset", h.base_offset);
    }
    bool operator==(const AdvertisedBuffer&) const = default;
};
static_assert(wire_size<AdvertisedBuffer>() == 12);

/// Section 9.2, figure 3. An iSCSI PDU without digests follows.
struct IserControlHeader {
    bool write_buffer_valid = false;
    bool read_buffer_valid = false;
    AdvertisedBuffer write_buffer{};  ///< the target reads from it
    AdvertisedBuffer read_buffer{};   ///< the target writes to it

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<4>("message type", 1), bits<1>("write buffer valid", h.write_buffer_valid),
               bits<1>("read buffer valid", h.read_buffer_valid), reserved<26>);
        v.nested("write buffer", h.write_buffer);
        v.nested("read buffer", h.read_buffer);
    }
    bool operator==(const IserControlHeader&) const = default;
};
static_assert(wire_size<IserControlHeader>() == iser_header_size);

/// Section 9.3, figure 4: the initiator's first message if iSERHelloRequired was declared.
struct IserHello {
    std::uint8_t version_max = iser_version;
    std::uint8_t version_min = iser_version;
    std::uint16_t inbound_reads = 0;  ///< iSER-IRD: RDMA Reads it answers at once

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<4>("message type", 2), reserved<4>, bits<4>("version max", h.version_max),
               bits<4>("version min", h.version_min));
        v("inbound reads", h.inbound_reads);
        v.pack(reserved<64>);
        v.pack(reserved<64>);
        v.pack(reserved<64>);
    }
    bool operator==(const IserHello&) const = default;
};
static_assert(wire_size<IserHello>() == iser_header_size);

/// Section 9.4, figure 5: the target's first message in answer to that.
struct IserHelloReply {
    bool rejected = false;
    std::uint8_t version_max = iser_version;
    std::uint8_t version_current = iser_version;
    std::uint16_t outbound_reads = 0;  ///< iSER-ORD: RDMA Reads it will have outstanding

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<4>("message type", 3), reserved<3>, bits<1>("rejected", h.rejected),
               bits<4>("version max", h.version_max),
               bits<4>("version current", h.version_current));
        v("outbound reads", h.outbound_reads);
        v.pack(reserved<64>);
        v.pack(reserved<64>);
        v.pack(reserved<64>);
    }
    bool operator==(const IserHelloReply&) const = default;
};
static_assert(wire_size<IserHelloReply>() == iser_header_size);

/// The private data of the connection manager's messages (InfiniBand Annex A12), which is how all
/// implementations in use start: over iWARP it is the private data of MPA's frames. Each side says
/// what it cannot do; remote invalidation is used only if neither objects.
struct IserPrivateData {
    bool zero_based_addresses_unsupported = false;
    bool send_with_invalidate_unsupported = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("zero based addresses unsupported", h.zero_based_addresses_unsupported),
               bits<1>("send with invalidate unsupported", h.send_with_invalidate_unsupported),
               reserved<30>);
    }
    bool operator==(const IserPrivateData&) const = default;
};
static_assert(wire_size<IserPrivateData>() == 4);

}  // namespace weft::wire
