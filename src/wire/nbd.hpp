// SPDX-License-Identifier: Apache-2.0
// NBD, the network block device protocol: fixed newstyle handshake, then requests and replies.
//
// A client first haggles over options ("list the exports", "I understand structured replies",
// "go with export x"), then the stream changes meaning once and for all: 28-octet requests one
// way, replies in any order the other way.
#pragma once

#include "base/wire_format.hpp"

namespace weft::wire::nbd {

inline constexpr std::uint64_t greeting_magic = 0x4e42444d41474943;  ///< "NBDMAGIC"
inline constexpr std::uint64_t option_magic = 0x49484156454f5054;    ///< "IHAVEOPT"
inline constexpr std::uint64_t option_reply_magic = 0x0003e889045565a9;
inline constexpr std::uint32_t request_magic = 0x25609513;
inline constexpr std::uint32_t simple_reply_magic = 0x67446698;
inline constexpr std::uint32_t structured_reply_magic = 0x668e33ef;

/// The longest string the protocol allows: export names, context names, messages.
inline constexpr std::size_t string_max = 4096;

enum class Option : std::uint32_t {
    export_name = 1,
    abort = 2,
    list = 3,
    starttls = 5,
    info = 6,
    go = 7,
    structured_reply = 8,
    list_meta_context = 9,
    set_meta_context = 10,
    extended_headers = 11,
};

enum class OptionReplyType : std::uint32_t {
    ack = 1,
    server = 2,
    info = 3,
    meta_context = 4,
    error_unsupported = 0x80000001,
    error_policy = 0x80000002,
    error_invalid = 0x80000003,
    error_platform = 0x80000004,
    error_tls_required = 0x80000005,
    error_unknown = 0x80000006,
    error_shutdown = 0x80000007,
    error_block_size_required = 0x80000008,
    error_too_big = 0x80000009,
};
constexpr bool is_error(OptionReplyType type) {
    return (static_cast<std::uint32_t>(type) & 0x80000000) != 0;
}

enum class InfoType : std::uint16_t { export_ = 0, name = 1, description = 2, block_size = 3 };

enum class Command : std::uint16_t {
    read = 0,
    write = 1,
    disconnect = 2,
    flush = 3,
    trim = 4,
    cache = 5,
    write_zeroes = 6,
    block_status = 7,
};

/// Flags of a request; each is a bit of RequestHeader::flags.
enum CommandFlag : std::uint16_t {
    flag_durable = 1 << 0,  ///< FUA
    flag_no_hole = 1 << 1,
    flag_do_not_fragment = 1 << 2,
    flag_one_extent = 1 << 3,  ///< REQ_ONE
    flag_fast_zero = 1 << 4,
};

/// What an export can do, as told in the handshake.
struct TransmissionFlags {
    bool read_only = false;
    bool can_flush = false;
    bool can_write_durably = false;  ///< FUA
    bool rotational = false;
    bool can_trim = false;
    bool can_write_zeroes = false;
    bool can_keep_together = false;  ///< the do-not-fragment flag is understood
    bool many_connections = false;   ///< a flush on one connection covers all
    bool can_cache = false;
    bool can_zero_fast = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<4>, bits<1>("fast zero", h.can_zero_fast), bits<1>("cache", h.can_cache),
               reserved<1>, bits<1>("multi conn", h.many_connections),
               bits<1>("df", h.can_keep_together), bits<1>("write zeroes", h.can_write_zeroes),
               bits<1>("trim", h.can_trim), bits<1>("rotational", h.rotational),
               bits<1>("fua", h.can_write_durably), bits<1>("flush", h.can_flush),
               bits<1>("read only", h.read_only), fixed<1>("has flags", 1));
    }
    bool operator==(const TransmissionFlags&) const = default;
};
static_assert(wire_size<TransmissionFlags>() == 2);

/// The server's first words.
struct Greeting {
    bool no_zeroes = false;
    bool fixed_newstyle = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("magic", greeting_magic));
        v.pack(fixed<64>("option magic", option_magic));
        v.pack(reserved<14>, bits<1>("no zeroes", h.no_zeroes),
               bits<1>("fixed newstyle", h.fixed_newstyle));
    }
    bool operator==(const Greeting&) const = default;
};
static_assert(wire_size<Greeting>() == 18);

struct ClientFlags {
    std::uint32_t unknown = 0;  ///< a server must refuse flags it does not know
    bool no_zeroes = false;
    bool fixed_newstyle = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<30>("unknown", h.unknown), bits<1>("no zeroes", h.no_zeroes),
               bits<1>("fixed newstyle", h.fixed_newstyle));
    }
    bool operator==(const ClientFlags&) const = default;
};
static_assert(wire_size<ClientFlags>() == 4);

struct OptionHeader {
    Option option{};
    std::uint32_t length = 0;  ///< octets of data that follow

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("magic", option_magic));
        v("option", h.option);
        v("length", h.length);
    }
    bool operator==(const OptionHeader&) const = default;
};
static_assert(wire_size<OptionHeader>() == 16);

