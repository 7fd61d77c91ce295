// SPDX-License-Identifier: Apache-2.0
// One thing a peer can do wrong: what it sends to whom, and how it shall be told. The memory it may
// and may not touch is the same for all.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "support/session_side.hpp"

namespace weft::test::faults {

inline constexpr auto base = SessionSide::base;

/// Where things are in the memory. Around each is what nobody may touch.
struct Part {
    std::size_t at, size;
    std::uint64_t address() const { return base + at; }
};
inline constexpr Part open{1000, 300}, read_only{2000, 300}, write_only{3000, 300},
    foreign{4000, 300}, sink{5000, 300}, receive{6000, 64};

struct Setting {
    SessionSide& side;
    FpduWriter& peer;
    SteeringTag open_tag, read_only_tag, write_only_tag, foreign_tag, allocated_tag;

    static wire::TaggedSegment tagged(wire::RdmapOpcode opcode, SteeringTag tag,
                                      std::uint64_t offset) {
        return {true, opcode, tag, wire::TaggedOffset{offset}};
    }
    void write(SteeringTag tag, std::uint64_t offset, std::size_t size) {
        peer.add(tagged(wire::RdmapOpcode::write, tag, offset), pattern(size, 1));
    }
    void answer(SteeringTag tag, std::uint64_t offset, std::size_t size, bool last) {
        auto header = tagged(wire::RdmapOpcode::read_response, tag, offset);
        header.last = last;
        peer.add(header, pattern(size, 2));
    }
    void send(wire::UntaggedSegment header, std::size_t size) {
        peer.add(header, pattern(size, 3));
    }
    void read(SteeringTag source, std::uint64_t offset, std::uint32_t size,
              std::uint32_t number = 1) {
        peer.add(wire::UntaggedSegment{.last = true,
                                       .opcode = wire::RdmapOpcode::read_request,
                                       .queue = wire::QueueNumber::read_request,
                                       .message_number = number},
                 octets_of(wire::ReadRequest{.sink_tag = SteeringTag{0x99},
                                             .sink_offset = wire::TaggedOffset{0x77},
                                             .size = size,
                                             .source_tag = source,
                                             .source_offset = wire::TaggedOffset{offset}}));
    }
    void atomic(SteeringTag tag, std::uint64_t offset, wire::AtomicOperation operation) {
        peer.add(wire::UntaggedSegment{.last = true,
                                       .opcode = wire::RdmapOpcode::atomic_request,
                                       .queue = wire::QueueNumber::read_request},
                 octets_of(wire::AtomicRequest{.operation = operation,
                                               .remote_tag = tag,
                                               .remote_offset = wire::TaggedOffset{offset},
                                               .add_or_swap = 1}));
    }
    void outstanding(iwarp::OutstandingRead::Kind kind, std::uint32_t size) {
        auto read = side.outstanding(sink.at, size);
        read.kind = kind;
        side.session().reads().push(read);
    }
    SteeringTag local() const { return side.local_tag(); }
};

enum class Quotes : std::uint8_t { nothing, segment, read_request };

struct Case {
    const char* name;
    std::function<void(Setting&)> peer;
    Error expected;
    Quotes quotes = Quotes::segment;
    std::optional<verbs::Status> receive_status{};
    std::vector<Part> may_change{};
    iwarp::Peer kind = iwarp::Peer::weft;
};

}  // namespace weft::test::faults
