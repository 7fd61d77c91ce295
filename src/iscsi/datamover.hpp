// SPDX-License-Identifier: Apache-2.0
// What moves iSCSI's bytes, as the iSCSI layer sees it (RFC 5047 in our words).
//
// The iSCSI layer knows sessions, commands, tasks and texts. A datamover knows how a PDU and a
// command's data travel: plain TCP cuts data into Data-In and asks for it by R2T, iSER writes and
// reads the other side's memory. Neither knows what the other does.
//
// Control PDUs go through as they are: a header of 48 octets, additional headers, a data segment.
// Data PDUs do not: a target says where a command's data-out belongs (take_data) and what the
// answer is with its data-in (answer); an initiator says where both lie (start). Each is answered
// by exactly one upcall. Upcalls may come from inside the call that asks for them. After lost()
// comes nothing more, and all memory and all tasks are the iSCSI layer's again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "weft/buffer.hpp"
#include "weft/result.hpp"
#include "wire/iscsi_command.hpp"
#include "wire/iscsi_notice.hpp"

namespace weft::iscsi {

/// A PDU that came. Valid until the upcall that brings it returns.
struct ReceivedPdu {
    wire::BasicHeader basic{};
    ConstBuffer header;              ///< the basic header's 48 octets
    ConstBuffer additional_headers;  ///< with their padding
    /// Without padding. Empty for a SCSI Command at a target: where it belongs is not known yet.
    ConstBuffer data;
};

/// A PDU to be sent: copied by the mover before send() returns. The mover writes the numbers that
/// depend on the moment of sending, the data length, and digests.
struct ControlPdu {
    ConstBuffer header;  ///< 48 octets
    ConstBuffer data;
};

/// How a PDU of the target counts: RFC 7143 section 4.2.2.2.
enum class StatusCount : std::uint8_t {
    counts,  ///< takes a StatSN of its own
    peeks,   ///< carries the next StatSN and does not use it up: a ping, a new window
    given,   ///< the numbers are in the header already: a login keeps its own
};

/// What both sides agreed on, as far as movers care. Lengths are in octets.
struct ConnectionTerms {
    bool header_digest = false;
    bool data_digest = false;
    std::uint32_t send_segment_max = 8192;     ///< what the other side takes in one data segment
    std::uint32_t receive_segment_max = 8192;  ///< what we take
    std::uint32_t first_burst_max = 65536;
    std::uint32_t burst_max = 262144;
    std::uint32_t outstanding_requests_max = 1;  ///< MaxOutstandingR2T
    bool initial_request_needed = true;          ///< InitialR2T: no unsolicited Data-Out
    bool immediate_data = true;
    bool data_in_order = true;  ///< DataPDUInOrder
    std::uint8_t error_recovery_level = 0;
    std::uint32_t tasks_max = 128;     ///< task slots are below this
    bool rdma_extensions = false;      ///< RDMAExtensions: the connection is iSER's, or becomes so
    bool discovery = false;            ///< a session that takes no commands
    bool solicited_tags_only = false;  ///< TaggedBufferForSolicitedDataOnly (iSER)
    bool hello_required = false;       ///< iSERHelloRequired
};

/// Why a command's data-out is not all in its place. The iSCSI layer knows the sense data for each.
enum class DataOutcome : std::uint8_t {
    complete,
    abandoned,               ///< abandon() was called
    damaged,                 ///< data digest, or a sequence with a hole: 0Bh/47h/05h
    unexpected_unsolicited,  ///< 0Bh/0Ch/0Ch
    wrong_amount,            ///< 0Bh/0Ch/0Dh
};

// ---------------------------------------------------------------------------------- target side

/// What a mover is told of a command, filled in by the iSCSI layer before command() returns it.
struct TargetMoverTask {
    std::uint32_t slot = 0;  ///< below tasks_max; movers keep their own state per slot
    wire::InitiatorTaskTag tag{};
    wire::LogicalUnit logical_unit{};
    bool expects_unsolicited = false;  ///< Data-Out follows by itself: the F bit was not set
    std::uint32_t immediate_length = 0;
    std::uint32_t out_length = 0;  ///< what the initiator offers: EDTL of a write, else 0
    std::uint32_t in_length = 0;   ///< what it takes: EDTL of a read
};

/// The end of a command: data-in, if any, then the response. One way or the other, the initiator
/// learns both; over TCP a good status may ride on the last Data-In.
struct TargetAnswer {
    std::span<const Buffer> data_in;   ///< stays valid until answered(); at most in_length octets
    wire::ScsiResponsePdu response{};  ///< numbers, data length and data number are the mover's
    ConstBuffer sense;                 ///< stays valid until answered()
};

class TargetDatamoverUser {
public:
    /// A SCSI Command came; its immediate data, if any, is still with the mover. Returns the task
    /// it becomes, or none if the command is to be forgotten with its data. No call about the task
    /// is made from inside: the mover first notes what it must, then says begin().
    virtual TargetMoverTask* command(const ReceivedPdu& pdu) = 0;
    /// take_data() (if out_length or immediate_length > 0) and answer() follow, from inside or
    /// later.
    virtual void begin(TargetMoverTask& task) = 0;
    /// Any other PDU but Data-Out and SNACK, whole: Login, NOP-Out, task management, Text, Logout,
    /// or an opcode nobody knows.
    virtual void control(const ReceivedPdu& pdu) = 0;
    /// The task of this connection that still expects data; none if there is none.
    virtual TargetMoverTask* find_task(wire::InitiatorTaskTag tag) = 0;

