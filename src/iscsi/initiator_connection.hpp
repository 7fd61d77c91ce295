// SPDX-License-Identifier: Apache-2.0
// One connection of an initiator's session: its login, and what its datamover says after that.
#pragma once

#include <functional>
#include <optional>

#include "iscsi/datamover.hpp"
#include "iscsi/login_initiator.hpp"
#include "weft/instant.hpp"

namespace weft::iscsi {

class InitiatorSession;

class InitiatorConnection final : public InitiatorDatamoverUser {
public:
    InitiatorConnection(InitiatorSession& session, std::size_t index)
        : session_(session), index_(index) {}

    enum class State : std::uint8_t {
        none,     ///< no mover
        wanted,   ///< asked for
        opening,  ///< has a mover that is not connected yet
        login,    ///< login PDUs go back and forth
        ready,    ///< takes commands
        closing,  ///< lost() is to come
    };

    std::size_t index() const { return index_; }
    State state() const { return state_; }
    bool ready() const { return state_ == State::ready; }

    void want() { state_ = State::wanted; }
    void attach(InitiatorDatamover& mover);
    void forget() { state_ = State::none, mover_ = nullptr, login_.reset(); }
    void close();
    /// The same, after both sides have said goodbye.
    void leave();
    InitiatorDatamover& mover() { return *mover_; }

    template <class Pdu>
    void send(const Pdu& pdu, ConstBuffer data) {
        std::array<std::byte, wire::basic_header_size> header{};
        encode(pdu, header);
        mover_->send({.header = header, .data = data});
    }

    std::size_t under_way = 0;  ///< commands it carries
    bool was_ready = false;
    Instant last_heard{};
    bool pinged = false;

    void opened() override;
    void control(const ReceivedPdu& pdu) override;
    InitiatorMoverTask* find_task(wire::InitiatorTaskTag tag) override;
    void responded(InitiatorMoverTask& task, const InitiatorAnswer& answer) override;
    void retired(InitiatorMoverTask& task) override;
    void heard(const wire::TargetNumbers& numbers, StatusCount count) override;
    std::uint32_t expected_status_number() override { return expected_status_number_; }
    void lost(std::optional<Error> why) override;

private:
    void send_login();
    void take_login(const ReceivedPdu& pdu);

    InitiatorSession& session_;
    std::size_t index_;
    State state_ = State::none;
    InitiatorDatamover* mover_ = nullptr;
    std::optional<LoginInitiator> login_;
    std::uint32_t expected_status_number_ = 0;
};

}  // namespace weft::iscsi
