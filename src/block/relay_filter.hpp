// SPDX-License-Identifier: Apache-2.0
// A filter that sends requests down in its own name: as copies, which it may change, and whose
// outcome it hears first.
//
// The copies are made in a fixed number of places. When all are taken, requests wait in line and
// go down in the order they came, so nothing is allocated per request. A maker hears its outcome
// as the last thing the filter does: it may destroy the filter then, if all else has completed.
#pragma once

#include <vector>

#include "block/filter.hpp"
#include "block/limits.hpp"
#include "block/request_queue.hpp"

namespace weft::block {

class RelayFilter : public Filter {
public:
    RelayFilter(BlockDevice& below, std::size_t places);
    ~RelayFilter() override;

    void submit(BlockRequest& request) override;

protected:
    /// Whether the request may go down; else it completes with this error.
    virtual Result<void> admit(const BlockRequest& /*request*/) { return {}; }
    /// May change what goes down.
    virtual void going_down(BlockRequest& /*copy*/) {}
    /// True: the copy that came back so is kept, and sent down again later.
    virtual bool keeps(BlockRequest& /*copy*/, const Result<void>& /*outcome*/) { return false; }
    /// The request is about to complete with this outcome.
    virtual void coming_back(const BlockRequest& /*request*/, const Result<void>& /*outcome*/) {}

private:
    /// A place: a copy while it is below, else one of the free.
    class Copy final : public BlockRequest {
    public:
        void take(RelayFilter& filter, BlockRequest& original);
        void completed(Result<void> outcome) override;

    private:
        RelayFilter* filter_ = nullptr;
        BlockRequest* original_ = nullptr;
    };

    void send_down(BlockRequest& request);
    void send_down_waiting();
    void come_back(Copy& copy, BlockRequest& original, Result<void> outcome);

    std::vector<Copy> places_;
    RequestQueue free_;
    RequestQueue waiting_;
    std::size_t below_count_ = 0;
    bool sending_ = false;
};

}  // namespace weft::block
