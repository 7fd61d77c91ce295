// SPDX-License-Identifier: Apache-2.0
// RDMA where messages are function calls: memory is reached by steering tag and no other way, and a
// tag that is no more reaches nothing (S11).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "raid/staging.hpp"
#include "sim/raid_disk.hpp"
#include "sim/rdma_memory_model.hpp"

namespace weft::sim {

using RaidTags = std::map<SteeringTag, Buffer>;

/// Tags of windows: whose it is, and of which transaction.
constexpr std::uint32_t turns = 0x100'0000;
constexpr std::uint32_t turn_of(SteeringTag tag) {
    return static_cast<std::uint32_t>(tag) % turns;
}

class RaidTransfers final : public raid::PeerTransfers {
public:
    RaidTransfers(RaidAgenda& agenda, RaidTags& tags) : agenda_(agenda), tags_(tags) {}
    void fetch(raid::PeerTransfer& transfer) override { begin(transfer, true); }
    void send(raid::PeerTransfer& transfer) override { begin(transfer, false); }
    /// The machine is off: what it asked for it never hears of, and it changes nothing any more.
    void vanish() { *alive_ = false; }

    bool is_held() const { return is_held_; }
    /// What is under way comes late: when it is let go.
    void hold(bool held) {
        is_held_ = held;
        if (held) return;
        for (const auto& [transfer, fetches] : std::exchange(held_, {}))
            agenda_.later([this, to = transfer, how = fetches, alive = alive_] {
                if (*alive) to->completed(perform(*to, how));
            });
    }

    std::optional<wire::BoxIdentity> out_of_reach;
    std::set<wire::BoxIdentity> cut_off;  ///< boxes, and hosts by what their memory says they are
    /// One octet of what is fetched from a box is wrong, and nobody on the way sees it.
    bool is_damaged = false;
    std::optional<std::uint32_t> damaged_turn;  ///< the same, of what windows of this turn hold
    std::uint64_t operations = 0, octets = 0;   ///< begun, and moved

private:
    void begin(raid::PeerTransfer& transfer, bool fetches) {
        ++operations;
        agenda_.later([this, &transfer, fetches, alive = alive_] {
            if (!*alive) return;
            if (is_held_) return held_.push_back({&transfer, fetches});
            transfer.completed(perform(transfer, fetches));
        });
    }
    bool takes_damage(SteeringTag tag) {
        if (damaged_turn != turn_of(tag)) return std::exchange(is_damaged, false);
        damaged_turn.reset();
        return true;
    }
    Result<void> perform(raid::PeerTransfer& transfer, bool fetches) {
        if (transfer.peer.party.kind == raid::PartyKind::box &&
            transfer.peer.identity == out_of_reach)
            return Error{Code::disconnected};
        if (!cut_off.empty() && cut_off.contains(transfer.peer.identity))
            return Error{Code::disconnected};
        const auto found = tags_.find(transfer.peer.tag);
        const auto at = transfer.peer.base + transfer.at;
        if (found == tags_.end() || at > found->second.size() ||
            found->second.size() - at < transfer.memory.size())
            return Error{Code::access_denied};
        octets += transfer.memory.size();
        auto there = found->second.subspan(at, transfer.memory.size());
        if (!fetches) return std::ranges::copy(transfer.memory, there.begin()), Result<void>{};
        std::ranges::copy(there, transfer.memory.begin());
        if (transfer.peer.party.kind == raid::PartyKind::box && takes_damage(transfer.peer.tag))
            transfer.memory[transfer.memory.size() / 2] ^= std::byte{4};
        return {};
    }
    RaidAgenda& agenda_;
    struct Held {
        raid::PeerTransfer* transfer;
        bool fetches;
    };

    RaidTags& tags_;
    std::vector<Held> held_;
    bool is_held_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class RaidWindows final : public raid::StagingMemory {
public:
    static constexpr std::uint32_t count = 4;  ///< of a box

    RaidWindows(RaidTags& tags, Complaints& complaints, std::uint32_t windows)
        : tags_(tags),
          complaints_(complaints),
          memory_(windows),
          landings_(windows),
          open_(windows) {}
    std::uint32_t windows() const override { return static_cast<std::uint32_t>(open_.size()); }
    std::uint32_t window_limit() const override { return 1 << 20; }
    Result<Buffer> open(std::uint32_t window, SteeringTag tag, std::uint32_t length) override {
        if (refusals > 0) return --refusals, Error{Code::exhausted};
        if (tags_.contains(tag)) complaints_.add("S11: a tag is given out twice");
        memory_[window].emplace(length);
        open_[window] = tag;
        return tags_[tag] = memory_[window]->all();
    }
    void close(std::uint32_t window) override {
        if (open_[window]) tags_.erase(*open_[window]);
        open_[window].reset();
    }
    Buffer landing(std::uint32_t window) override {
        if (!landings_[window]) landings_[window].emplace(landing_size);
        return landings_[window]->all();
    }
    void vanish() {
        for (std::uint32_t window = 0; window < windows(); ++window) close(window);
    }
    unsigned refusals = 0;  ///< so many of the next to open are refused

private:
    RaidTags& tags_;
    Complaints& complaints_;
    std::vector<std::optional<RaidMemory>> memory_, landings_;
    std::vector<std::optional<SteeringTag>> open_;
};

}  // namespace weft::sim
