// SPDX-License-Identifier: Apache-2.0
// Written without src/wire on purpose: the harness must not share its mistakes with what it judges.
#include "support/pcap.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "base/bytes.hpp"

namespace weft::test {
namespace {

constexpr std::size_t ipv4_size = 20;
constexpr std::size_t tcp_size = 20;
constexpr std::size_t segment_limit = 60'000;
constexpr std::uint16_t ethertype_ipv4 = 0x0800;
constexpr std::uint16_t ethertype_ipv6 = 0x86dd;
constexpr std::uint8_t protocol_tcp = 6;

constexpr std::uint8_t fin = 0x01, syn = 0x02, push = 0x08, ack = 0x10;

constexpr std::uint32_t pcap_magic_us = 0xa1b2c3d4;
constexpr std::uint32_t pcap_magic_ns = 0xa1b23c4d;
constexpr std::uint32_t linktype_ethernet = 1;
constexpr std::size_t file_header_size = 24;
constexpr std::size_t record_header_size = 16;
constexpr std::uint64_t first_time_us = 1'700'000'000'000'000;

template <std::size_t Count>
void put(Bytes& to, std::uint64_t value) {
    to.resize(to.size() + Count);
    store_big_endian<Count>(value, to.data() + to.size() - Count);
}

template <std::size_t Count>
void put_little(Bytes& to, std::uint64_t value) {
    to.resize(to.size() + Count);
    store_little_endian<Count>(value, to.data() + to.size() - Count);
}

void put(Bytes& to, ConstBuffer octets) {
    to.insert(to.end(), octets.begin(), octets.end());
}

/// 192.0.2.host or 2001:db8::host, the addresses kept for documentation.
Bytes address_of(IpVersion version, std::uint8_t host) {
    if (version == IpVersion::v4) return join({from_hex("c00002"), {{std::byte{host}}}});
    return join({from_hex("20010db8 00000000 00000000 000000"), {{std::byte{host}}}});
}

}  // namespace

std::uint16_t internet_checksum(std::initializer_list<ConstBuffer> parts) {
    std::uint64_t sum = 0;
    for (auto part : parts) {
        for (std::size_t at = 0; at + 1 < part.size(); at += 2)
            sum += load_big_endian<2>(part.data() + at);
        if (part.size() % 2 != 0) sum += std::to_integer<std::uint64_t>(part.back()) << 8;
    }
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
}

Bytes ethernet_header(std::uint8_t from_host, std::uint8_t to_host, std::uint16_t ethertype) {
    Bytes header;
    for (auto host : {to_host, from_host}) {
        put(header, from_hex("02 00 00 00 00"));
        put<1>(header, host);
    }
    put<2>(header, ethertype);
    return header;
}

std::size_t Capture::add(ConstBuffer ethernet_frame) {
    auto time_us = packets_.empty() ? first_time_us : packets_.back().time_us + 1000;
    packets_.push_back({time_us, Bytes(ethernet_frame.begin(), ethernet_frame.end())});
    return packets_.size();
}

void Capture::save(const std::string& path) const {
    Bytes all;
    put_little<4>(all, pcap_magic_us);
    put_little<4>(all, 2 | 4 << 16);  // version 2.4
    put_little<8>(all, 0);            // time zone, accuracy
    put_little<4>(all, 262'144);      // longest packet
    put_little<4>(all, linktype_ethernet);
    for (const auto& packet : packets_) {
        put_little<4>(all, packet.time_us / 1'000'000);
        put_little<4>(all, packet.time_us % 1'000'000);
        put_little<4>(all, packet.octets.size());
        put_little<4>(all, packet.octets.size());
        put(all, packet.octets);
    }
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

Capture Capture::load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    auto all = bytes_of(text);
    auto number = [&](std::size_t at) {
        if (!within(at, 4, all.size())) throw std::runtime_error(path + " is cut short");
        return load_little_endian<4>(all.data() + at);
    };
    auto magic = number(0);
    if (magic != pcap_magic_us && magic != pcap_magic_ns)
        throw std::runtime_error(path + " is not a little-endian pcap file");
    if (number(20) != linktype_ethernet) throw std::runtime_error(path + " is not Ethernet");
    std::uint64_t fractions_per_us = magic == pcap_magic_ns ? 1000 : 1;

    Capture capture;
    for (std::size_t at = file_header_size; at < all.size();) {
        auto time_us = number(at) * 1'000'000 + number(at + 4) / fractions_per_us;
        auto size = number(at + 8);
        if (size != number(at + 12)) throw std::runtime_error(path + " has packets cut short");
        at += record_header_size;
        if (!within(at, size, all.size())) throw std::runtime_error(path + " is cut short");
        auto octets = all.subspan(at, size);
        capture.packets_.push_back({time_us, Bytes(octets.begin(), octets.end())});
        at += size;
    }
    return capture;
}

TcpConversation::TcpConversation(Capture& capture, Endpoints endpoints)
    : capture_(capture),
      ip_version_(endpoints.ip_version),
      client_{.host = 1, .port = endpoints.client_port, .next_sequence = 0x10000000},
      server_{.host = 2, .port = endpoints.server_port, .next_sequence = 0x20000000} {
    segment(client_, server_, syn, {});
    segment(server_, client_, syn | ack, {});
    segment(client_, server_, ack, {});
}

void TcpConversation::close() {
    segment(client_, server_, fin | ack, {});
    segment(server_, client_, fin | ack, {});
    segment(client_, server_, ack, {});
}

std::size_t TcpConversation::send(Side& from, Side& to, ConstBuffer piece) {
    std::size_t last_frame = 0;
    while (!piece.empty()) {
        auto part = piece.first(std::min(piece.size(), segment_limit));
        piece = piece.subspan(part.size());
        last_frame = segment(from, to, push | ack, part);
        segment(to, from, ack, {});
    }
    return last_frame;
}

std::size_t TcpConversation::segment(Side& from, const Side& to, std::uint8_t flags,
                                     ConstBuffer payload) {
    auto source = address_of(ip_version_, from.host);
    auto destination = address_of(ip_version_, to.host);

    Bytes tcp;
    put<2>(tcp, from.port);
    put<2>(tcp, to.port);
    put<4>(tcp, from.next_sequence);
    put<4>(tcp, flags & ack ? to.next_sequence : 0);
    put<1>(tcp, tcp_size / 4 << 4);
    put<1>(tcp, flags);
    put<2>(tcp, 65'535);  // window
    put<4>(tcp, 0);       // checksum, urgent pointer
    put(tcp, payload);
    from.next_sequence +=
        static_cast<std::uint32_t>(payload.size()) + (flags & (syn | fin) ? 1 : 0);

    // The sum does not care about the order of 16-bit words, so this serves as the pseudo-header
    // of both IP versions.
    Bytes length_and_protocol;
    put<4>(length_and_protocol, tcp.size());
    put<4>(length_and_protocol, protocol_tcp);
    auto checksum = internet_checksum({source, destination, length_and_protocol, tcp});
    store_big_endian<2>(checksum, tcp.data() + 16);

    auto ethertype = ip_version_ == IpVersion::v4 ? ethertype_ipv4 : ethertype_ipv6;
    return capture_.add(join(
        {ethernet_header(from.host, to.host, ethertype), ip_header(from, to, tcp.size()), tcp}));
}

Bytes TcpConversation::ip_header(const Side& from, const Side& to, std::size_t size) const {
    Bytes header;
    if (ip_version_ == IpVersion::v6) {
        put<4>(header, 0x60000000);
        put<2>(header, size);
        put<1>(header, protocol_tcp);
        put<1>(header, 64);  // hop limit
    } else {
        put<2>(header, 0x4500);
        put<2>(header, ipv4_size + size);
        put<4>(header, 0x00004000);  // do not fragment
        put<1>(header, 64);          // time to live
        put<1>(header, protocol_tcp);
        put<2>(header, 0);  // checksum
    }
    put(header, address_of(ip_version_, from.host));
    put(header, address_of(ip_version_, to.host));
    if (ip_version_ == IpVersion::v4)
        store_big_endian<2>(internet_checksum({header}), header.data() + 10);
    return header;
}

}  // namespace weft::test