struct OptionReplyHeader {
    Option option{};
    OptionReplyType type{};
    std::uint32_t length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("magic", option_reply_magic));
        v("option", h.option);
        v("type", h.type);
        v("length", h.length);
    }
    bool operator==(const OptionReplyHeader&) const = default;
};
static_assert(wire_size<OptionReplyHeader>() == 20);

/// The end of an EXPORT_NAME handshake: the old way, with no reply header.
struct ExportNameReply {
    std::uint64_t size = 0;
    TransmissionFlags flags;

    static constexpr void describe(auto& v, auto& h) {
        v("size", h.size);
        v.nested("flags", h.flags);
    }
    bool operator==(const ExportNameReply&) const = default;
};
static_assert(wire_size<ExportNameReply>() == 10);
inline constexpr std::size_t export_name_zeroes = 124;  ///< unless both sides said "no zeroes"

struct InfoExport {
    std::uint64_t size = 0;
    TransmissionFlags flags;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<16>("info", static_cast<std::uint64_t>(InfoType::export_)));
        v("size", h.size);
        v.nested("flags", h.flags);
    }
    bool operator==(const InfoExport&) const = default;
};
static_assert(wire_size<InfoExport>() == 12);

struct InfoBlockSize {
    std::uint32_t minimum = 0;
    std::uint32_t preferred = 0;
    std::uint32_t maximum = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<16>("info", static_cast<std::uint64_t>(InfoType::block_size)));
        v("minimum", h.minimum);
        v("preferred", h.preferred);
        v("maximum", h.maximum);
    }
    bool operator==(const InfoBlockSize&) const = default;
};
static_assert(wire_size<InfoBlockSize>() == 14);

struct RequestHeader {
    std::uint16_t flags = 0;  ///< CommandFlag bits
    Command command{};
    std::uint64_t cookie = 0;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<32>("magic", request_magic));
        v("flags", h.flags);
        v("command", h.command);
        v("cookie", h.cookie);
        v("offset", h.offset);
        v("length", h.length);
    }
    bool operator==(const RequestHeader&) const = default;
};
static_assert(wire_size<RequestHeader>() == 28);

/// The errno values the protocol knows, by its own numbers.
enum class ErrorNumber : std::uint32_t {
    none = 0,
    not_permitted = 1,
    io = 5,
    no_memory = 12,
    invalid = 22,
    no_space = 28,
    overflow = 75,
    not_supported = 95,
    shutdown = 108,
};

struct SimpleReply {
    ErrorNumber error{};
    std::uint64_t cookie = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<32>("magic", simple_reply_magic));
        v("error", h.error);
        v("cookie", h.cookie);
    }
    bool operator==(const SimpleReply&) const = default;
};
static_assert(wire_size<SimpleReply>() == 16);

enum class ChunkType : std::uint16_t {
    none = 0,
    offset_data = 1,
    offset_hole = 2,
    block_status = 5,
    error = 0x8001,
    error_offset = 0x8002,
};
constexpr bool is_error(ChunkType type) {
    return (static_cast<std::uint16_t>(type) & 0x8000) != 0;
}

/// A structured reply is one or more of these; the last has `done` set.
struct ChunkHeader {
    bool done = false;
    ChunkType type{};
    std::uint64_t cookie = 0;
    std::uint32_t length = 0;  ///< octets that follow this header

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<32>("magic", structured_reply_magic));
        v.pack(reserved<15>, bits<1>("done", h.done));
        v("type", h.type);
        v("cookie", h.cookie);
        v("length", h.length);
    }
    bool operator==(const ChunkHeader&) const = default;
};
static_assert(wire_size<ChunkHeader>() == 20);

/// Follows a ChunkHeader of type offset_data; the data follow this.
struct DataOffset {
    std::uint64_t offset = 0;

    static constexpr void describe(auto& v, auto& h) { v("offset", h.offset); }
    bool operator==(const DataOffset&) const = default;
};

/// Follows a ChunkHeader of type offset_hole.
struct HoleRange {
    std::uint64_t offset = 0;
    std::uint32_t length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("offset", h.offset);
        v("length", h.length);
    }
    bool operator==(const HoleRange&) const = default;
};

/// Follows a ChunkHeader of type error; `message_length` octets of text follow this.
struct ChunkError {
    ErrorNumber error{};
    std::uint16_t message_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("error", h.error);
        v("message length", h.message_length);
    }
    bool operator==(const ChunkError&) const = default;
};

/// Which metadata a block_status chunk speaks of; descriptors follow.
struct MetaContextId {
    std::uint32_t id = 0;

    static constexpr void describe(auto& v, auto& h) { v("id", h.id); }
    bool operator==(const MetaContextId&) const = default;
};

/// One extent of "base:allocation".
struct StatusDescriptor {
    std::uint32_t length = 0;
    bool zero = false;
    bool hole = false;

    static constexpr void describe(auto& v, auto& h) {
        v("length", h.length);
        v.pack(reserved<30>, bits<1>("zero", h.zero), bits<1>("hole", h.hole));
    }
    bool operator==(const StatusDescriptor&) const = default;
};
static_assert(wire_size<StatusDescriptor>() == 8);

inline constexpr const char* allocation_context = "base:allocation";

}  // namespace weft::wire::nbd
