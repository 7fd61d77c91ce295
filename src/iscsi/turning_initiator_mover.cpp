// SPDX-License-Identifier: Apache-2.0
#include "iscsi/turning_initiator_mover.hpp"

#include <algorithm>

namespace weft::iscsi {

void TurningInitiatorMover::begin_full_feature(const ConnectionTerms& terms) {
    if (!terms.rdma_extensions) return tcp_.begin_full_feature(terms);
    terms_ = terms;
    turning_ = true;
    tcp_.release_when_sent([this](std::unique_ptr<Stream> stream) { turn(std::move(stream)); });
}

void TurningInitiatorMover::turn(std::unique_ptr<Stream> stream) {
    auto made = iser_maker_.switch_over(std::move(stream), *this, terms_);
    if (made) {
        iser_ = std::move(*made);
        return;
    }
    world_.defer([this, alive = alive_, why = made.error()] {
        if (*alive) user_.lost(why);
    });
}

/// Of TCP: log in. Of iSER: the login is long over.
void TurningInitiatorMover::opened() {
    if (!turning_) return user_.opened();
    turning_ = false;
    for (; !kept_.empty(); kept_.pop_front())
        iser_->send({.header = kept_.front().header, .data = kept_.front().data});
    for (auto* task : std::exchange(tasks_, {})) iser_->start(*task);
    if (closes_when_turned_) iser_->close_when_sent();
}

void TurningInitiatorMover::send(const ControlPdu& pdu) {
    if (!turning_) return now().send(pdu);
    kept_.push_back({.header = {pdu.header.begin(), pdu.header.end()},
                     .data = {pdu.data.begin(), pdu.data.end()}});
}

void TurningInitiatorMover::start(InitiatorMoverTask& task) {
    turning_ ? tasks_.push_back(&task) : now().start(task);
}

void TurningInitiatorMover::abandon(InitiatorMoverTask& task) {
    if (!turning_) return now().abandon(task);
    if (std::erase(tasks_, &task) > 0) user_.retired(task);
}

void TurningInitiatorMover::close_when_sent() {
    if (!turning_) return now().close_when_sent();
    closes_when_turned_ = true;
}

}  // namespace weft::iscsi
