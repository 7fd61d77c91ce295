// SPDX-License-Identifier: Apache-2.0
// Short words for tests of one session: what a peer sends it, and what it said in return.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "iwarp/fault.hpp"
#include "support/fpdu_stream.hpp"
#include "support/session_side.hpp"

namespace weft::test {

inline constexpr auto base = SessionSide::base;
inline constexpr Instant start = Instant{} + std::chrono::seconds(1000);
inline constexpr wire::UntaggedSegment send_header{.last = true, .opcode = wire::RdmapOpcode::send};
inline constexpr wire::UntaggedSegment terminate_header{
    .last = true, .opcode = wire::RdmapOpcode::terminate, .queue = wire::QueueNumber::terminate};
inline constexpr wire::UntaggedSegment read_header{.last = true,
                                                   .opcode = wire::RdmapOpcode::read_request,
                                                   .queue = wire::QueueNumber::read_request};

inline iwarp::Terms terms(iwarp::Role role) {
    return {.role = role,
            .checksum = true,
            .inbound_reads = 4,
            .outbound_reads = 4,
            .peer = iwarp::Peer::weft};
}
inline iwarp::Terms straight_terms(iwarp::Role role) {
    auto agreed = terms(role);
    agreed.checksum = false;
    return agreed;
}
inline wire::TaggedSegment write_to(SteeringTag tag, std::uint64_t offset) {
    return {true, wire::RdmapOpcode::write, tag, wire::TaggedOffset{offset}};
}
inline wire::ReadRequest read_of(SteeringTag source, std::uint64_t offset, std::uint32_t size) {
    return {.sink_tag = SteeringTag{0x500},
            .sink_offset = wire::TaggedOffset{0x1000},
            .size = size,
            .source_tag = source,
            .source_offset = wire::TaggedOffset{offset}};
}
inline Bytes stream_of(const auto& header, ConstBuffer payload) {
    return FpduWriter(true, false).add(header, payload).octets();
}
/// The Terminate that ends what was said.
inline wire::Terminate terminate_in(const FpduStream& stream) {
    EXPECT_FALSE(stream.messages().empty());
    if (stream.messages().empty()) return {};
    auto& last = stream.messages().back();
    EXPECT_EQ(last.opcode, wire::RdmapOpcode::terminate);
    auto terminate = wire::decode_terminate(last.payload, wire::TerminateLayout::standard);
    EXPECT_TRUE(terminate);
    return terminate ? *terminate : wire::Terminate{};
}
inline std::vector<wire::RdmapOpcode> opcodes(const Bytes& said) {
    std::vector<wire::RdmapOpcode> all;
    FpduStream stream(said, {.checksum = true});
    for (const auto& message : stream.messages()) all.push_back(message.opcode);
    return all;
}
inline void expect_failure(const SessionSide& side, Error why) {
    ASSERT_TRUE(side.failure);
    EXPECT_EQ(iwarp::detail_of(*side.failure), why.detail);
    EXPECT_EQ(side.whose, iwarp::FaultOf::us);
}

}  // namespace weft::test
