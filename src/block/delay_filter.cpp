// SPDX-License-Identifier: Apache-2.0
#include "block/delay_filter.hpp"

#include <algorithm>

namespace weft::block {

DelayFilter::DelayFilter(BlockDevice& below, World& world, Duration delay)
    : Filter(below),
      world_(world),
      delay_(std::max(delay, Duration::zero())),
      timer_(world.make_timer([this] { pass_on(); })) {}

DelayFilter::~DelayFilter() {
    WEFT_CHECK(held_.empty() && waiting_.empty());
}

void DelayFilter::submit(BlockRequest& request) {
    if (held_.full())
        waiting_.push_back(request);
    else
        hold(request);
}

void DelayFilter::hold(BlockRequest& request) {
    held_.push_back({&request, world_.now() + delay_});
    if (held_.size() == 1) timer_->set(held_.front().due);
}

/// Passes on the oldest if it is due, and has the timer call again for the next. Submitting comes
/// last, since whoever hears the completion may submit more.
void DelayFilter::pass_on() {
    if (held_.empty()) return;
    auto oldest = held_.front();
    if (oldest.due <= world_.now()) {
        held_.pop_front();
        if (!waiting_.empty()) hold(waiting_.pop_front());
    } else {
        oldest.request = nullptr;
    }
    if (!held_.empty()) timer_->set(held_.front().due);
    if (oldest.request) below().submit(*oldest.request);
}

}  // namespace weft::block
