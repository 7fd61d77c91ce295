// SPDX-License-Identifier: Apache-2.0
// A controller's office: doubted, lost, and given back in order.
#include "node/array_address.hpp"
#include "node/controller_node.hpp"

namespace weft::node {
namespace {

/// What initiators asked for may still end in that time; then office is given back all the same.
constexpr Duration step_down_patience = std::chrono::seconds(2);
constexpr Duration step_down_look = std::chrono::milliseconds(5);

}  // namespace

/// Hosts are to look whether another is in office; what they asked for here waits, and so do they
/// if there is none.
void ControllerNode::doubted(bool doubtful) {
    if (doubtful) {
        note("", "", "the lease of its office has run out: nothing is done until it is renewed");
        return server_->hang_up_all();
    }
    note("", "", "its office is sure again");
    go_on();
}

void ControllerNode::lost_office() {
    deposed_ = true;
    note("", "", "another controller has taken office: this one changes nothing");
    // From inside whatever told us.
    world_.defer([this, alive = alive_] {
        if (!*alive) return;
        server_->stop();
        if (hear_deposed_) hear_deposed_();
    });
}

void ControllerNode::stop() {
    server_->stop();
    if (std::exchange(stepping_down_, true)) return;
    step_down_until_ = world_.now() + step_down_patience;
    step_down_when_idle();
}

void ControllerNode::step_down_when_idle() {
    events_.flush();
    if (!(server_->quiet() && events_.quiet()) && world_.now() < *step_down_until_)
        return step_down_timer_->set(world_.now() + step_down_look);
    lease_.resign([this, alive = alive_] {
        if (*alive) stepping_down_ = false;
    });
}

OfficeReport ControllerNode::office() const {
    using State = OfficeReport::State;
    OfficeReport report{.state = State::standby,
                        .epoch = epoch_,
                        .holder = "at " + written(address_),
                        .lease = options_.office.lease,
                        .left_ms = lease_.remaining_ms()};
    switch (lease_.state()) {
        case ControllerLease::State::in_office:
            report.state = lease_.holds() ? State::in_office : State::doubtful;
            break;
        case ControllerLease::State::deposed:
            report.state = State::deposed;
            break;
        case ControllerLease::State::resigned:
            report.state = State::stepped_down;
            break;
        default:
            report.epoch = lease_.rival().epoch;
            report.holder = lease_.rival().holder;
    }
    return report;
}

}  // namespace weft::node
