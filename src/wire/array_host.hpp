// SPDX-License-Identifier: Apache-2.0
// The commands of a host to the controller of its volume, on logical unit 0 of the volume's target:
// the same vendor specific operation as a controller's to its boxes, with actions of its own.
//
// A host says hello first and gets a session: the number under which boxes reach its memory, and
// the secret that lets them in. Then it asks for reads and writes, each naming registered memory of
// its own; the bytes go between boxes and that memory, and the controller answers when they have.
// What goes to the controller is a parameter list sent along with the command; what comes back is
// one descriptor of sense data, GOOD or not. So no command costs a transfer of its own.
#pragma once

#include <string>

#include "weft/registered_memory.hpp"
#include "wire/array_identity.hpp"
#include "wire/scsi_operation.hpp"

namespace weft::wire {

/// How the target of a volume is called.
inline std::string volume_target_name(std::string_view volume) {
    return "iqn.2026-11.io.weft:volume." + std::string(volume);
}

enum class HostAction : std::uint8_t {
    hello = 0x40,    ///< parameter list: HostHello; the answer is a HostWelcome
    read = 0x41,     ///< parameter list, and of those below: HostTransfer
    write = 0x42,    ///< the answer is a HostAnswer
    flush = 0x43,    ///< what was answered before outlives the power
    goodbye = 0x44,  ///< the session is over, and boxes need not know the host any more
};
constexpr bool is_of_host(std::uint8_t action) {
    return action >= static_cast<std::uint8_t>(HostAction::hello) &&
           action <= static_cast<std::uint8_t>(HostAction::goodbye);
}

/// Of the shape of ArrayCommandBlock: one operation code, the second octet says which.
struct HostCommandBlock {
    HostAction action{};
    std::uint64_t command = 0;  ///< the number that the parameter list has too
    std::uint32_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::array_order>(v);
        v("action", h.action);
        v("command", h.command);
        v("parameter length", h.parameter_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const HostCommandBlock&) const = default;
};
static_assert(wire_size<HostCommandBlock>() == 16);

/// Who comes, and where boxes reach it.
struct HostHello {
    Octets<64> name{};       ///< for people; ends with a zero, or with the field
    HostSession previous{};  ///< the session it had before and lost; 0: none. It is over now.
    std::uint16_t port = 0;
    Octets<16> network_address{};  ///< IPv6, or IPv4 mapped into it; all zero: where it comes from
    /// The same in all sessions of one attachment, whichever controller they are with.
    HostIdentity identity{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'48'6c'6f'32));  // "WeftHlo2"
        v("name", h.name);
        v("previous", h.previous);
        v("port", h.port);
        v.pack(reserved<48>);
        v("network address", h.network_address);
        v.nested("identity", h.identity);
    }
    bool operator==(const HostHello&) const = default;
};
static_assert(wire_size<HostHello>() == 120);

/// What became of a host's command.
enum class HostOutcome : std::uint8_t {
    done = 0x00,
    malformed = 0x01,         ///< the command breaks a rule, and would again
    unknown_session = 0x02,   ///< say hello (again)
    out_of_range = 0x03,      ///< beyond the volume, or longer than a request may be
    later = 0x04,             ///< too much is under way, or the volume is being put right
    host_unreachable = 0x05,  ///< boxes could not reach the host's memory
    failed = 0x06,            ///< more is lost than the volume can do without
};

/// The answer to hello: a descriptor of sense data, as HostAnswer is.
struct HostWelcome {
    HostOutcome outcome{};
    HostSession session{};
    ClusterIdentity cluster{};
    VolumeIdentity volume{};
    Epoch epoch{};
    std::uint64_t size = 0;           ///< of the volume, in octets
    std::uint32_t request_limit = 0;  ///< octets of one read or write, at most
    std::uint32_t roster = 0;         ///< HostNews up to this number the host need not hear of
    /// Whoever proves to know what is made of it for them alone may reach the host's memory.
    Octets<32> secret{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 0x81), fixed<8>("length", 102));
        v("outcome", h.outcome);
        v.pack(reserved<40>);
        v("session", h.session);
        v.nested("cluster", h.cluster);
        v.nested("volume", h.volume);
        v("epoch", h.epoch);
        v("size", h.size);
        v("request limit", h.request_limit);
        v("roster", h.roster);
        v("secret", h.secret);
    }
    bool operator==(const HostWelcome&) const = default;
};
static_assert(wire_size<HostWelcome>() == 104);

