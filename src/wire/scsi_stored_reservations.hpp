// SPDX-License-Identifier: Apache-2.0
// Persistent reservations as they lie on stable storage: ours alone, nobody else reads it.
//
// A header, a record with its initiator's name for each registration, and a CRC32C over all before.
#pragma once

#include "wire/scsi_reservation.hpp"

namespace weft::wire {

inline constexpr std::uint16_t no_reservation_holder = 0xffff;

struct StoredReservations {
    std::uint32_t generation = 0;
    ReservationType type{};
    std::uint16_t holder = no_reservation_holder;  ///< which record
    std::uint16_t count = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<32>("magic", 0x57'50'52'31));  // "WPR1"
        v("generation", h.generation);
        v.pack(reserved<8>, bits<8>("type", h.type));
        v("holder", h.holder);
        v("count", h.count);
        v.pack(reserved<16>);
    }
    bool operator==(const StoredReservations&) const = default;
};
static_assert(wire_size<StoredReservations>() == 16);

/// The initiator's name follows.
struct StoredRegistration {
    ReservationKey key{};
    Octets<6> session_identifier{};
    std::uint16_t portal_group = 0;
    std::uint16_t relative_port = 0;
    bool all_target_ports = false;
    std::uint16_t name_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("key", h.key);
        v("session identifier", h.session_identifier);
        v("portal group", h.portal_group);
        v("relative port", h.relative_port);
        v.pack(reserved<15>, bits<1>("all target ports", h.all_target_ports));
        v("name length", h.name_length);
        v.pack(reserved<16>);
    }
    bool operator==(const StoredRegistration&) const = default;
};
static_assert(wire_size<StoredRegistration>() == 24);

/// The reservations of a target's units together, as they lie in a file: this, each unit's behind
/// its own header, and a CRC32C over all before.
struct StoredTarget {
    std::uint32_t count = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<32>("magic", 0x57'50'52'54));  // "WPRT"
        v("count", h.count);
    }
    bool operator==(const StoredTarget&) const = default;
};
static_assert(wire_size<StoredTarget>() == 8);

/// The unit's identifier and its reservations follow.
struct StoredUnit {
    std::uint32_t identifier_length = 0;
    std::uint32_t reservations_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("identifier length", h.identifier_length);
        v("reservations length", h.reservations_length);
    }
    bool operator==(const StoredUnit&) const = default;
};
static_assert(wire_size<StoredUnit>() == 8);

struct StoredChecksum {
    std::uint32_t crc32c = 0;

    static constexpr void describe(auto& v, auto& h) { v("crc32c", h.crc32c); }
    bool operator==(const StoredChecksum&) const = default;
};

}  // namespace weft::wire
