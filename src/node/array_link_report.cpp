// SPDX-License-Identifier: Apache-2.0
#include "node/array_link_report.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "node/array_address.hpp"
#include "raid/superblock.hpp"
#include "wire/array_link.hpp"

namespace weft::node {

static_assert(wire_size<wire::ArrayLinkList>() +
                  links_told_max * wire_size<wire::ArrayLinkRecord>() <=
              link_list_bytes_max);

namespace {

std::uint64_t microseconds_of(Duration duration) {
    return static_cast<std::uint64_t>(
        std::max<Duration::rep>(0, duration / std::chrono::microseconds(1)));
}

/// What is longer than any program runs was not said by one of ours.
Duration duration_of(std::uint64_t microseconds) {
    constexpr std::uint64_t longest = std::uint64_t{1} << 50;
    return std::chrono::microseconds(std::min(microseconds, longest));
}

wire::ArrayLinkRecord record_of(const ArrayLinkFacts& link) {
    const auto& count = link.counters;
    wire::ArrayLinkRecord record{
        .direction = static_cast<std::uint8_t>(link.direction),
        .state = static_cast<std::uint8_t>(link.state),
        .resent_per_mille = static_cast<std::uint16_t>(std::min(link.resent_per_mille, 1000u)),
        .peer = link.peer,
        .local = network_end_of(link.local),
        .remote = network_end_of(link.remote),
        .connections = count.connections,
        .attempts_failed = count.attempts_failed,
        .ended = count.ended,
        .terminated = count.terminated,
        .done = count.done,
        .refused = count.refused,
        .timed_out = count.timed_out,
        .unreachable = count.unreachable,
        .retried = count.retried,
        .octets_sent = count.octets_sent,
        .octets_received = count.octets_received,
        .under_way = link.under_way,
        .waiting = link.waiting,
        .oldest = microseconds_of(link.oldest),
        .last_took = microseconds_of(link.last_took),
        .since_progress = microseconds_of(link.since_progress),
        .since_last_end = microseconds_of(link.since_last_end)};
    if (link.network) {
        record.round_trip = std::max<std::uint64_t>(1, microseconds_of(link.network->round_trip));
        record.segments_sent = link.network->segments_sent;
        record.segments_resent = link.network->segments_resent;
    }
    const auto kept = std::string_view(link.last_end).substr(0, record.last_end.size() - 1);
    WEFT_CHECK(raid::set_field(record.last_end, kept));
    return record;
}

Result<ArrayLinkFacts> facts_of(const wire::ArrayLinkRecord& record) {
    constexpr auto last_state = static_cast<std::uint8_t>(ArrayLinkFacts::State::stalled);
    if (record.direction > 1 || record.state > last_state) return Error{.code = Code::malformed};
    ArrayLinkFacts link;
    link.direction = ArrayLinkFacts::Direction{record.direction};
    link.state = ArrayLinkFacts::State{record.state};
    link.peer = record.peer;
    link.local = address_of(record.local);
    link.remote = address_of(record.remote);
    link.counters = {.connections = record.connections,
                     .attempts_failed = record.attempts_failed,
                     .ended = record.ended,
                     .terminated = record.terminated,
                     .done = record.done,
                     .refused = record.refused,
                     .timed_out = record.timed_out,
                     .unreachable = record.unreachable,
                     .retried = record.retried,
                     .octets_sent = record.octets_sent,
                     .octets_received = record.octets_received};
    link.last_end = raid::text_of_field(record.last_end);
    link.since_last_end = duration_of(record.since_last_end);
    link.under_way = record.under_way;
    link.waiting = record.waiting;
    link.oldest = duration_of(record.oldest);
    link.last_took = duration_of(record.last_took);
    link.since_progress = duration_of(record.since_progress);
    link.resent_per_mille = record.resent_per_mille;
    if (record.round_trip != 0)
        link.network = StreamCondition{.round_trip = duration_of(record.round_trip),
                                       .segments_sent = record.segments_sent,
                                       .segments_resent = record.segments_resent};
    return link;
}

}  // namespace

std::vector<std::byte> encode_links(std::span<const ArrayLinkFacts> links) {
    const auto told = links.first(std::min(links.size(), links_told_max));
    constexpr auto head = wire_size<wire::ArrayLinkList>();
    constexpr auto size = wire_size<wire::ArrayLinkRecord>();
    std::vector<std::byte> octets(head + told.size() * size);
    encode(wire::ArrayLinkList{.count = static_cast<std::uint16_t>(told.size())}, octets);
    Buffer rest = Buffer(octets).subspan(head);
    for (const auto& link : told) {
        encode(record_of(link), rest);
        rest = rest.subspan(size);
    }
    return octets;
}

Result<std::vector<ArrayLinkFacts>> parse_links(ConstBuffer octets) {
    WEFT_TRY(const auto list, decode<wire::ArrayLinkList>(octets));
    octets = octets.subspan(wire_size<wire::ArrayLinkList>());
    std::vector<ArrayLinkFacts> links;
    for (std::uint16_t i = 0; i < list.count; ++i) {
        WEFT_TRY(const auto record, decode<wire::ArrayLinkRecord>(octets));
        octets = octets.subspan(wire_size<wire::ArrayLinkRecord>());
        WEFT_TRY(auto link, facts_of(record));
        links.push_back(std::move(link));
    }
    return links;
}

}  // namespace weft::node
