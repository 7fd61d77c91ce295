// SPDX-License-Identifier: Apache-2.0
// The target's datamover over iSER (RFC 7145): PDUs travel in Sends, data-in as RDMA Writes into
// the initiator's memory, data-out as RDMA Reads from it. No data PDU is ever sent, no status rides
// on data.
//
// What is sent lies where it is: all memory of the process goes by one local tag. What is read in
// goes by tags that are registered for each RDMA Read, under another key each time, and invalidated
// by its end. How many Reads are under way is counted here, since one that waited for its turn in
// the queue pair would hold up all answers behind it.
#pragma once

#include <vector>

#include "base/ring.hpp"
#include "block/scatter.hpp"
#include "iscsi/iser_data_out.hpp"
#include "iscsi/iser_message.hpp"
#include "iscsi/iser_target.hpp"

namespace weft::iscsi {

/// Hears of a connection, for its mover while that is there.
class IserEars final : public verbs::ConnectionEvents {
public:
    explicit IserEars(IserTargetMover* mover) : mover_(mover) {}
    /// The mover goes, the connection stays a while: `over` is called at its end.
    void outlive_mover(std::function<void()> over) {
        mover_ = nullptr;
        over_ = std::move(over);
    }

    void established() override;
    void rejected() override { failed({.code = Code::disconnected}); }
    void failed(Error why) override;
    void disconnected() override;

private:
    IserTargetMover* mover_;
    std::function<void()> over_;
};

class IserTargetMover final : public TargetDatamover {
public:
    enum class Style : std::uint8_t {
        rdma_first,   ///< as Linux and libiscsi do it: the login too comes in Sends
        after_login,  ///< as RFC 7145 says
    };
    /// Of memory, that one Write or Send gathers.
    static constexpr std::uint32_t pieces = 16;

    IserTargetMover(IserTarget& target, std::unique_ptr<verbs::QueuePair> queue_pair,
                    TargetDatamoverUser& user);
    IserTargetMover(const IserTargetMover&) = delete;
    IserTargetMover& operator=(const IserTargetMover&) = delete;
    ~IserTargetMover() override;

    Result<void> accept(verbs::ConnectionRequest& request, Style style);
    Result<void> wait_for_request(std::unique_ptr<Stream> stream);

    /// Receives it keeps from being posted again; and that they are too many.
    std::size_t receives_held() const { return receives_held_; }
    void take_too_much();

    // What the completions say.
    void received(iser::Receive& receive);
    void sent(const verbs::Completion& completion);

    // TargetDatamover
    void begin_full_feature(const ConnectionTerms& terms) override;
    /// No data PDU is ever sent, and for the others the login has spoken.
    void change_send_segment_max(std::uint32_t) override {}
    void send(const ControlPdu& pdu, StatusCount count) override;
    bool room_to_send() const override { return controls_unsent_ < iser::controls_waiting_max; }
    std::uint32_t control_data_max() const override;
    void take_data(TargetMoverTask& task, std::span<const Buffer> places) override;
    void answer(TargetMoverTask& task, const TargetAnswer& answer) override;
    void abandon(TargetMoverTask& task) override;
    bool awaits_abandoned_data() const override { return abandoned_ > 0; }
    void close_when_sent() override;
    void close() override;

private:
    enum class Kind : std::uint8_t { write, control, answer, read };
    struct Outgoing {
        Outgoing* next = nullptr;
        bool is_answer = false;
    };
    struct Control : Outgoing {
        std::vector<std::byte> octets;
        StatusCount count{};
        std::size_t index = 0;
    };
    struct Slot : Outgoing {
        TargetMoverTask* task = nullptr;
        wire::IserControlHeader advertised{};
        iser::DataOut data_out;
        iser::Receive* immediate = nullptr;  ///< the command's own, while its data is in there
        ConstBuffer immediate_data;
        IntrusiveQueue<iser::Receive> early;  ///< Data-Out that came before their places were known
        std::span<const Buffer> places;
        bool taking = false, answering = false;
        bool in_line = false;    ///< in reading_
        bool abandoned = false;  ///< while taking: it ends when no Read is under way
        TargetAnswer answer{};
        std::uint64_t data_in_sent = 0, data_in_size = 0;
        std::array<std::byte, iser::headers_size + 2 + 252> response{};
    };
    struct Sink {
        std::unique_ptr<verbs::MemoryRegion> region;
        SteeringTag tag{};  ///< its key moves on with every use
        Slot* slot = nullptr;
    };

