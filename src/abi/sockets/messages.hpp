// SPDX-License-Identifier: Apache-2.0
// What two sockets say to each other, as rsockets do over any iWARP device.
//
// Each side has a receive buffer, of which it lends the other one window after the other. Data goes
// into the window by an RDMA Write; a message of four octets, a Send, says how much it was. A new
// window is told by writing its description into a slot of the peer's memory, and a message that
// says: look. Descriptions and messages are in the order of the host, and both hosts have the same.
#pragma once

#include <bit>
#include <cstdint>

#include "base/wire_format.hpp"

namespace weft::abi::sockets {

enum class Topic : std::uint8_t {
    data = 0,     ///< so many bytes were written into the current window
    credits = 4,  ///< messages up to this sequence number are welcome; look for a new window, too
    mapping = 6,  ///< the description with this index is new
    control = 7,
};

enum class Control : std::uint8_t {
    disconnect = 0,
    keep_alive = 1,
    shutdown = 2,  ///< no more data will come from here
};

struct Message {
    Topic topic{};
    std::uint32_t value = 0;

    static constexpr unsigned value_bits = 29;
    static constexpr std::uint32_t value_max = (1u << value_bits) - 1;

    constexpr std::uint32_t word() const {
        return static_cast<std::uint32_t>(topic) << value_bits | (value & value_max);
    }
    static constexpr Message of(std::uint32_t word) {
        return {static_cast<Topic>(word >> value_bits), word & value_max};
    }
    bool operator==(const Message&) const = default;
};
static_assert(Message{Topic::data, 65536}.word() == 0x0001'0000);
static_assert(Message{Topic::control, 2}.word() == 0xe000'0002);

/// Memory of the peer's that may be written to. In memory it is as it is in a slot.
struct Window {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    std::uint32_t length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("address", h.address);
        v("key", h.key);
        v("length", h.length);
    }
    bool operator==(const Window&) const = default;
};
static_assert(sizeof(Window) == 16 && wire_size<Window>() == 16);

/// Memory of the peer's application, under the offset by which this side's application knows it.
struct Mapping {
    std::uint64_t offset = 0;
    Window memory;
};
static_assert(sizeof(Mapping) == 24);

/// The private data of the connection's request and reply. This alone is in network order.
struct Introduction {
    std::uint8_t version = 1;
    std::uint8_t flags = 0;
    std::uint16_t credits = 0;
    std::uint8_t mapping_scale = 0;  ///< how many mappings it has slots for
    Window slots;                    ///< `length` counts windows; those of mappings follow
    Window first_window;

    static constexpr std::uint8_t big_endian = 1, has_mappings = 2;

    static constexpr void describe(auto& v, auto& h) {
        v("version", h.version);
        v("flags", h.flags);
        v("credits", h.credits);
        v.pack(reserved<24>, bits<8>("mapping scale", h.mapping_scale));
        v.nested("slots", h.slots);
        v.nested("first window", h.first_window);
    }
    bool operator==(const Introduction&) const = default;

    static constexpr std::uint8_t own_flags() {
        return has_mappings | (std::endian::native == std::endian::big ? big_endian : 0);
    }
    bool has_our_byte_order() const { return (flags & big_endian) == (own_flags() & big_endian); }
};
static_assert(wire_size<Introduction>() == 40);

/// Up to 128 as they are, and beyond in steps of 256: a count of mappings in one octet.
constexpr std::uint8_t scale_of(std::uint32_t count) {
    return static_cast<std::uint8_t>(count <= 128 ? count : 128 | count >> 8);
}
constexpr std::uint32_t count_of(std::uint8_t scale) {
    return scale <= 128 ? scale : static_cast<std::uint32_t>(scale & 127) << 8;
}
static_assert(count_of(scale_of(128)) == 128 && count_of(scale_of(1000)) == 768);

}  // namespace weft::abi::sockets
