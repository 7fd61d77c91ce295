// SPDX-License-Identifier: Apache-2.0
// The initiator's datamover on a byte stream: commands with immediate data, unsolicited and asked
// for Data-Out, Data-In placed straight into the command's memory, status with data or without.
//
// Each command under way has a slot, and each slot one PDU object that is the command first and
// then its Data-Out, one after another. A slot is free again when the target has answered and none
// of its memory is lent or being filled.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "base/fixed_vector.hpp"
#include "base/ring.hpp"
#include "iscsi/datamover.hpp"
#include "iscsi/limits.hpp"
#include "iscsi/pdu_receiver.hpp"
#include "iscsi/pdu_sender.hpp"
#include "weft/world.hpp"

namespace weft::iscsi {

/// A status that came before the data was whole.
struct HeldStatus {
    wire::ScsiResponsePdu response{};
    FixedVector<std::byte, 252> sense{};
};

class TcpInitiatorMover final : public InitiatorDatamover, public StreamEngine {
public:
    explicit TcpInitiatorMover(InitiatorDatamoverUser& user);
    ~TcpInitiatorMover() override;
    /// The stream that drives this. It ends with it.
    void own(std::unique_ptr<Stream> stream) { stream_ = std::move(stream); }

    void begin_full_feature(const ConnectionTerms& terms) override;
    void send(const ControlPdu& pdu) override;
    void start(InitiatorMoverTask& task) override;
    void abandon(InitiatorMoverTask& task) override;
    void close_when_sent() override;
    void close() override;

    /// Gives the stream away as soon as all that was given to send() has gone, and takes no byte
    /// more from it: another engine goes on with it (RFC 7145: the switch to RDMA).
    void release_when_sent(std::function<void(std::unique_ptr<Stream>)> released);

    void opened() override { user_.opened(); }
    Buffer want() override;
    void filled(std::size_t count) override;
    std::size_t pending(std::span<ConstBuffer> pieces) override;
    void sent(std::size_t count) override;
    bool finished() const override;
    void closed(std::optional<Error> why) override;

private:
    /// A part of a command's data the target may have now.
    struct Burst {
        wire::TargetTransferTag transfer_tag = wire::TargetTransferTag::none;
        std::uint32_t offset = 0;
        std::uint32_t left = 0;
        std::uint32_t data_number = 0;
    };

    class Slot final : public OutgoingPdu {
    public:
        TcpInitiatorMover* mover = nullptr;
        InitiatorMoverTask* task = nullptr;  ///< null: the slot is free
        bool queued = false;                 ///< its PDU is with the sender
        bool receiving = false;              ///< its memory is being filled
        bool over = false;                   ///< answered or abandoned: retire when nobody holds it
        bool damaged = false;
        Burst burst{};
        Ring<Burst> requests{initiator_requests_max};
        /// Numbers of Data-In that came damaged and were asked for again (recovery level 1).
        FixedVector<std::uint32_t, initiator_holes_max> holes;
        std::optional<HeldStatus> held;
        /// What the target wants to have acknowledged when there is no hole.
        std::optional<wire::DataInPdu> to_acknowledge;
        std::uint32_t next_data_number = 0;
        std::uint32_t next_request_number = 0;
        std::uint64_t placed = 0;

        void about_to_go() override;
        bool may_go_again() const override { return burst.left > 0; }
        Then gone() override;
        void dropped() override { queued = false; }
        bool has_hole(std::uint32_t number) const {
            return std::find(holes.begin(), holes.end(), number) != holes.end();
        }
    };

    /// Its copy of what send() was given.
    class Control final : public OutgoingPdu {
    public:
        TcpInitiatorMover* mover = nullptr;
        std::vector<std::byte> octets;
        Buffer piece;
        std::list<Control>::iterator self;

        void about_to_go() override;
        Then gone() override;
        void dropped() override {}
    };

    void wake();
    void release();
    void fail(Error why);
    void stamp(std::span<std::byte> header);
    void load_burst(Slot& slot);
    void retire_if_over(Slot& slot);
    Slot* find(wire::InitiatorTaskTag tag);
    Result<void> take_header(const PduHeader& header);
    Result<void> take_data_in(const PduHeader& header);
    Result<void> take_request(const PduHeader& header);
    Result<void> take_response(const PduHeader& header);
    Result<void> take_control(const PduHeader& header);
    Result<void> take_segment(const PduData& data);
    void end_data_in(bool digest_good);
    Result<void> end_response(ConstBuffer segment);
    void end_control(ConstBuffer segment);
    void answer(Slot& slot, const InitiatorAnswer& answer);

    // Recovery level 1: what came damaged is asked for again (tcp_initiator_recovery.cpp).
    bool recovers() const { return terms_.error_recovery_level > 0; }
    /// False: it cannot be had again.
    bool ask_for_data_again(Slot& slot);
    void fill_hole(Slot& slot, std::uint32_t number);
    void go_on_if_whole(Slot& slot);
    void acknowledge_data(Slot& slot);
    /// The status of a command came; it is told when its data is whole.
    void take_status(Slot& slot, const wire::ScsiResponsePdu& response, ConstBuffer sense);
    Result<void> ask_for_status_again(std::uint32_t number);
    /// How a status counts: one that came before, and was asked for again, does not.
    StatusCount count_of(std::uint32_t status_number) const;
    void settle(std::uint32_t status_number);
    void leave_unsettled(std::uint32_t status_number);
    void send_snack(const wire::SnackRequestPdu& snack);

    InitiatorDatamoverUser& user_;
    std::unique_ptr<Stream> stream_;
    ConnectionTerms terms_;
    PduReceiver receiver_;
    PduSender sender_;
    std::vector<Slot> slots_;
    std::list<Control> controls_;
    std::function<void(std::unique_ptr<Stream>)> released_;
    bool closing_ = false;
    bool failed_ = false;
    std::optional<Error> fault_;

    // The PDU whose data segment is on its way.
    std::array<std::byte, wire::basic_header_size> header_{};
    wire::BasicHeader basic_{};
    wire::DataInPdu data_in_{};
    wire::ScsiResponsePdu response_{};
    /// Statuses that came and may not be acknowledged yet: something of them is missing.
    std::vector<std::uint32_t> unsettled_;
    std::uint32_t status_number_ = 0;  ///< of the PDU at hand, if it is no data
    std::size_t asked_in_vain_ = 0;    ///< since something last came as it should
    Slot* receiving_ = nullptr;        ///< null while a Data-In arrives: nobody wants it any more
};

}  // namespace weft::iscsi