    /// The data-out lies where take_data() said, or never will.
    virtual void data_taken(TargetMoverTask& task, DataOutcome outcome) = 0;
    /// The answer has gone, its memory is free and the slot may be used again.
    virtual void answered(TargetMoverTask& task) = 0;

    /// The numbers a PDU that leaves now shall carry.
    virtual wire::TargetNumbers numbers(StatusCount count) = 0;
    /// With every PDU that came and has one: the initiator is alive, and has all before this.
    virtual void acknowledged(std::uint32_t expected_status_number) = 0;
    /// A PDU the mover refuses by itself; a Reject should be sent. The connection goes on.
    virtual void refused(const ReceivedPdu& pdu, wire::RejectReason reason) = 0;
    /// The connection is over. Every task is the user's again: no further upcall for any.
    virtual void lost(std::optional<Error> why) = 0;

protected:
    ~TargetDatamoverUser() = default;
};

class TargetDatamover {
public:
    virtual ~TargetDatamover() = default;

    /// The login has ended well: from the next PDU on these hold, in both directions. The final
    /// Login Response has been given to send() before.
    virtual void begin_full_feature(const ConnectionTerms& terms) = 0;
    /// The initiator takes segments of another length now. May come amid a PDU.
    virtual void change_send_segment_max(std::uint32_t octets) = 0;

    virtual void send(const ControlPdu& pdu, StatusCount count) = 0;
    /// Fewer control PDUs wait to be sent than a peer may make us hold. The mover itself stops
    /// receiving while there is no room.
    virtual bool room_to_send() const = 0;

    /// The longest data segment send() takes now.
    virtual std::uint32_t control_data_max() const = 0;
    /// Whether data-in leaves with checksums that are computed before: it must not change then.
    virtual bool computes_checksums() const = 0;

    /// Bring the first octets of the task's data-out, as many as `places` hold (no more than
    /// out_length), and drop what else is unsolicited. Empty places: drop all. Once per task,
    /// answered by data_taken() when no further data of the task is to be expected. The list
    /// itself must stay as long as the places do.
    virtual void take_data(TargetMoverTask& task, std::span<const Buffer> places) = 0;
    /// Send the answer; not before data_taken() where data was to be taken. Answered by answered().
    virtual void answer(TargetMoverTask& task, const TargetAnswer& answer) = 0;
    /// The task was aborted. What was begun by take_data() ends soon by data_taken(), by answer()
    /// with answered(), and nothing more is asked of the initiator. Where neither is under way, the
    /// slot is free at once.
    virtual void abandon(TargetMoverTask& task) = 0;
    /// Data that was asked for before its task was abandoned is still not here: until it is, its
    /// place is the initiator's to write to, and everybody who waits for the abort waits for it.
    virtual bool awaits_abandoned_data() const = 0;

    /// Send what was given, receive nothing more, close: then lost() comes.
    virtual void close_when_sent() = 0;
    /// Close at once. lost() comes later, never from inside.
    virtual void close() = 0;
};

// ------------------------------------------------------------------------------- initiator side

/// A command and where its data lies. The initiator owns it and keeps it, with all it points to,
/// until retired().
struct InitiatorMoverTask {
    std::uint32_t slot = 0;  ///< below tasks_max
    wire::ScsiCommandPdu command{};
    ConstBuffer additional_headers;
    std::span<const Buffer> data_out;  ///< expected_transfer_length octets of a write
    std::span<const Buffer> data_in;   ///< what a read may fill
};

/// How a command ended. Over TCP the status may have come with data; the mover says it alike.
struct InitiatorAnswer {
    wire::ScsiResponsePdu response{};
    ConstBuffer sense;         ///< valid until the upcall returns
    std::uint64_t placed = 0;  ///< octets of data-in that lie in place, from the front
    /// Data was damaged or missing and could not be had again: the status is not to be believed.
    bool damaged = false;
};

class InitiatorDatamoverUser {
public:
    /// The connection is there (TCP or RDMA): log in.
    virtual void opened() = 0;
    /// Any PDU but SCSI Response, Data-In and R2T.
    virtual void control(const ReceivedPdu& pdu) = 0;
    virtual InitiatorMoverTask* find_task(wire::InitiatorTaskTag tag) = 0;
    /// The target answered. The mover may still hold the task's memory until retired().
    virtual void responded(InitiatorMoverTask& task, const InitiatorAnswer& answer) = 0;
    /// Nobody can reach the task's memory any more and the slot may be used again. Once per
    /// start(), after responded() or abandon().
    virtual void retired(InitiatorMoverTask& task) = 0;

    /// What every PDU of the target carries, told before the PDU itself.
    virtual void heard(const wire::TargetNumbers& numbers, StatusCount count) = 0;
    /// What a PDU that leaves now shall acknowledge.
    virtual std::uint32_t expected_status_number() = 0;
    virtual void lost(std::optional<Error> why) = 0;

protected:
    ~InitiatorDatamoverUser() = default;
};

class InitiatorDatamover {
public:
    virtual ~InitiatorDatamover() = default;

    virtual void begin_full_feature(const ConnectionTerms& terms) = 0;
    virtual void send(const ControlPdu& pdu) = 0;
    /// Send the command and move its data, as the terms allow. CmdSN is in the header.
    virtual void start(InitiatorMoverTask& task) = 0;
    /// The task is over though no answer came (it was aborted): let go of its memory.
    virtual void abandon(InitiatorMoverTask& task) = 0;
    virtual void close_when_sent() = 0;
    virtual void close() = 0;

    /// Completions polled so far, for those who count. Only RDMA has any.
    virtual std::uint64_t completions() const { return 0; }
};

}  // namespace weft::iscsi
