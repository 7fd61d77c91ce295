// SPDX-License-Identifier: Apache-2.0
// Any octets as an Ethernet frame, taken apart as a network stack would do it. Nothing outside the
// frame may be touched, every walk must end, and what was understood must survive being written.
#include <cstring>

#include "base/check.hpp"
#include "wire/ethernet.hpp"
#include "wire/icmpv6.hpp"
#include "wire/ipv6.hpp"
#include "wire/neighbour_discovery.hpp"
#include "wire/tcp.hpp"
#include "wire/udp.hpp"

namespace weft::wire {
namespace {

void tcp(ConstBuffer octets) {
    auto segment = split_tcp_segment(octets);
    if (!segment) return;
    WEFT_CHECK(segment->header.size() + segment->data.size() == octets.size());
    auto options = read_tcp_options(segment->options);
    if (!options) return;
    std::array<std::byte, tcp_options_max> written{};
    auto size = write_tcp_options(*options, written);
    auto again = read_tcp_options(std::span(written).first(size));
    WEFT_CHECK(again && again->timestamps == options->timestamps);
    WEFT_CHECK(again->maximum_segment_size == options->maximum_segment_size);
    WEFT_CHECK(again->window_scale == options->window_scale);
}

void icmpv6(ConstBuffer octets) {
    auto header = decode<Icmpv6Header>(octets);
    if (!header || header->type != Icmpv6Type::router_advertisement) return;
    auto body = octets.subspan(wire_size<Icmpv6Header>());
    if (!decode<RouterAdvertisement>(body)) return;
    NeighbourOptions options(body.subspan(wire_size<RouterAdvertisement>()));
    for (auto next = options.next(); next && *next; next = options.next()) {
        (void)decode<PrefixInformation>((*next)->octets);
        (void)decode<LinkAddressOption>((*next)->octets);
    }
}

void frame(ConstBuffer octets) {
    if (!decode<EthernetHeader>(octets)) return;
    octets = octets.subspan(wire_size<EthernetHeader>());
    auto ip = decode<Ipv6Header>(octets);
    if (!ip) return;
    WEFT_CHECK(*Ipv6Address::from_text(ip->source.text()) == ip->source);
    octets = octets.subspan(wire_size<Ipv6Header>());
    if (ip->payload_length > octets.size()) return;
    auto upper = find_upper_layer(ip->next_header, octets.first(ip->payload_length));
    if (!upper || upper->fragment) return;
    InternetChecksum whole, pieces;
    whole.add(upper->octets);
    pieces.add(upper->octets.first(upper->octets.size() / 3));
    pieces.add(upper->octets.subspan(upper->octets.size() / 3));
    WEFT_CHECK(whole.value() == pieces.value());
    if (upper->protocol == NextHeader::tcp) tcp(upper->octets);
    if (upper->protocol == NextHeader::udp) (void)split_udp_datagram(upper->octets);
    if (upper->protocol == NextHeader::icmpv6) icmpv6(upper->octets);
}

/// The same octets as an address in text: what is understood has one canonical form.
void address(std::string_view text) {
    auto read = Ipv6Address::from_text(text);
    if (read) WEFT_CHECK(*Ipv6Address::from_text(read->text()) == *read);
    (void)EthernetAddress::from_text(text);
}

}  // namespace
}  // namespace weft::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto octets = std::as_bytes(std::span(data, size));
    weft::wire::frame(octets);
    weft::wire::address(weft::text_of(octets));
    return 0;
}
