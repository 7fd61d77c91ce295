// SPDX-License-Identifier: Apache-2.0
// A disk whose writes wait while there is no room for them, and are done when there is: a file
// system that is full is no disk that has failed. Reads go on meanwhile. Part of it may be
// excepted, of which whoever asks can be told, and asks again.
//
// Flushes do not wait: if there was no room for what was written before, it may be lost by then,
// and a second flush would not know. So a disk below must not say `exhausted` of a durable write
// that it has written and could not make lasting.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "block/relay_filter.hpp"
#include "weft/world.hpp"

namespace weft::block {

class PatientFilter final : public RelayFilter {
public:
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };

    PatientFilter(BlockDevice& below, World& world);

    /// Not so at first: who asks is told `exhausted`.
    void be_patient() { be_patient(Range{}); }
    void be_patient(Range but_for);
    /// All that wait are told so now, and all that come.
    void give_up();
    /// Something waits for room, or was refused and has not been done since.
    bool is_full() const { return !waiting_.empty() || refused_at_; }
    /// When that begins, and when it ends.
    void on_change(std::function<void(bool full)> hear) { hear_ = std::move(hear); }

    void submit(BlockRequest& request) override;

private:
    struct Waiting {
        BlockRequest* copy = nullptr;
        bool is_below = false;
    };

    bool waits(const BlockRequest& request) const;
    bool keeps(BlockRequest& copy, const Result<void>& outcome) override;
    void note_wait(BlockRequest& copy);
    void note_end(const BlockRequest& copy, const Result<void>& outcome);
    void send_again();

    World& world_;
    std::vector<Waiting> waiting_;
    std::optional<std::uint64_t> refused_at_;
    std::unique_ptr<Timer> timer_;
    std::function<void(bool)> hear_;
    bool patient_ = false;
    Range but_for_{};
};

}  // namespace weft::block
