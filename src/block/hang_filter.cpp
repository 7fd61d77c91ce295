// SPDX-License-Identifier: Apache-2.0
#include "block/hang_filter.hpp"

#include <algorithm>

namespace weft::block {

HangFilter::HangFilter(BlockDevice& below, World& world, Duration patience)
    : Filter(below),
      world_(world),
      patience_(patience),
      places_(hang_places),
      timer_(world.make_timer([this] { look(); })) {
    for (auto& place : places_) free_.push_back(place);
}

HangFilter::~HangFilter() {
    WEFT_CHECK(below_count_ == 0 && waiting_.empty());
}

void HangFilter::submit(BlockRequest& request) {
    if (sending_ || !waiting_.empty() || free_.empty()) return waiting_.push_back(request);
    send_down(request);
}

void HangFilter::send_down(BlockRequest& request) {
    auto& copy = static_cast<Copy&>(free_.pop_front());
    copy.take(*this, request, world_.now());
    ++below_count_;
    // One look for many requests: it is set anew when it comes, and not for each of them.
    if (!std::exchange(looking_, true)) timer_->set(*copy.since + patience_);
    below().submit(copy);
}

void HangFilter::come_back(Copy& copy, BlockRequest& original, Result<void> outcome) {
    original.extent_count = copy.extent_count;
    copy.since.reset();
    --below_count_;
    free_.push_back(copy);
    if (!std::exchange(sending_, true)) {
        while (!waiting_.empty() && !free_.empty()) send_down(waiting_.pop_front());
        sending_ = false;
    }
    if (hangs_) {
        timer_->set(world_.now());  // it answers again, perhaps
    } else if (below_count_ == 0 && std::exchange(looking_, false)) {
        timer_->cancel();
    }
    original.completed(outcome);
}

/// Whether the oldest request has taken too long; and when it will have, if not.
void HangFilter::look() {
    looking_ = false;
    std::optional<Instant> oldest;
    for (const auto& place : places_)
        if (place.since) oldest = std::min(oldest.value_or(*place.since), *place.since);
    const bool hung = oldest && world_.now() - *oldest >= patience_;
    if (oldest && !hung) {
        looking_ = true;
        timer_->set(*oldest + patience_);
    }
    if (std::exchange(hangs_, hung) != hung && hear_) hear_(hung);
}

void HangFilter::Copy::take(HangFilter& filter, BlockRequest& original, Instant now) {
    BlockRequest::operator=(original);
    next = nullptr;
    since = now;
    filter_ = &filter;
    original_ = &original;
}

void HangFilter::Copy::completed(Result<void> outcome) {
    filter_->come_back(*this, *original_, outcome);
}

}  // namespace weft::block
