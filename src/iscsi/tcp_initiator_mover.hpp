// SPDX-License-Identifier: Apache-2.0
// The initiator's datamover on a byte stream: commands with immediate data, unsolicited and asked
// for Data-Out, Data-In placed straight into the command's memory, status with data or without.
//
// Each command under way has a slot, and each slot one PDU object that is the command first and
// then its Data-Out, one after another. A slot is free again when the target has answered and none
// of its memory is lent or being filled.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "base/ring.hpp"
#include "iscsi/datamover.hpp"
#include "iscsi/limits.hpp"
#include "iscsi/pdu_receiver.hpp"
#include "iscsi/pdu_sender.hpp"
#include "weft/world.hpp"

namespace weft::iscsi {

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
        std::uint32_t next_data_number = 0;
        std::uint32_t next_request_number = 0;
        std::uint64_t placed = 0;

        void about_to_go() override;
        bool may_go_again() const override { return burst.left > 0; }
        Then gone() override;
        void dropped() override { queued = false; }
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
    Slot* receiving_ = nullptr;  ///< null while a Data-In arrives: nobody wants it any more
};

}  // namespace weft::iscsi
