// SPDX-License-Identifier: Apache-2.0
// The commands of an array's controller to its boxes: one vendor specific SCSI command, whose
// second octet says which, and whose parameter list (Data-Out, sent along with the command) says
// the rest.
//
// Most are orders: they carry out a part of a plan. Their parameter list is a header, the parties
// (the passive sides of transfers, which is the extra field of the paper's section III-G: who, and
// under which steering tag), and the pieces. The answer comes back in the response itself, as a
// descriptor of sense data of the vendor's kind, so that it costs no transfer of its own; its
// status is GOOD if the order was carried out.
#pragma once

#include "weft/registered_memory.hpp"
#include "wire/array_identity.hpp"
#include "wire/scsi_operation.hpp"

namespace weft::wire {

/// The first eleven are orders, under the names the paper has for them.
enum class ArrayAction : std::uint8_t {
    vectored_order = 0x00,
    prep_read = 0x01,
    prep_write = 0x02,
    read_new_block = 0x03,
    read_parity_part_tmp = 0x04,
    read_parity_comp_tmp = 0x05,
    read_parity_part_block = 0x06,
    read_parity_comp_block = 0x07,
    write_new_data = 0x08,
    xor_write = 0x09,  ///< XDWRITE
    pre_fetch = 0x0a,
    abort = 0x20,         ///< a transaction ends here, nothing of it goes home; lasting, then
                          ///< answered, if the journal has it
    release = 0x21,       ///< a request has ended: its window and tag are no more
    new_epoch = 0x22,     ///< no lower epoch is obeyed from now on
    store_volume = 0x23,  ///< parameter list: an address and a superblock to keep
    meet_boxes = 0x24,    ///< parameter list: the boxes of the volume and where they are
    admit_host = 0x25,    ///< parameter list: a host and the secret shared with it
    dismiss_host = 0x26,
    describe_box = 0x27,  ///< Data-In: what a box is, and its parts; anybody may ask
    create_part = 0x28,   ///< parameter list: an address and the part's first superblock
    delete_part = 0x29,   ///< parameter list: an address
    recall = 0x2a,        ///< parameter list: an address; Data-In: what the journal remembers
    resolve = 0x2b,       ///< parameter list: an address; commits what the journal has prepared
    list_links = 0x2c,    ///< Data-In: connections to peers, how they are; anybody may ask
};
inline constexpr std::uint8_t array_order_count = 11;
constexpr bool is_order(ArrayAction action) {
    return static_cast<std::uint8_t>(action) < array_order_count;
}

struct ArrayCommandBlock {
    ArrayAction action{};
    TransactionNumber transaction{};
    std::uint32_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::array_order>(v);
        v("action", h.action);
        v("transaction", h.transaction);
        v("parameter length", h.parameter_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ArrayCommandBlock&) const = default;
};
static_assert(wire_size<ArrayCommandBlock>() == 16);

/// Parties follow, then pieces.
struct ArrayOrderHeader {
    ArrayAddress address{};
    HostSession host{};              ///< who asked; 0 for upkeep
    std::uint64_t host_command = 0;  ///< its number: a write sent again is known by it
    std::uint32_t participants = 0;  ///< boxes that will commit, bit by bit
    std::uint32_t window = 0;        ///< which of the box's windows the slots are in
    SteeringTag window_tag{};        ///< under which peers reach it, as long as the request lives
    std::uint32_t window_length = 0;
    std::uint8_t phase = 0;
    std::uint8_t round = 0;
    bool closes = false;  ///< the request ends here with this order
    bool prepares = false;
    std::uint8_t party_count = 0;
    std::uint16_t piece_count = 0;
    TransactionNumber settled{};   ///< all below it have ended, lastingly, with everybody
    HostIdentity host_identity{};  ///< who asked, whatever its session
    std::uint32_t lease_ms = 0;    ///< the sender is in office so long; 0: it does not say
    std::uint32_t to_prepare = 0;  ///< octets this box will prepare: room for them is kept

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<32>("key", 0x57'4f'52'32));  // "WOR2"
        v.pack(reserved<32>);
        v.nested("address", h.address);
        v("host", h.host);
        v("host command", h.host_command);
        v("participants", h.participants);
        v("window", h.window);
        v("window tag", h.window_tag);
        v("window length", h.window_length);
        v("phase", h.phase);
        v("round", h.round);
        v.pack(reserved<6>, bits<1>("closes", h.closes), bits<1>("prepares", h.prepares));
        v("party count", h.party_count);
        v("piece count", h.piece_count);
        v.pack(reserved<16>);
        v("settled", h.settled);
        v.nested("host identity", h.host_identity);
        v("lease", h.lease_ms);
        v("to prepare", h.to_prepare);
    }
    bool operator==(const ArrayOrderHeader&) const = default;
};
static_assert(wire_size<ArrayOrderHeader>() == 144);

/// A passive side: whose memory pieces of this order read or write, and where it begins.
struct ArrayParty {
    std::uint8_t kind = 0;  ///< host, controller or box
    std::uint8_t box = 0;   ///< its place in the volume
    SteeringTag tag{};
    std::uint64_t base = 0;  ///< the pieces' offsets count from this offset of the tag
    BoxIdentity identity{};  ///< of a box; of a host its session, in the last eight octets

