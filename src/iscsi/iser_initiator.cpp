// SPDX-License-Identifier: Apache-2.0
#include "iscsi/iser_initiator.hpp"

#include "iscsi/iser_initiator_mover.hpp"

namespace weft::iscsi {

IserInitiator::IserInitiator(World& world, const Options& options)
    : world_(world), options_(options), device_(verbs::make_device(world, {})) {}

Result<std::unique_ptr<InitiatorDatamover>> IserInitiator::connect(const Address& address,
                                                                   InitiatorDatamoverUser& user) {
    WEFT_TRY(auto mover, IserInitiatorMover::make(world_, *device_, options_.tasks_max,
                                                  options_.checksums, user));
    if (auto begun = mover->connect(address); !begun) return begun.error();
    return std::unique_ptr<InitiatorDatamover>(std::move(mover));
}

Result<std::unique_ptr<InitiatorDatamover>> IserInitiator::switch_over(
    std::unique_ptr<Stream> stream, InitiatorDatamoverUser& user, const ConnectionTerms& terms) {
    WEFT_TRY(auto mover,
             IserInitiatorMover::make(world_, *device_, terms.tasks_max, options_.checksums, user));
    mover->begin_full_feature(terms);
    if (auto begun = mover->connect_over(std::move(stream)); !begun) return begun.error();
    return std::unique_ptr<InitiatorDatamover>(std::move(mover));
}

}  // namespace weft::iscsi