    friend class IserEars;
    void established();
    void failed(Error why) { end(why); }
    void disconnected();

    // iser_target_mover.cpp: the connection, and PDUs.
    void handle(iser::Receive& receive);
    void take_hello(iser::Receive& receive);
    void command_came(const iser::Message& message, iser::Receive& receive);
    void data_out_came(const iser::Message& message, iser::Receive& receive);
    void handle_held();
    Control& make_control();
    void fail(Error why);
    void end(std::optional<Error> why);
    void drop_receives();
    void leave_if_sent();
    void see_off();

    // iser_target_data.cpp: data and answers.
    Slot& slot_of(const TargetMoverTask& task);
    void keep(iser::Receive& receive, IntrusiveQueue<iser::Receive>& where);
    bool may_hold_another();
    void hold_receive();
    void let_go_of_receive();
    void give_back(iser::Receive& receive) { target_.receives_->give_back(receive); }
    void take_unsolicited(Slot& slot, iser::Receive& receive);
    void place(Slot& slot, std::uint64_t offset, ConstBuffer data);
    void settle_data(Slot& slot);
    bool prepare_sinks();
    void pump_reads();
    bool post_read(Slot& slot, Sink& sink);
    void read_ended(Sink& sink);
    void pump_sends();
    bool post_control(Control& control);
    bool post_answer(Slot& slot);
    bool post_write(Slot& slot);
    ConstBuffer compose_response(Slot& slot);
    std::optional<SteeringTag> tag_to_invalidate(const Slot& slot) const;
    static std::uint64_t id_of(Kind kind, std::size_t index) {
        return static_cast<std::uint64_t>(kind) << 32 | index;
    }

    IserTarget& target_;
    TargetDatamoverUser& user_;
    std::unique_ptr<IserEars> ears_ = std::make_unique<IserEars>(this);
    std::unique_ptr<verbs::QueuePair> queue_pair_;
    const std::uint32_t number_;  ///< the queue pair's
    std::unique_ptr<verbs::Responder> responder_;
    std::unique_ptr<verbs::Connection> connection_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

    Style style_ = Style::after_login;
    ConnectionTerms terms_;
    bool full_feature_ = false;
    bool hello_due_ = false;
    bool may_invalidate_ = true;
    bool leaving_ = false;  ///< what is queued still goes, nothing more is heard
    bool said_all_ = false;
    bool over_ = false;
    std::optional<Error> fault_;

    std::vector<Slot> slots_;
    std::vector<std::unique_ptr<Control>> controls_;
    std::vector<Control*> free_controls_;
    std::size_t controls_unsent_ = 0;
    std::size_t answers_unsent_ = 0;
    IntrusiveQueue<Outgoing> outgoing_;
    std::uint32_t writes_unsignalled_ = 0;

    IntrusiveQueue<iser::Receive> held_;  ///< not worked on yet: there is no room to answer
    std::size_t receives_held_ = 0;       ///< by it and by slots
    bool handling_held_ = false;

    std::optional<std::uint16_t> reads_allowed_;  ///< by a Hello, beside what the connection says
    std::vector<Sink> sinks_;
    std::vector<Sink*> free_sinks_;
    Ring<Slot*> reading_{1};  ///< slots with parts to be read, each once
    std::size_t abandoned_ = 0;
    verbs::FastRegistration registration_;
};

}  // namespace weft::iscsi
