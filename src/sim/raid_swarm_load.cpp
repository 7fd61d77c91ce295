// SPDX-License-Identifier: Apache-2.0
// Hosts that never rest: some read as deep as they are drawn, without a pause, while one writes
// and, perhaps, a box is rebuilt. Everybody must have his turn meanwhile.
#include <algorithm>

#include "sim/raid_swarm_work.hpp"

namespace weft::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t reads_of_a_load = 3000;
constexpr std::size_t of_a_host = 64;  ///< under way, as of node::HostDisk
constexpr std::size_t writes_max = 8;
constexpr Duration between_writes = 20ms;

}  // namespace

/// Reads of a block, each followed by another when it ends.
void RaidSwarm::keep_reading() {
    const auto depth = std::min<std::size_t>(habits_.load_depth, of_a_host * (hosts_.size() - 1));
    for (; reading_ < depth && reads_left_ > 0; --reads_left_) {
        ++reading_;
        const auto block = slowing_.below(size_ / raid::slice_size) * raid::slice_size;
        const auto host = 1 + static_cast<unsigned>(reads_left_ % (hosts_.size() - 1));
        submit(HostOperation::read, {block, raid::slice_size}, host);
        works_.back()->is_load = true;
    }
}

/// A box is back with an empty disk. False: none may be lost now.
bool RaidSwarm::begin_rebuild() {
    const auto box =
        cluster_.machine_at(static_cast<std::uint8_t>(slowing_.below(cluster_.boxes())));
    if (!habits_.load_rebuilds || !away_.empty() || !is_healthy() || !may_disturb(box) ||
        cluster_.is_any_paused())
        return false;
    say("box " + std::to_string(box) + " gets an empty disk, and is to be rebuilt");
    blame_rule_.note_harm(box);
    disturbed_.insert(box);
    cluster_.wipe(box);
    go_on_for(100ms);
    cluster_.bring(box);
    return true;
}

void RaidSwarm::bear_load() {
    if (habits_.load_depth == 0 || habits_.beyond) return;
    // How long others take says nothing of turns where machines stand still, or disks are slow.
    is_calm_ = slowing_.chance(70);
    if (is_calm_) {
        end_gray();
        go_on_for(10s);
        run_until([&] { return all_answered(); });
    }
    say("hosts read " + std::to_string(habits_.load_depth) + " deep");
    ++tally_.loads;
    const bool rebuilds = begin_rebuild();
    reads_left_ = reads_of_a_load;
    keep_reading();
    while (reads_left_ > 0 && complaints_.all().empty()) {
        const auto writing = std::ranges::count(open_, false, &Work::is_load);
        if (slowing_.chance(50) && static_cast<std::size_t>(writing) < writes_max)
            submit(HostOperation::write, draw_range(), 0);
        go_on_for(between_writes);
        look_at_rules();
        if (rebuilds && reads_left_ < reads_of_a_load / 10 && !is_healthy())
            reads_left_ += reads_of_a_load / 10;  // the load lasts as long as the rebuild
        if (works_.size() > 30 * reads_of_a_load) break;
    }
    reads_left_ = 0;
    is_calm_ = false;
}

}  // namespace weft::sim