/// A read, a write or a flush. `offset` and `length` of a flush mean nothing.
struct HostTransfer {
    HostSession session{};
    /// Counts the host's requests, and stays the same when one is sent again, in another session
    /// too: nothing is done twice that must not be.
    std::uint64_t command = 0;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    SteeringTag tag{};        ///< of the host's memory
    std::uint64_t base = 0;   ///< where in it the first octet is
    bool durable = false;     ///< of a write: answered when it outlives the power
    bool repeated = false;    ///< sent before, in a session that was lost: perhaps it was done
    std::uint32_t heard = 0;  ///< the last HostNews, by its number
    /// The last HostRelease, by its number, which comes round: see host_release_numbers.
    std::uint32_t released = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'48'74'72'31));  // "WeftHtr1"
        v("session", h.session);
        v("command", h.command);
        v("offset", h.offset);
        v("length", h.length);
        v("tag", h.tag);
        v("base", h.base);
        v.pack(reserved<6>, bits<1>("repeated", h.repeated), bits<1>("durable", h.durable),
               bits<24>("released", h.released));
        v("heard", h.heard);
    }
    bool operator==(const HostTransfer&) const = default;
};
static_assert(wire_size<HostTransfer>() == 56);

struct HostAnswer {
    HostOutcome outcome{};
    std::uint64_t command = 0;
    std::uint64_t size = 0;  ///< of the volume now: it may have grown
    /// A box that the read went around may still write by the command's tag: the host has its
    /// memory again, and lets the tag be written to until a HostRelease, or another session.
    bool leaves_writers = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 0x80), fixed<8>("length", 22));
        v("outcome", h.outcome);
        v.pack(reserved<7>, bits<1>("leaves writers", h.leaves_writers), reserved<32>);
        v("command", h.command);
        v("size", h.size);
    }
    bool operator==(const HostAnswer&) const = default;
};
static_assert(wire_size<HostAnswer>() == 24);

/// A further descriptor behind an answer: the volume counts on a box no more, or again. The host
/// acts on it before its request ends: what a box that was counted out still sends must find no
/// door, and the bytes of no later request.
struct HostNews {
    std::uint32_t number = 0;  ///< counts up; of one box only the last matters
    BoxIdentity box{};
    bool may_come = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 0x82), fixed<8>("length", 22));
        v.pack(reserved<7>, bits<1>("may come", h.may_come), reserved<8>);
        v("number", h.number);
        v.nested("box", h.box);
    }
    bool operator==(const HostNews&) const = default;
};
static_assert(wire_size<HostNews>() == 24);
/// Of one answer; a host that has more to hear is forgotten, and says hello again.
inline constexpr std::size_t host_news_max = 3;

/// Behind these: of a command whose answer left writers, every box has confirmed that it writes no
/// more. Told in every answer until the host has said that it heard; as many as there is room for.
struct HostRelease {
    std::uint32_t number = 0;  ///< counts up by one, from 1 in each session
    std::uint64_t command = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 0x83), fixed<8>("length", 14));
        v.pack(reserved<8>, bits<24>("number", h.number), reserved<16>);
        v("command", h.command);
    }
    bool operator==(const HostRelease&) const = default;
};
static_assert(wire_size<HostRelease>() == 16);
/// The number after the last of them is 0. Far more than a session has under way.
inline constexpr std::uint32_t host_release_numbers = 1u << 24;

}  // namespace weft::wire
