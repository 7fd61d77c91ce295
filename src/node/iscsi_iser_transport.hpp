// SPDX-License-Identifier: Apache-2.0
// An initiator's connections by RDMA. Either it comes first and the login goes inside Sends, as all
// targets in use have it; or the login goes over TCP and the connection turns to RDMA if the target
// can, as RFC 7145 has it, and stays plain iSCSI if it cannot.
#pragma once

#include "iscsi/turning_initiator_mover.hpp"
#include "node/iscsi_initiator.hpp"

namespace weft::node {

class IscsiIserTransport final : public IscsiTransport {
public:
    IscsiIserTransport(World& world, const iscsi::IserInitiator::Options& options)
        : initiator_(world, options) {}

    Result<std::unique_ptr<iscsi::InitiatorDatamover>> connect(
        const Address& address, iscsi::InitiatorDatamoverUser& user) override {
        return initiator_.connect(address, user);
    }

private:
    iscsi::IserInitiator initiator_;
};

class IscsiTurningTransport final : public IscsiTransport {
public:
    IscsiTurningTransport(World& world, const iscsi::IserInitiator::Options& options)
        : world_(world), initiator_(world, options) {}

    Result<std::unique_ptr<iscsi::InitiatorDatamover>> connect(
        const Address& address, iscsi::InitiatorDatamoverUser& user) override {
        auto mover = std::make_unique<iscsi::TurningInitiatorMover>(world_, initiator_, user);
        WEFT_TRY(auto stream, world_.connect(address, mover->tcp()));
        mover->tcp().own(std::move(stream));
        return std::unique_ptr<iscsi::InitiatorDatamover>(std::move(mover));
    }

private:
    World& world_;
    iscsi::IserInitiator initiator_;
};

}  // namespace weft::node
