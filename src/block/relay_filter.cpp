// SPDX-License-Identifier: Apache-2.0
#include "block/relay_filter.hpp"

namespace weft::block {

RelayFilter::RelayFilter(BlockDevice& below, std::size_t places) : Filter(below), places_(places) {
    WEFT_CHECK(places > 0);
    for (auto& place : places_) free_.push_back(place);
}

RelayFilter::~RelayFilter() {
    WEFT_CHECK(below_count_ == 0 && waiting_.empty());
}

void RelayFilter::submit(BlockRequest& request) {
    if (auto allowed = admit(request); !allowed) {
        coming_back(request, allowed);
        request.completed(allowed);
    } else if (sending_ || !waiting_.empty() || free_.empty()) {
        waiting_.push_back(request);
    } else {
        send_down(request);
    }
}

void RelayFilter::send_down(BlockRequest& request) {
    auto& copy = static_cast<Copy&>(free_.pop_front());
    copy.take(*this, request);
    ++below_count_;
    going_down(copy);
    below().submit(copy);
}

/// Those that wait take the places that came free. The device below may complete them at once;
/// they then join no second loop, so the stack does not grow with the line.
void RelayFilter::send_down_waiting() {
    if (sending_) return;
    sending_ = true;
    while (!waiting_.empty() && !free_.empty()) send_down(waiting_.pop_front());
    sending_ = false;
}

void RelayFilter::come_back(Copy& copy, BlockRequest& original, Result<void> outcome) {
    original.extent_count = copy.extent_count;
    coming_back(original, outcome);
    --below_count_;
    free_.push_back(copy);
    send_down_waiting();
    original.completed(outcome);
}

void RelayFilter::Copy::take(RelayFilter& filter, BlockRequest& original) {
    BlockRequest::operator=(original);
    next = nullptr;
    filter_ = &filter;
    original_ = &original;
}

void RelayFilter::Copy::completed(Result<void> outcome) {
    if (filter_->keeps(*this, outcome)) return;
    filter_->come_back(*this, *original_, outcome);
}

}  // namespace weft::block
