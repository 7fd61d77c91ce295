// SPDX-License-Identifier: Apache-2.0
// What a machine of a simulated volume has of the network: a software RNIC, the production links to
// the other parties and the memory they reach, as boxes, controllers and hosts have them. All of it
// is of one life of the machine: after a loss of power there is another.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/array_links.hpp"
#include "node/box_windows.hpp"
#include "sim/raid_agenda.hpp"
#include "sim/rdma_memory_model.hpp"

namespace weft::sim {

/// A machine's RNIC and its links.
class RaidStation {
public:
    RaidStation(RaidAgenda& agenda, const std::string& machine);
    ~RaidStation() { close(); }
    /// Before the memory and the transfers that are its links' go.
    void close();

    Host& host() { return host_; }
    node::ArrayLinks& links() { return *links_; }
    Address where() const { return Address::tcp(host_.name(), port); }
    /// Nothing of it is ever heard of again.
    void power_cut() { host_.power_cut(); }

private:
    static constexpr std::uint16_t port = 7174;

    Host& host_;
    std::unique_ptr<verbs::Device> device_;
    std::unique_ptr<node::ArrayLinks> links_;
    std::unique_ptr<Listener> listener_;
};

/// The links as a box or a controller uses them, watched: what is under way is counted, and what a
/// box fetches from another may be damaged.
class RaidTransfers final : public raid::PeerTransfers {
public:
    explicit RaidTransfers(RaidAgenda& agenda) : agenda_(agenda) {}
    ~RaidTransfers() { vanish(); }

    void go_over(node::ArrayLinks& links) { links_ = &links; }
    void fetch(raid::PeerTransfer& transfer) override { begin(transfer, true); }
    void send(raid::PeerTransfer& transfer) override { begin(transfer, false); }
    /// The machine is off: whoever asked for a transfer never hears of it.
    void vanish();
    /// A mutation: all that is under way with this peer fails, whatever the links would do.
    void lose(const wire::ArrayConnectionEnd& peer);

    /// One octet of what is fetched from a box is wrong, and nobody on the way sees it.
    bool is_damaged = false;
    std::optional<std::uint32_t> damaged_key;  ///< the same, of windows open under this key
    std::uint64_t operations = 0, octets = 0;  ///< begun, and moved

private:
    struct Watched final : raid::PeerTransfer {
        void completed(Result<void> outcome) override { all->completed(*this, outcome); }
        RaidTransfers* all = nullptr;
        raid::PeerTransfer* asked = nullptr;  ///< none: nobody hears it
        bool fetches = false;
        std::vector<std::byte> elsewhere;  ///< for what comes when it has been lost
        std::list<Watched>::iterator place;
    };

    void begin(raid::PeerTransfer& transfer, bool fetches);
    void completed(Watched& watched, Result<void> outcome);
    bool takes_damage(const Watched& watched);

    RaidAgenda& agenda_;
    node::ArrayLinks* links_ = nullptr;
    std::list<Watched> under_way_;
};

/// The production windows; opening one may be refused.
class RaidWindows final : public raid::StagingMemory {
public:
    static constexpr std::uint16_t count = 4;

    RaidWindows(node::ArrayLinks& links, std::uint32_t bytes, std::uint16_t windows = count);

    std::uint32_t windows() const override { return windows_->windows(); }
    std::uint32_t window_limit() const override { return windows_->window_limit(); }
    Result<Buffer> open(std::uint32_t window, SteeringTag tag, std::uint32_t length) override;
    void close(std::uint32_t window) override;
    Buffer landing(std::uint32_t window) override { return windows_->landing(window); }

    SteeringTag tag_of(std::uint32_t window) const { return windows_->tag_of(window); }
    bool any_open() const { return !open_.empty(); }

    unsigned refusals = 0;      ///< so many of the next to open are refused
    std::uint64_t refused = 0;  ///< so many were, for this or another reason

private:
    std::unique_ptr<node::BoxWindows> windows_;
    std::set<std::uint32_t> open_;
};

}  // namespace weft::sim
