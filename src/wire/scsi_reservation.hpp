// SPDX-License-Identifier: Apache-2.0
// Persistent reservations (SPC-4): who among several initiators may use a
// logical unit, in a way that survives the loss of a session.
#pragma once

#include "wire/scsi_operation.hpp"

namespace weft::wire {

enum class ReserveInAction : std::uint8_t {
    read_keys = 0,
    read_reservation = 1,
    report_capabilities = 2,
    read_full_status = 3,
};

enum class ReserveOutAction : std::uint8_t {
    register_key = 0,
    reserve = 1,
    release = 2,
    clear = 3,
    preempt = 4,
    preempt_and_abort = 5,
    register_and_ignore_existing_key = 6,
    register_and_move = 7,
};

enum class ReservationType : std::uint8_t {
    none = 0,
    write_exclusive = 1,
    exclusive_access = 3,
    write_exclusive_registrants_only = 5,
    exclusive_access_registrants_only = 6,
    write_exclusive_all_registrants = 7,
    exclusive_access_all_registrants = 8,
};

/// The only scope there is: the whole logical unit.
inline constexpr std::uint8_t logical_unit_scope = 0;

/// A secret a nexus registers under. Zero is "not registered".
enum class ReservationKey : std::uint64_t { none = 0 };

struct PersistentReserveIn {
    ReserveInAction action{};
    std::uint16_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::persistent_reserve_in>(v);
        v.pack(reserved<3>, bits<5>("action", h.action), reserved<40>);
        v("allocation length", h.allocation_length);
        v.nested("control", h.control);
    }
    bool operator==(const PersistentReserveIn&) const = default;
};
static_assert(wire_size<PersistentReserveIn>() == 10);

struct PersistentReserveOut {
    ReserveOutAction action{};
    std::uint8_t scope = logical_unit_scope;
    ReservationType type{};
    std::uint32_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::persistent_reserve_out>(v);
        v.pack(reserved<3>, bits<5>("action", h.action), bits<4>("scope", h.scope),
               bits<4>("type", h.type), reserved<16>);
        v("parameter length", h.parameter_length);
        v.nested("control", h.control);
    }
    bool operator==(const PersistentReserveOut&) const = default;
};
static_assert(wire_size<PersistentReserveOut>() == 10);

/// The parameter list of every action but register and move.
struct ReserveOutParameters {
    ReservationKey key{};                 ///< under which the sender is registered
    ReservationKey service_action_key{};  ///< the new one, or the victim's
    bool specify_initiator_ports = false;
    bool all_target_ports = false;
    bool persist_through_power_loss = false;  ///< APTPL

    static constexpr void describe(auto& v, auto& h) {
        v("key", h.key);
        v("service action key", h.service_action_key);
        v.pack(reserved<36>, bits<1>("specify initiator ports", h.specify_initiator_ports),
               bits<1>("all target ports", h.all_target_ports), reserved<1>,
               bits<1>("persist through power loss", h.persist_through_power_loss), reserved<24>);
    }
    bool operator==(const ReserveOutParameters&) const = default;
};
static_assert(wire_size<ReserveOutParameters>() == 24);

/// The parameter list of register and move; a transport identifier follows.
struct RegisterAndMoveParameters {
    ReservationKey key{};
    ReservationKey service_action_key{};
    bool unregister = false;
    bool persist_through_power_loss = false;
    std::uint16_t relative_target_port = 0;
    std::uint32_t transport_identifier_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("key", h.key);
        v("service action key", h.service_action_key);
        v.pack(reserved<14>, bits<1>("unregister", h.unregister),
               bits<1>("persist through power loss", h.persist_through_power_loss));
        v("relative target port", h.relative_target_port);
        v("transport identifier length", h.transport_identifier_length);
    }
    bool operator==(const RegisterAndMoveParameters&) const = default;
};
static_assert(wire_size<RegisterAndMoveParameters>() == 24);

/// What READ KEYS, READ RESERVATION and READ FULL STATUS begin with. Keys of eight octets, a
/// ReservationDescriptor, or FullStatusDescriptors follow.
struct ReserveInHeader {
    std::uint32_t generation = 0;  ///< counts registrations
    std::uint32_t length_after = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("generation", h.generation);
        v("length after", h.length_after);
    }
    bool operator==(const ReserveInHeader&) const = default;
};
static_assert(wire_size<ReserveInHeader>() == 8);