    static constexpr void describe(auto& v, auto& h) {
        v("kind", h.kind);
        v("box", h.box);
        v.pack(reserved<16>);
        v("tag", h.tag);
        v("base", h.base);
        v.nested("identity", h.identity);
    }
    bool operator==(const ArrayParty&) const = default;
};
static_assert(wire_size<ArrayParty>() == 32);

struct ArrayPiece {
    std::uint8_t verb = 0;
    std::uint8_t blend = 0;
    std::uint8_t column = 0;
    std::uint8_t other_column = 0;
    std::uint8_t party = 0;  ///< which of the order's; 0xff: none
    std::uint32_t length = 0;
    std::uint32_t slot = 0;
    std::uint64_t home = 0;
    std::uint64_t at = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("verb", h.verb);
        v("blend", h.blend);
        v("column", h.column);
        v("other column", h.other_column);
        v("party", h.party);
        v.pack(reserved<24>);
        v("length", h.length);
        v("slot", h.slot);
        v("home", h.home);
        v("at", h.at);
    }
    bool operator==(const ArrayPiece&) const = default;
};
static_assert(wire_size<ArrayPiece>() == 32);
inline constexpr std::uint8_t no_array_party = 0xff;

/// What became of a command.
enum class ArrayOutcome : std::uint8_t {
    done = 0x00,
    wrong_cluster = 0x01,
    wrong_volume = 0x02,
    wrong_box = 0x03,
    other_epoch = 0x04,          ///< not the one last announced; a lower one never will be
    other_generation = 0x05,     ///< the sender's idea of the volume is not the box's
    malformed = 0x06,            ///< the parameter list breaks a rule; `piece` says where
    out_of_range = 0x07,         ///< beyond the window or the disk
    no_room = 0x08,              ///< no window, or the journal is full; later
    peer_unreachable = 0x09,     ///< no connection to `party` could be made and proved
    disk_failed = 0x0a,          ///< the box's own
    unknown_transaction = 0x0b,  ///< a later phase of something never staged here
    no_space = 0x0c,             ///< on the disk: for a part of that size, or, later, for a write
    already_there = 0x0d,        ///< a part of that volume
    corrupt = 0x0e,              ///< what `piece` would read is not what was written there
    lease_over = 0x0f,           ///< the sender's time in office has run out, for all one knows
    peer_refused = 0x10,    ///< `party` has no such memory: it knows of another end of the request
    peer_timed_out = 0x11,  ///< `party` is connected, and moved nothing for too long
};

