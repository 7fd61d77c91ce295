// SPDX-License-Identifier: Apache-2.0
#include "sim/array_swarm.hpp"

#include <algorithm>

namespace weft::sim {

using namespace std::chrono_literals;

namespace {

constexpr Duration plenty = 600s;           // of virtual time, for what must happen at last
constexpr std::uint64_t now_and_then = 16;  // steps, where somebody looks after machines

/// Often nothing, sometimes seldom, now and then all the time.
double draw_rate(Random& random, double most) {
    const double parts[] = {0, most / 8, most / 3, most};
    return parts[random.below(4)];
}

}  // namespace

struct ArraySwarm::Work final : BlockRequest {
    explicit Work(ArraySwarm& all) : swarm(all) {}
    void completed(Result<void> outcome) override {
        if (std::exchange(is_done, true)) return swarm.complaints_.add("S10: answered twice");
        swarm.answered(*this, outcome);
    }
    ArraySwarm& swarm;
    raid::Range range{};
    unsigned host = 0;
    std::vector<std::byte> octets;
    Buffer piece{};
    std::uint64_t began = 0;
    RaidLedger::WriteNumber write = 0;
    bool is_done = false;  ///< the host's disk has let go of it
    bool is_over = false;  ///< answered, or nobody is there any more to whom it matters
};

void ArraySwarm::Tally::add(const Tally& other) {
    reads += other.reads, writes += other.writes, unknown += other.unknown;
    failed += other.failed, blocks_read += other.blocks_read;
    power_cuts += other.power_cuts, link_faults += other.link_faults;
    takeovers += other.takeovers, host_deaths += other.host_deaths;
    kept_away += other.kept_away, steps += other.steps;
}

ArraySwarm::Habits::Habits(Random& random) {
    constexpr raid::Level levels[] = {raid::Level::mirror, raid::Level::raid5, raid::Level::raid6};
    machines.level = levels[random.below(3)];
    const bool mirror = machines.level == raid::Level::mirror;
    const std::uint64_t least = mirror ? 2 : machines.level == raid::Level::raid5 ? 3 : 4;
    machines.boxes = static_cast<unsigned>(random.between(least, mirror ? 3 : 6));
    machines.chunk_bytes = static_cast<std::uint32_t>(4096u << random.below(4));
    const auto stripes = random.between(3, 8);
    const auto layout = raid::Layout::make(
        machines.level, static_cast<std::uint8_t>(machines.boxes), machines.chunk_bytes);
    machines.size = stripes * layout->stripe_bytes();
    machines.hosts = static_cast<unsigned>(random.between(1, 3));
    machines.plan.topology = random.chance(50) ? raid::Topology::star : raid::Topology::binary_tree;
    machines.plan.partial = static_cast<raid::PartialWrite>(random.below(3));
    machines.hosts_over_rdma = random.chance(80);
    slices_max = random.between(1, 12);
    steps = static_cast<unsigned>(random.between(15, 40));
    cutting = random.chance(20) ? Cutting::anywhere : Cutting::whole;
    reads = static_cast<double>(random.between(10, 60));
    box_cuts = draw_rate(random, 20);
    controller_cuts = draw_rate(random, 8);
    handovers = draw_rate(random, 6);
    store_cuts = draw_rate(random, 6);
    host_deaths = draw_rate(random, 6);
    link_faults = draw_rate(random, 30);
    beyond = random.chance(30);
}

ArraySwarm::ArraySwarm(std::uint64_t seed, ArraySwarmOptions options)
    : options_(std::move(options)),
      world_(seed),
      habits_(world_.chance()),
      size_(habits_.machines.size),
      ledger_(complaints_, size_),
      commands_(habits_.machines.hosts) {
    world_.network().set_options({.cutting = habits_.cutting});
    machines_ = std::make_unique<ArrayMachines>(world_, complaints_, habits_.machines);
    machines_->on_news = [this](const std::string& what) { say(what); };
    say(to_text());
}

ArraySwarm::~ArraySwarm() = default;

std::string ArraySwarm::to_text() const {
    const auto& about = habits_.machines;
    const char* level = about.level == raid::Level::mirror  ? "mirror"
                        : about.level == raid::Level::raid5 ? "raid5"
                                                            : "raid6";
    return std::string(level) + " of " + std::to_string(about.boxes) + " boxes, chunks of " +
           std::to_string(about.chunk_bytes) + ", " + std::to_string(about.size) + " octets, " +
           std::to_string(about.hosts) + " hosts, requests of up to " +
           std::to_string(habits_.slices_max) + " blocks" +
           (habits_.beyond ? ", any number of boxes dark" : "");
}

void ArraySwarm::say(const std::string& what) const {
    if (!options_.trace) return;
    constexpr std::int64_t microsecond = 1000;
    options_.trace(std::to_string(world_.now().nanoseconds / microsecond) + " " + what);
}

void ArraySwarm::run() {
    if (machines_->set_up()) {
        say("all is set up");
        if (options_.disks_lie)
            for (const auto& [path, disk] : world_.disks())
                disk->set_flush_honesty(FlushHonesty::lies);
        for (unsigned i = 0; i < habits_.steps && complaints_.all().empty(); ++i) step();
        if (complaints_.all().empty()) lose_all_power();
        if (complaints_.all().empty()) wind_up();
    }
    tally_.steps = machines_->steps();
    tally_.blocks_read = ledger_.blocks_read();
    say("everything is switched off");
    for (auto& work : works_) work->is_over = true;
    machines_.reset();
}

void ArraySwarm::step() {
    for (auto count = world_.chance().below(4); count > 0; --count) work_a_little();
    disturb();
    // Mostly so short that much is under way; now and then long enough for leases to lapse.
    const bool is_long = chance(12);
    const Duration longest = is_long ? Duration(8s) : Duration(15ms);
    (void)run_for(world_.chance().between(Duration(0), longest));
}

bool ArraySwarm::run_for(Duration span) {
    const auto until = world_.now() + span;
    return machines_->run_until([&] { return world_.now() >= until || !complaints_.all().empty(); },
                                span + 1s);
}

unsigned ArraySwarm::spare_columns() const {
    const auto& about = habits_.machines;
    return raid::Layout::make(about.level, static_cast<std::uint8_t>(about.boxes),
                              about.chunk_bytes)
        ->spare_columns();
}

unsigned ArraySwarm::dark_boxes() const {
    unsigned dark = 0;
    for (unsigned i = 0; i < habits_.machines.boxes; ++i) dark += machines_->box_is_on(i) ? 0 : 1;
    return dark;
}

// Hosts.

raid::Range ArraySwarm::draw_range() {
    const auto slices = size_ / raid::slice_size;
    const auto first = world_.chance().below(slices);
    const auto most = std::min<std::uint64_t>(slices - first, habits_.slices_max);
    return {first * raid::slice_size, world_.chance().between(1, most) * raid::slice_size};
}

void ArraySwarm::work_a_little() {
    const auto host = static_cast<unsigned>(world_.chance().below(habits_.machines.hosts));
    if (machines_->disk_of(host) == nullptr) return;
    if (chance(habits_.flushes)) return submit(BlockOperation::flush, {}, host);
    const auto operation = chance(habits_.reads) ? BlockOperation::read : BlockOperation::write;
    submit(operation, draw_range(), host);
}

void ArraySwarm::submit(BlockOperation operation, raid::Range range, unsigned host) {
    auto& work = *works_.emplace_back(std::make_unique<Work>(*this));
    work.operation = operation;
    work.range = range;
    work.host = host;
    work.offset = range.offset;
    work.length = range.length;
    work.octets.resize(range.length);
    work.piece = work.octets;
    if (range.length > 0) work.memory = std::span(&work.piece, 1);
    work.began = machines_->steps();
    if (operation == BlockOperation::write) {
        work.write = ledger_.begin_write(host, ++commands_[host], range, work.began, work.octets);
        say("write " + std::to_string(work.write) + " at " + std::to_string(range.offset) + ", " +
            std::to_string(range.length));
    }
    machines_->disk_of(host)->submit(work);
}

void ArraySwarm::answered(Work& work, Result<void> outcome) {
    if (std::exchange(work.is_over, true)) return;
    const auto now = machines_->steps() + 1;
    if (!outcome) {
        ++tally_.failed;
        say("a request failed, code " + std::to_string(static_cast<int>(outcome.error().code)));
        if (is_ending_) complaints_.add("L1: a request failed though all is well");
        return;
    }
    if (work.operation == BlockOperation::write) {
        ++tally_.writes;
        say("answered write " + std::to_string(work.write));
        ledger_.write_answered(work.write, now);
    } else if (work.operation == BlockOperation::read) {
        ++tally_.reads;
        ledger_.read_answered(work.range, work.began, now, work.octets);
    }
}

/// Its memory is gone; what it asked for may be done or not.
void ArraySwarm::kill_host(unsigned host) {
    if (!machines_->host_is_on(host)) return;
    for (auto& work : works_) {
        if (work->host != host || std::exchange(work->is_over, true)) continue;
        ++tally_.unknown;
    }
    machines_->cut_host(host);
}

bool ArraySwarm::all_answered() const {
    return std::ranges::all_of(works_, [](const auto& work) { return work->is_over; });
}

// What goes wrong.

void ArraySwarm::disturb() {
    if (chance(habits_.box_cuts)) cut_a_box();
    if (chance(habits_.box_returns)) bring_one();
    if (chance(habits_.link_faults)) break_a_link();
    if (chance(habits_.host_deaths)) {
        const auto host = static_cast<unsigned>(world_.chance().below(habits_.machines.hosts));
        ++tally_.host_deaths;
        say("host " + std::to_string(host) + " dies");
        kill_host(host);
    }
    disturb_controllers();
}

void ArraySwarm::cut_a_box() {
    const auto box = static_cast<unsigned>(world_.chance().below(habits_.machines.boxes));
    if (!machines_->box_is_on(box)) return;
    if (!habits_.beyond && dark_boxes() >= spare_columns()) return;
    ++tally_.power_cuts;
    say("box " + std::to_string(box) + " loses power");
    machines_->cut_box(box);
}

/// Whatever is off comes on again, sooner or later; and a person looks after the boxes.
void ArraySwarm::bring_one() {
    machines_->re_add_failed();
    for (unsigned i = 0; i < ArrayMachines::controllers; ++i) machines_->start_controller(i);
    for (unsigned i = 0; i < habits_.machines.hosts; ++i) machines_->start_host(i);
    for (unsigned i = 0; i < habits_.machines.boxes; ++i) {
        if (machines_->box_is_on(i)) continue;
        say("box " + std::to_string(i) + " is on again");
        return machines_->start_box(i);
    }
}

void ArraySwarm::break_a_link() {
    auto& network = world_.network();
    const auto links = network.links();
    if (links.empty()) return;
    const auto link = links[world_.chance().below(links.size())];
    const Side side = chance(50) ? Side::connector : Side::acceptor;
    const auto until = world_.now() + world_.chance().between(Duration(0), Duration(3s));
    auto later = [&](auto action) {
        world_.clockwork().schedule.at(until, "fault ends", static_cast<std::uint64_t>(link),
                                       action);
    };
    ++tally_.link_faults;
    switch (world_.chance().below(4)) {
        case 0:
            say("a connection is reset");
            return network.reset(link);
        case 1:
            say("a connection is half open");
            return network.half_open(link, side);
        case 2:
            say("a connection is clogged");
            network.clog(link, world_.chance().between(Duration(0), Duration(200ms)));
            return later([&network, link] { network.clog(link, Duration(0)); });
        default:
            say("nothing arrives over a connection for a while");
            network.partition(link, side);
            return later([&network, link] { network.heal(link); });
    }
}

void ArraySwarm::disturb_controllers() {
    const auto which = static_cast<unsigned>(world_.chance().below(ArrayMachines::controllers));
    if (chance(habits_.controller_cuts)) {
        say("controller " + std::to_string(which) + " loses power");
        ++tally_.takeovers;
        machines_->cut_controller(which);
    }
    if (chance(habits_.handovers)) {
        say("the controller in office steps down");
        ++tally_.takeovers;
        machines_->step_down();
    }
    if (chance(habits_.store_cuts)) {
        say("controller " + std::to_string(which) + " does not reach the store");
        ++tally_.takeovers;
        machines_->reach_store(which, false);
    } else if (chance(30)) {
        for (unsigned i = 0; i < ArrayMachines::controllers; ++i) machines_->reach_store(i, true);
    }
}

// The end.

void ArraySwarm::bring_all(const std::vector<unsigned>& but) {
    for (unsigned i = 0; i < ArrayMachines::controllers; ++i) {
        machines_->reach_store(i, true);
        machines_->start_controller(i);
    }
    for (unsigned i = 0; i < habits_.machines.hosts; ++i) machines_->start_host(i);
    for (unsigned i = 0; i < habits_.machines.boxes; ++i)
        if (std::ranges::find(but, i) == but.end()) machines_->start_box(i);
}

/// The rack goes dark amid everything. As many boxes do not return at first as the code can do
/// without, those counted that were not whole then: what was answered is there all the same.
void ArraySwarm::lose_all_power() {
    say("all power is lost");
    for (unsigned i = 0; i < habits_.machines.boxes; ++i) machines_->cut_box(i);
    for (unsigned i = 0; i < ArrayMachines::controllers; ++i) machines_->cut_controller(i);
    for (unsigned i = 0; i < habits_.machines.hosts; ++i) kill_host(i);
    const auto volume = machines_->volume();
    std::vector<unsigned> away;
    if (!volume) return complaints_.add("S17: the store has no volume any more");
    unsigned may_lack = spare_columns();
    for (unsigned i = 0; i < habits_.machines.boxes; ++i)
        if (volume->members[i].state != wire::ArrayMemberState::current && may_lack > 0) --may_lack;
    for (unsigned i = 0; i < may_lack && chance(60); ++i) {
        const auto box = static_cast<unsigned>(world_.chance().below(habits_.machines.boxes));
        if (volume->members[box].state != wire::ArrayMemberState::current) continue;
        if (std::ranges::find(away, box) == away.end()) away.push_back(box);
    }
    tally_.kept_away += away.size();
    for (unsigned box : away) say("box " + std::to_string(box) + " stays dark");
    std::vector<std::byte> octets;
    const bool served = machines_->run_until(
        [&] {
            if (machines_->steps() % now_and_then == 0) bring_all(away);
            for (unsigned i = 0; i < habits_.machines.boxes; ++i)
                if (std::ranges::find(away, i) == away.end() && !machines_->box_is_on(i))
                    return false;
            return machines_->disk_of(0) != nullptr;
        },
        plenty);
    if (!served) return complaints_.add("L2: no host attaches after all power was lost");
    say("the first host is there");
    if (!read_everything(octets))
        complaints_.add("L1: reads are not answered though enough boxes have returned");
}

bool ArraySwarm::read_everything(std::vector<std::byte>& octets) {
    octets.resize(size_);
    const auto first = works_.size();
    const std::uint64_t most = 8 * raid::slice_size;
    is_ending_ = true;
    for (std::uint64_t at = 0; at < size_; at += most)
        submit(BlockOperation::read, {at, std::min(most, size_ - at)}, 0);
    if (!machines_->run_until([&] { return all_answered(); }, plenty)) return false;
    for (auto i = first; i < works_.size(); ++i)
        std::ranges::copy(works_[i]->octets,
                          octets.begin() + static_cast<std::ptrdiff_t>(works_[i]->range.offset));
    return true;
}

void ArraySwarm::wind_up() {
    say("the rest returns");
    const bool healthy = machines_->run_until(
        [&] {
            if (machines_->steps() % now_and_then != 0) return false;
            bring_all({});
            const auto status = machines_->status();
            if (status.state == raid::VolumeState::healthy) return true;
            for (const auto& member : status.members)
                if (member.failed) machines_->re_add_failed();
            return false;
        },
        plenty);
    if (!healthy)
        return complaints_.add("L3: the volume does not become whole, though all boxes are there");
    look_at_everything();
}

void ArraySwarm::look_at_everything() {
    std::vector<std::byte> final;
    if (!read_everything(final)) return complaints_.add("L1: the last reads are not answered");
    ledger_.check(final, {}, true);
    if (!machines_->scrub()) return;
    if (!machines_->run_until([&] { return !machines_->status().scrub.running; }, plenty))
        return complaints_.add("L4: a scrub does not end");
    const auto scrub = machines_->status().scrub;
    if (scrub.mismatches != 0 || scrub.unchecked != 0 || scrub.done != scrub.to_do)
        complaints_.add("S5: a scrub finds " + std::to_string(scrub.mismatches) + " mismatches, " +
                        std::to_string(scrub.unchecked) + " stripes unchecked");
}

}  // namespace weft::sim