struct ReservationDescriptor {
    ReservationKey key{};  ///< zero if all registrants hold it
    std::uint8_t scope = logical_unit_scope;
    ReservationType type{};

    static constexpr void describe(auto& v, auto& h) {
        v("key", h.key);
        v.pack(reserved<40>, bits<4>("scope", h.scope), bits<4>("type", h.type), reserved<16>);
    }
    bool operator==(const ReservationDescriptor&) const = default;
};
static_assert(wire_size<ReservationDescriptor>() == 16);

struct ReservationCapabilities {
    bool replace_lost_reservation = false;
    bool compatible_reservation_handling = false;  ///< CRH: with RESERVE and RELEASE
    bool specify_initiator_ports = false;
    bool all_target_ports = false;
    bool persist_through_power_loss = false;
    bool type_mask_valid = false;
    std::uint8_t allowed_commands = 0;
    bool power_loss_persistence_active = false;
    bool write_exclusive_all_registrants = false;
    bool exclusive_access_registrants_only = false;
    bool write_exclusive_registrants_only = false;
    bool exclusive_access = false;
    bool write_exclusive = false;
    bool exclusive_access_all_registrants = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<16>("length", 8));
        v.pack(bits<1>("replace lost reservation", h.replace_lost_reservation), reserved<2>,
               bits<1>("compatible reservation handling", h.compatible_reservation_handling),
               bits<1>("specify initiator ports", h.specify_initiator_ports),
               bits<1>("all target ports", h.all_target_ports), reserved<1>,
               bits<1>("persist through power loss", h.persist_through_power_loss));
        v.pack(bits<1>("type mask valid", h.type_mask_valid),
               bits<3>("allowed commands", h.allowed_commands), reserved<3>,
               bits<1>("power loss persistence active", h.power_loss_persistence_active));
        v.pack(bits<1>("write exclusive all registrants", h.write_exclusive_all_registrants),
               bits<1>("exclusive access registrants only", h.exclusive_access_registrants_only),
               bits<1>("write exclusive registrants only", h.write_exclusive_registrants_only),
               reserved<1>, bits<1>("exclusive access", h.exclusive_access), reserved<1>,
               bits<1>("write exclusive", h.write_exclusive), reserved<1>);
        v.pack(reserved<7>,
               bits<1>("exclusive access all registrants", h.exclusive_access_all_registrants),
               reserved<16>);
    }
    bool operator==(const ReservationCapabilities&) const = default;
};
static_assert(wire_size<ReservationCapabilities>() == 8);

/// One registration in READ FULL STATUS; a transport identifier follows.
struct FullStatusDescriptor {
    ReservationKey key{};
    bool all_target_ports = false;
    bool holder = false;
    std::uint8_t scope = logical_unit_scope;
    ReservationType type{};
    std::uint16_t relative_target_port = 0;
    std::uint32_t transport_identifier_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("key", h.key);
        v.pack(reserved<38>, bits<1>("all target ports", h.all_target_ports),
               bits<1>("holder", h.holder), bits<4>("scope", h.scope), bits<4>("type", h.type));
        v.pack(reserved<32>);
        v("relative target port", h.relative_target_port);
        v("transport identifier length", h.transport_identifier_length);
    }
    bool operator==(const FullStatusDescriptor&) const = default;
};
static_assert(wire_size<FullStatusDescriptor>() == 24);

/// Whether an iSCSI transport identifier names a node or one of its ports.
enum class IscsiIdentifierFormat : std::uint8_t {
    node = 0,  ///< an iSCSI name
    port = 1,  ///< an iSCSI name, ",i,0x" and the initiator session identifier in hexadecimal
};

/// The start of an iSCSI transport identifier. A name follows, ended by a
/// null and padded with nulls to a multiple of four octets.
struct IscsiTransportIdentifier {
    IscsiIdentifierFormat format{};
    std::uint16_t length_after = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<2>("format", h.format), reserved<2>, fixed<4>("protocol", 5), reserved<8>);
        v("length after", h.length_after);
    }
    bool operator==(const IscsiTransportIdentifier&) const = default;
};
static_assert(wire_size<IscsiTransportIdentifier>() == 4);

}  // namespace weft::wire
