// SPDX-License-Identifier: Apache-2.0
#include "support/tcp_streams.hpp"

#include <map>
#include <optional>
#include <stdexcept>

#include "base/bytes.hpp"

namespace weft::test {
namespace {

struct Segment {
    Bytes source, destination;  // address, then port
    std::uint32_t sequence = 0;
    bool opens = false;
    ConstBuffer payload;
};

std::uint64_t number(ConstBuffer octets, std::size_t at, std::size_t count) {
    if (!within(at, count, octets.size())) throw std::runtime_error("a packet is cut short");
    std::uint64_t value = 0;
    for (auto octet : octets.subspan(at, count))
        value = value << 8 | std::to_integer<std::uint64_t>(octet);
    return value;
}

Bytes joined(ConstBuffer address, ConstBuffer port) {
    return join({address, port});
}

/// The TCP segment in an Ethernet frame, if that is what is in it.
std::optional<Segment> segment_in(ConstBuffer frame) {
    auto ethertype = number(frame, 12, 2);
    auto ip = frame.subspan(14);
    ConstBuffer tcp, source, destination;
    if (ethertype == 0x0800 && number(ip, 9, 1) == 6) {
        auto header_size = (number(ip, 0, 1) & 15) * 4;
        tcp = ip.first(number(ip, 2, 2)).subspan(header_size);
        source = ip.subspan(12, 4), destination = ip.subspan(16, 4);
    } else if (ethertype == 0x86dd && number(ip, 6, 1) == 6) {
        tcp = ip.subspan(40, number(ip, 4, 2));
        source = ip.subspan(8, 16), destination = ip.subspan(24, 16);
    } else {
        return std::nullopt;
    }
    return Segment{.source = joined(source, tcp.first(2)),
                   .destination = joined(destination, tcp.subspan(2, 2)),
                   .sequence = static_cast<std::uint32_t>(number(tcp, 4, 4)),
                   .opens = (number(tcp, 13, 1) & 2) != 0,
                   .payload = tcp.subspan((number(tcp, 12, 1) >> 4) * 4)};
}

/// Puts the payloads of one direction in order. No stream here comes near 4 GiB, so that the
/// distance from the first octet tells the place.
class Assembler {
public:
    void open(std::uint32_t sequence) { first_ = sequence + 1; }
    void add(std::uint32_t sequence, ConstBuffer payload) {
        if (payload.empty()) return;
        waiting_.emplace(sequence - first_, payload);
        for (auto next = waiting_.begin(); next != waiting_.end() && next->first <= octets_.size();
             next = waiting_.erase(next)) {
            auto known = octets_.size() - next->first;
            if (known >= next->second.size()) continue;
            auto fresh = next->second.subspan(known);
            octets_.insert(octets_.end(), fresh.begin(), fresh.end());
        }
    }
    Bytes finish() {
        if (!waiting_.empty()) throw std::runtime_error("a TCP stream has a hole");
        return std::move(octets_);
    }

private:
    std::uint32_t first_ = 0;
    std::multimap<std::size_t, ConstBuffer> waiting_;
    Bytes octets_;
};

using Direction = std::pair<Bytes, Bytes>;

TcpStream stream_of(const Direction& direction, Assembler& assembler) {
    auto port = [](const Bytes& end) {
        return static_cast<std::uint16_t>(number(end, end.size() - 2, 2));
    };
    return {.source = direction.first,
            .destination = direction.second,
            .source_port = port(direction.first),
            .destination_port = port(direction.second),
            .octets = assembler.finish()};
}

}  // namespace

std::vector<TcpConnection> tcp_connections(const Capture& capture) {
    std::map<Direction, Assembler> assemblers;
    std::vector<Direction> clients;
    for (const auto& packet : capture.packets()) {
        auto segment = segment_in(packet.octets);
        if (!segment) continue;
        Direction direction{segment->source, segment->destination};
        if (segment->opens) {
            auto [place, fresh] = assemblers.try_emplace(direction);
            if (!fresh) continue;
            place->second.open(segment->sequence);
            if (!assemblers.contains({segment->destination, segment->source}))
                clients.push_back(direction);
        } else if (auto found = assemblers.find(direction); found != assemblers.end()) {
            found->second.add(segment->sequence, segment->payload);
        } else {
            throw std::runtime_error("a TCP connection was captured without its beginning");
        }
    }
    std::vector<TcpConnection> connections;
    for (const auto& direction : clients) {
        Direction back{direction.second, direction.first};
        connections.push_back({.from_client = stream_of(direction, assemblers[direction]),
                               .from_server = stream_of(back, assemblers[back])});
    }
    return connections;
}

}  // namespace weft::test
