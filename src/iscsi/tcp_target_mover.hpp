// SPDX-License-Identifier: Apache-2.0
// The target's datamover over plain TCP: an engine the world drives, with the iSCSI layer above.
//
// It takes PDUs apart (PduReceiver), brings data-out straight from the stream into the places the
// layer above names, asks for what is missing by R2T, and sends answers as Data-In and Response,
// both in one PDU where the rules allow. Where a data segment belongs is known only when the
// command has begun; until then nothing is read.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "iscsi/data_out_transfer.hpp"
#include "iscsi/pdu_receiver.hpp"
#include "iscsi/pdu_sender.hpp"
#include "weft/world.hpp"

namespace weft::iscsi {

class TcpTargetMover final : public StreamEngine, public TargetDatamover {
public:
    /// `wake`: tell the stream to ask again.
    TcpTargetMover(TargetDatamoverUser& user, std::function<void()> wake);
    TcpTargetMover(const TcpTargetMover&) = delete;
    TcpTargetMover& operator=(const TcpTargetMover&) = delete;
    ~TcpTargetMover() override;

    // StreamEngine
    Buffer want() override;
    void filled(std::size_t count) override;
    std::size_t pending(std::span<ConstBuffer> pieces) override;
    void sent(std::size_t count) override;
    bool finished() const override;
    void closed(std::optional<Error> why) override;

    // TargetDatamover
    void begin_full_feature(const ConnectionTerms& terms) override;
    void change_send_segment_max(std::uint32_t octets) override;
    void send(const ControlPdu& pdu, StatusCount count) override;
    bool room_to_send() const override { return controls_unsent_ < unsent_control_max; }
    std::uint32_t control_data_max() const override { return terms_.send_segment_max; }
    bool computes_checksums() const override { return terms_.data_digest; }
    void take_data(TargetMoverTask& task, std::span<const Buffer> places) override;
    void answer(TargetMoverTask& task, const TargetAnswer& answer) override;
    void abandon(TargetMoverTask& task) override;
    bool awaits_abandoned_data() const override { return false; }
    void close_when_sent() override;
    void close() override;

    /// The stream is to be somebody else's after what was given to send(): nothing more is
    /// received, and `gone` is called from inside sent() of the last octet. There are no upcalls
    /// afterwards.
    void release_when_sent(std::function<void()> gone);

    /// Why the connection was given up, if it was.
    std::optional<Error> fault() const { return fault_; }

private:
    struct Counted;
    struct Slot;
    struct Control;
    enum class State : std::uint8_t {
        open,
        leaving,  ///< what is queued still goes
        broken,   ///< nothing goes any more
        closed,
        released,  ///< the stream is not ours any more
    };
    /// What the data segment on its way is.
    enum class Segment : std::uint8_t { none, control, immediate, data_out, forgotten };

    bool sends() const { return state_ == State::open || state_ == State::leaving; }
    void fail(Error why);
    void header_came(const PduHeader& header);
    void command_came(const ReceivedPdu& pdu);
    void data_out_came(const ReceivedPdu& pdu);
    void data_came(const PduData& data);
    void acknowledge(const ReceivedPdu& pdu);
    ReceivedPdu current(ConstBuffer data) const;
    void expect_nothing();
    void place_segment(Slot& slot);
    Slot& slot_of(const TargetMoverTask& task);
    void pump(Slot& slot);
    void queue(Slot& slot);
    void stamp(Counted& pdu);
    /// It has gone: with error recovery it may be asked for again.
    void keep(Counted& pdu);
    void let_go_of_acknowledged();
    void snack_came(const ReceivedPdu& pdu);
    std::optional<wire::RejectReason> refusal_or_repeat(const wire::SnackRequestPdu& request);
    bool repeat_status(std::uint32_t first, std::uint32_t count);

    TargetDatamoverUser& user_;
    std::function<void()> wake_;
    std::function<void()> released_;
    State state_ = State::open;
    std::optional<Error> fault_;
    ConnectionTerms terms_;
    bool full_feature_ = false;
    PduReceiver receiver_;
    PduSender sender_;

    // The PDU being received.
    std::array<std::byte, wire::basic_header_size> header_{};
    wire::BasicHeader basic_{};
    Segment segment_ = Segment::none;
    Slot* receiving_ = nullptr;  ///< whose data the segment is
    std::uint32_t segment_offset_ = 0;
    bool segment_taken_ = false;     ///< it is to be placed, not dropped
    std::vector<Buffer> patchwork_;  ///< places of a segment that reaches beyond what is wanted
    std::vector<std::byte> waste_;   ///< where the rest of such a segment goes

    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<std::unique_ptr<Control>> controls_;
    std::vector<Control*> free_controls_;
    std::size_t controls_unsent_ = 0;

    std::deque<Counted*> kept_;  ///< gone and not acknowledged, in the order of their numbers
    std::uint32_t acknowledged_ = 0;
};

}  // namespace weft::iscsi
