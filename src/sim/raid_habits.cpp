// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_habits.hpp"

#include <iterator>

namespace weft::sim {

namespace {

/// Often nothing, sometimes seldom, now and then all the time.
double draw_rate(Random& random, double most) {
    switch (random.below(4)) {
        case 0:
            return 0;
        case 1:
            return most / 8;
        case 2:
            return most / 3;
        default:
            return most;
    }
}

}  // namespace

RaidHabits::RaidHabits(Random& random, wire::ArrayConsistency kept, bool exceeds)
    : consistency(kept), beyond(exceeds) {
    constexpr raid::Level levels[] = {raid::Level::mirror, raid::Level::raid5, raid::Level::raid6};
    level = levels[random.below(3)];
    const std::uint64_t least = level == raid::Level::mirror  ? 2
                                : level == raid::Level::raid5 ? 3
                                                              : 4;
    boxes = static_cast<std::uint8_t>(random.between(least, level == raid::Level::mirror ? 3 : 6));
    chunk_bytes = static_cast<std::uint32_t>(4096u << random.below(3));
    stripes = random.between(3, 8);
    (void)random.next();  // once drawn for what draw_more() draws now
    hosts = static_cast<unsigned>(random.between(1, 3));
    steps = static_cast<unsigned>(random.between(20, 60));
    slices_max = random.between(1, 12);
    plan.topology = random.chance(50) ? raid::Topology::star : raid::Topology::binary_tree;
    const bool in_paper_style = random.chance(20);
    plan.partial = static_cast<raid::PartialWrite>(random.below(3));
    reads = static_cast<double>(random.between(10, 70));
    in_band = draw_rate(random, 40);
    session_cuts = draw_rate(random, 15);
    power_cuts = draw_rate(random, 15);
    takeovers = draw_rate(random, 10);
    (void)random.next();  // the same
    refusals = draw_rate(random, 10);
    slow_boxes = draw_rate(random, 8);
    store_errors = draw_rate(random, 5);
    const bool has_journal = consistency == wire::ArrayConsistency::journal;
    disk_errors = draw_rate(random, 3);
    const double host_losses = draw_rate(random, 4);
    for (int i = 0; i < 3; ++i) (void)random.next();  // the same
    if (!has_journal && beyond) disk_errors = 0;  // a write given up half done is the write hole
    // In the paper's style a box commits by several orders, none of which it would know again: one
    // whose answer is lost with a session, while as many boxes are away as may be, is a write hole.
    if (!has_journal && in_paper_style && !beyond) plan.style = raid::Style::paper;
    if (has_journal) host_deaths = host_losses;  // else nothing keeps what these would break
}

void RaidHabits::draw_more(Random random) {
    spares = static_cast<unsigned>(random.below(3));
    box_links = draw_rate(random, 8);
    host_links = draw_rate(random, 8);
    scrubs = draw_rate(random, 8);
    replacements = draw_rate(random, 6);
    wipes = draw_rate(random, 6);
    full_disks = draw_rate(random, 4);
    const auto blocks = random.between(usual_ring, 128);
    const double lateness = draw_rate(random, 80), strikes = draw_rate(random, 6);
    const double blocks_rot = draw_rate(random, 12), checksums_rot = draw_rate(random, 6);
    const double copies_rot = draw_rate(random, 6), losses = draw_rate(random, 8);
    const double strays = draw_rate(random, 8), spoiled = draw_rate(random, 6);
    const double outages = draw_rate(random, 4);
    late_transfers = draw_rate(random, 30);
    hurry = draw_rate(random, 30);
    double copies_put_back = draw_rate(random, 15);
    if (beyond) replacements = wipes = copies_put_back = 0;  // who is needed is not thrown away
    if (consistency != wire::ArrayConsistency::journal) return;
    journal_blocks = blocks;
    late_repeats = lateness;
    disasters = strikes;
    rot = blocks_rot;
    checksum_rot = checksums_rot;
    superblock_rot = copies_rot;
    lost_writes = losses;
    misdirected_writes = strays;
    damage = spoiled;
    blackouts = outages;
    put_backs = copies_put_back;
}

/// Of a small ring the largest request takes more than half of what is for records.
void RaidHabits::draw_room(Random random, bool small_rings) {
    constexpr std::uint64_t smallest_ring = 40;
    full_file_systems = draw_rate(random, 12);
    const auto blocks = random.between(smallest_ring, usual_ring);
    if (small_rings && random.chance(40) && consistency == wire::ArrayConsistency::journal)
        journal_blocks = blocks;
}

void RaidHabits::draw_gray(Random random) {
    stripes = random.between(6, 20);
    hosts = static_cast<unsigned>(random.between(2, 4));
    pauses = draw_rate(random, 15);
    controller_pauses = draw_rate(random, 6);
    host_pauses = draw_rate(random, 6);
    long_pauses = draw_rate(random, 3);
    slow_disks = draw_rate(random, 10);
    crowded_lines = draw_rate(random, 20);
    clogs = draw_rate(random, 10);
    resets = draw_rate(random, 25);
    bursts = draw_rate(random, 10);
    constexpr unsigned depths[] = {0, 0, 16, 64, 128, 256};
    load_depth = depths[random.below(std::size(depths))];
    load_rebuilds = random.chance(50);
}

void RaidHabits::leave_only_gray() {
    session_cuts = power_cuts = takeovers = host_deaths = disk_errors = refusals = 0;
    slow_boxes = store_errors = late_repeats = late_transfers = 0;
    replacements = wipes = full_disks = box_links = host_links = 0;
    rot = checksum_rot = superblock_rot = lost_writes = misdirected_writes = damage = 0;
    blackouts = put_backs = disasters = full_file_systems = long_pauses = 0;
}

std::string RaidHabits::to_text() const {
    const char* what = level == raid::Level::mirror  ? "mirror"
                       : level == raid::Level::raid5 ? "raid5"
                                                     : "raid6";
    return std::string(what) + " of " + std::to_string(boxes) + " boxes, chunks of " +
           std::to_string(chunk_bytes) + ", " + std::to_string(stripes) + " stripes, " +
           (consistency == wire::ArrayConsistency::journal ? "journal" : "no journal") + ", " +
           std::to_string(hosts) + " hosts, requests of up to " + std::to_string(slices_max) +
           " blocks";
}

}  // namespace weft::sim