/// A descriptor of sense data. Digests are of what was staged, digested, or computed by the order.
struct ArrayAnswer {
    ArrayOutcome outcome{};
    std::uint8_t party = no_array_party;  ///< who failed, of the order's parties
    std::uint16_t piece = 0;              ///< where it failed
    TransactionNumber transaction{};
    Generation generation{};  ///< what the box holds to be true
    Epoch epoch{};
    std::uint32_t row_digest = 0;
    std::array<std::uint32_t, 16> diagonal_digests{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 0x80), fixed<8>("length", 98));
        v("outcome", h.outcome);
        v("party", h.party);
        v("piece", h.piece);
        v.pack(reserved<16>);
        v("transaction", h.transaction);
        v("generation", h.generation);
        v("epoch", h.epoch);
        v("row digest", h.row_digest);
        for (auto& word : h.diagonal_digests) v("diagonal digest", word);
    }
    bool operator==(const ArrayAnswer&) const = default;
};
static_assert(wire_size<ArrayAnswer>() == 100);

/// What a journal knows of a transaction.
enum class ArrayTransactionState : std::uint8_t {
    prepared = 1,  ///< and not decided: whoever asks must do so
    committed = 2,
    aborted = 3,
};

/// May follow the address of an abort, for a box that takes no orders yet, by which it would hear
/// it: what is settled needs no room in its journal.
struct ArraySettled {
    TransactionNumber settled{};  ///< as in orders

    static constexpr void describe(auto& v, auto& h) { v("settled", h.settled); }
    bool operator==(const ArraySettled&) const = default;
};
static_assert(wire_size<ArraySettled>() == 8);

/// The Data-In of recall: this head, the transactions, the notes; both in rising order.
struct ArrayRecallHead {
    TransactionNumber settled{};  ///< all below it had ended everywhere, and are not listed
    std::uint32_t transactions = 0;
    std::uint32_t notes = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'52'63'6c'31));  // "WeftRcl1"
        v("settled", h.settled);
        v("transactions", h.transactions);
        v("notes", h.notes);
    }
    bool operator==(const ArrayRecallHead&) const = default;
};
static_assert(wire_size<ArrayRecallHead>() == 24);

inline constexpr unsigned recalled_sum_bits = 23;

struct ArrayRecalled {
    TransactionNumber transaction{};
    Generation generation{};  ///< in which it was prepared
    HostSession host{};
    HostIdentity host_identity{};
    std::uint64_t host_command = 0;
    std::uint64_t home = 0;    ///< all it changes here lies between this
    std::uint64_t length = 0;  ///< and so many octets behind it
    std::uint32_t participants = 0;
    ArrayTransactionState state{};
    bool restores = false;  ///< it was made anew from the others: nobody was answered for it
    /// Of its blocks and their places, so that copies can be told apart. 0: it was not to be
    /// compared.
    std::uint32_t sum = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("transaction", h.transaction);
        v("generation", h.generation);
        v("host", h.host);
        v.nested("host identity", h.host_identity);
        v("host command", h.host_command);
        v("home", h.home);
        v("length", h.length);
        v("participants", h.participants);
        v("state", h.state);
        v.pack(bits<1>("restores", h.restores), bits<recalled_sum_bits>("sum", h.sum));
    }
    bool operator==(const ArrayRecalled&) const = default;
};
static_assert(wire_size<ArrayRecalled>() == 72);

/// A host's write that was committed, kept beyond the record of its blocks: a host that asks again
/// is told so.
struct ArrayExecutedNote {
    TransactionNumber transaction{};
    HostIdentity host_identity{};
    std::uint64_t host_command = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("transaction", h.transaction);
        v.nested("host identity", h.host_identity);
        v("host command", h.host_command);
    }
    bool operator==(const ArrayExecutedNote&) const = default;
};
static_assert(wire_size<ArrayExecutedNote>() == 32);

}  // namespace weft::wire
