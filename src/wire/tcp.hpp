// SPDX-License-Identifier: Apache-2.0
// TCP segments (RFC 9293) and the options that matter today: segment size, window scale and
// timestamps (RFC 7323), selective acknowledgement (RFC 2018).
//
// Options are the one part of TCP without fixed places. TcpOptionCursor walks them, TcpOptions
// holds those we know, and write_tcp_options() lays them out as Linux does, words aligned.
#pragma once

#include <optional>

#include "base/fixed_vector.hpp"
#include "base/wire_format.hpp"
#include "wire/port.hpp"

namespace weft::wire {

struct TcpHeader {
    Port source{};
    Port destination{};
    std::uint32_t sequence = 0;
    std::uint32_t acknowledgement = 0;
    std::uint8_t header_words = 5;  ///< header and options, in units of 4 octets
    bool window_reduced = false;    ///< CWR: I heard of the congestion
    bool congestion_echo = false;   ///< ECE: a router told me of congestion
    bool urgent = false;
    bool acknowledges = false;
    bool push = false;
    bool reset = false;
    bool synchronise = false;
    bool finish = false;
    std::uint16_t window = 0;
    std::uint16_t checksum = 0;
    std::uint16_t urgent_pointer = 0;

    constexpr std::size_t size() const { return std::size_t{header_words} * 4; }

    static constexpr void describe(auto& v, auto& h) {
        v("source", h.source);
        v("destination", h.destination);
        v("sequence", h.sequence);
        v("acknowledgement", h.acknowledgement);
        v.pack(bits<4>("header words", h.header_words), reserved<4>,
               bits<1>("window reduced", h.window_reduced),
               bits<1>("congestion echo", h.congestion_echo), bits<1>("urgent", h.urgent),
               bits<1>("acknowledges", h.acknowledges), bits<1>("push", h.push),
               bits<1>("reset", h.reset), bits<1>("synchronise", h.synchronise),
               bits<1>("finish", h.finish));
        v("window", h.window);
        v("checksum", h.checksum);
        v("urgent pointer", h.urgent_pointer);
    }
    bool operator==(const TcpHeader&) const = default;
};
static_assert(wire_size<TcpHeader>() == 20);

struct TcpSegment {
    TcpHeader header;
    ConstBuffer options;
    ConstBuffer data;
};

/// Cuts what a packet carries into its parts.
Result<TcpSegment> split_tcp_segment(ConstBuffer octets);

// --- options

enum class TcpOptionKind : std::uint8_t {
    end = 0,
    no_operation = 1,
    maximum_segment_size = 2,
    window_scale = 3,
    sack_permitted = 4,
    sack = 5,
    timestamps = 8,
};

/// One option; `body` is what follows kind and length.
struct TcpOption {
    TcpOptionKind kind{};
    ConstBuffer body;
};

/// Walks options one by one; padding is passed over. After an error nothing more can be found.
class TcpOptionCursor {
public:
    explicit TcpOptionCursor(ConstBuffer options) : rest_(options) {}
    Result<std::optional<TcpOption>> next();

private:
    ConstBuffer rest_;
};

/// Octets received out of order: from `begin` up to, not including, `end`.
struct SackBlock {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("begin", h.begin);
        v("end", h.end);
    }
    bool operator==(const SackBlock&) const = default;
};
static_assert(wire_size<SackBlock>() == 8);

struct TcpTimestamps {
    std::uint32_t value = 0;
    std::uint32_t echo = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("value", h.value);
        v("echo", h.echo);
    }
    bool operator==(const TcpTimestamps&) const = default;
};
static_assert(wire_size<TcpTimestamps>() == 8);

inline constexpr std::size_t tcp_options_max = 40;  ///< octets: 15 words less the header's 5
inline constexpr std::size_t sack_blocks_max = 4;   ///< 3 beside timestamps

struct TcpOptions {
    std::optional<std::uint16_t> maximum_segment_size;
    std::optional<std::uint8_t> window_scale;
    bool sack_permitted = false;
    std::optional<TcpTimestamps> timestamps;
    FixedVector<SackBlock, sack_blocks_max> sack;
};

/// Gathers the options we know. One of known kind and impossible length is passed over like an
/// unknown one; a length that leads outside the header is malformed.
Result<TcpOptions> read_tcp_options(ConstBuffer octets);

/// Writes the options, padded to whole words, and returns how many octets they take. SACK blocks
/// that do not fit are left out, the last first: senders of SACK put the newest in front.
std::size_t write_tcp_options(const TcpOptions& options,
                              std::span<std::byte, tcp_options_max> octets);

}  // namespace weft::wire
