// SPDX-License-Identifier: Apache-2.0
// An initiator's datamover that begins on TCP and turns to iSER at the end of the login, if both
// sides agreed on RDMAExtensions (RFC 7145 section 5.1.2); if they did not, it stays what it is.
// The session above sees one datamover: what it sends while the connection turns is kept until that
// is done.
#pragma once

#include <deque>
#include <vector>

#include "iscsi/iser_initiator.hpp"
#include "iscsi/tcp_initiator_mover.hpp"

namespace weft::iscsi {

class TurningInitiatorMover final : public InitiatorDatamover, private InitiatorDatamoverUser {
public:
    /// The stream is connected to tcp(), which is then told to own it.
    TurningInitiatorMover(World& world, IserInitiator& iser, InitiatorDatamoverUser& user)
        : world_(world), iser_maker_(iser), user_(user), tcp_(*this) {}
    ~TurningInitiatorMover() override { *alive_ = false; }
    TcpInitiatorMover& tcp() { return tcp_; }
    /// Whether it has turned.
    bool is_iser() const { return iser_ != nullptr && !turning_; }

    void begin_full_feature(const ConnectionTerms& terms) override;
    void send(const ControlPdu& pdu) override;
    void start(InitiatorMoverTask& task) override;
    void abandon(InitiatorMoverTask& task) override;
    void close_when_sent() override;
    void close() override { now().close(); }
    std::uint64_t completions() const override { return iser_ ? iser_->completions() : 0; }

private:
    struct Kept {
        std::vector<std::byte> header, data;
    };

    // InitiatorDatamoverUser, for whichever of the two moves.
    void opened() override;
    void control(const ReceivedPdu& pdu) override { user_.control(pdu); }
    InitiatorMoverTask* find_task(wire::InitiatorTaskTag tag) override {
        return user_.find_task(tag);
    }
    void responded(InitiatorMoverTask& task, const InitiatorAnswer& answer) override {
        user_.responded(task, answer);
    }
    void retired(InitiatorMoverTask& task) override { user_.retired(task); }
    void heard(const wire::TargetNumbers& numbers, StatusCount count) override {
        user_.heard(numbers, count);
    }
    std::uint32_t expected_status_number() override { return user_.expected_status_number(); }
    void lost(std::optional<Error> why) override { user_.lost(why); }

    void turn(std::unique_ptr<Stream> stream);
    InitiatorDatamover& now() { return iser_ ? *iser_ : static_cast<InitiatorDatamover&>(tcp_); }

    World& world_;
    IserInitiator& iser_maker_;
    InitiatorDatamoverUser& user_;
    TcpInitiatorMover tcp_;
    std::unique_ptr<InitiatorDatamover> iser_;
    ConnectionTerms terms_;
    bool turning_ = false;
    bool closes_when_turned_ = false;
    std::deque<Kept> kept_;                   ///< PDUs, while it turns; a session has few of them
    std::vector<InitiatorMoverTask*> tasks_;  ///< and commands: no more than there are slots
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::iscsi
