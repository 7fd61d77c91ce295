// SPDX-License-Identifier: Apache-2.0
// A captured Ethernet frame of tests/golden/net, taken apart as far as every test wants it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/golden.hpp"
#include "wire/ethernet.hpp"
#include "wire/ipv6.hpp"

namespace weft::test {

struct Packet {
    Bytes frame;
    wire::EthernetHeader ethernet;
    wire::Ipv6Header ip;
    wire::UpperLayer upper;  ///< its octets lie in `frame`

    explicit Packet(const std::string& name) : Packet(golden("net/" + name + ".hex"), name) {}
    Packet(const Packet&) = delete;
    Packet& operator=(const Packet&) = delete;

    /// What the upper layer's checksum says.
    bool verifies() const {
        auto length = static_cast<std::uint32_t>(upper.octets.size());
        auto checksum = wire::checksum_over({ip.source, ip.destination, length, upper.protocol});
        checksum.add(upper.octets);
        return checksum.verifies();
    }

private:
    Packet(Bytes octets, const std::string& name) : frame(std::move(octets)) {
        constexpr auto ip_at = wire_size<wire::EthernetHeader>();
        constexpr auto payload_at = ip_at + wire_size<wire::Ipv6Header>();
        if (frame.size() < payload_at) {
            ADD_FAILURE() << name << " is no IPv6 packet";
            return;
        }
        ethernet = *decode<wire::EthernetHeader>(frame);
        auto header = decode<wire::Ipv6Header>(std::span(frame).subspan(ip_at));
        if (!header) {
            ADD_FAILURE() << name << " is no IPv6 packet";
            return;
        }
        ip = *header;
        EXPECT_EQ(ip.payload_length, frame.size() - payload_at) << name;
        auto found = wire::find_upper_layer(ip.next_header, std::span(frame).subspan(payload_at));
        if (found)
            upper = *found;
        else
            ADD_FAILURE() << name << " has broken extension headers";
    }
};

}  // namespace weft::test
