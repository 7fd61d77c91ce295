// SPDX-License-Identifier: Apache-2.0
// Notices that the device below hangs: that a request has been with it for longer than it may take.
// Nothing can be done for the request, whose memory the device may still write to; but whoever
// waits for it can be told that this disk has failed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "block/filter.hpp"
#include "block/limits.hpp"
#include "block/request_queue.hpp"
#include "weft/world.hpp"

namespace weft::block {

class HangFilter final : public Filter {
public:
    HangFilter(BlockDevice& below, World& world, Duration patience);
    ~HangFilter() override;

    /// When a request has taken too long, and when none has any more.
    void on_change(std::function<void(bool hangs)> hear) { hear_ = std::move(hear); }
    bool hangs() const { return hangs_; }
    Duration patience() const { return patience_; }

    void submit(BlockRequest& request) override;

private:
    /// A place: a copy while it is below, else one of the free.
    class Copy final : public BlockRequest {
    public:
        void take(HangFilter& filter, BlockRequest& original, Instant now);
        void completed(Result<void> outcome) override;

        std::optional<Instant> since;  ///< it is below

    private:
        HangFilter* filter_ = nullptr;
        BlockRequest* original_ = nullptr;
    };

    void send_down(BlockRequest& request);
    void come_back(Copy& copy, BlockRequest& original, Result<void> outcome);
    void look();

    World& world_;
    Duration patience_;
    std::vector<Copy> places_;
    RequestQueue free_;
    RequestQueue waiting_;
    std::size_t below_count_ = 0;
    std::unique_ptr<Timer> timer_;
    bool looking_ = false;
    bool sending_ = false;
    bool hangs_ = false;
    std::function<void(bool)> hear_;
};

}  // namespace weft::block
