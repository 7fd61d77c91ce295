// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_swarm.hpp"

#include <algorithm>

namespace weft::sim {

using raid::HostOperation;

namespace {

constexpr std::uint64_t plenty = 200'000;  // steps of the agenda

}  // namespace

struct RaidSwarm::Attempt final : raid::HostRequest {
    Attempt(RaidSwarm& all, Work& about) : swarm(all), work(about), epoch(all.cluster_.epoch()) {}
    void completed(Result<void> outcome) override {
        if (std::exchange(is_over, true)) return swarm.complaints_.add("S10: answered twice");
        swarm.answered(work, *this, outcome);
    }
    RaidSwarm& swarm;
    Work& work;
    std::uint64_t epoch;
    bool is_over = false;
};

struct RaidSwarm::Work {
    HostOperation operation{};
    raid::Range range{};
    unsigned host = 0;
    std::uint64_t command = 0;
    bool durable = false, in_band = false;
    std::vector<std::byte> octets;
    SteeringTag tag{};
    std::uint64_t began = 0;
    RaidLedger::WriteNumber write = 0;
    std::vector<std::unique_ptr<Attempt>> attempts;  ///< only the last one's answer counts
    bool is_over = false;
};

void RaidSwarm::Tally::add(const Tally& other) {
    reads += other.reads, writes += other.writes, unknown += other.unknown;
    failed += other.failed, blocks_read += other.blocks_read;
    session_cuts += other.session_cuts, power_cuts += other.power_cuts;
    takeovers += other.takeovers, disk_errors += other.disk_errors;
    host_deaths += other.host_deaths, rebuilds += other.rebuilds;
    steps += other.steps, stops += other.stops;
}

RaidSwarm::RaidSwarm(std::uint64_t seed, RaidSwarmOptions options)
    : options_(std::move(options)),
      agenda_(seed),
      habits_(agenda_.random, options_.consistency, options_.beyond),
      cluster_(agenda_, complaints_, habits_, options_.mutation),
      size_(habits_.stripes * cluster_.layout().stripe_bytes()),
      ledger_(complaints_, size_),
      hosts_(habits_.hosts) {
    for (unsigned i = 0; i < hosts_.size(); ++i) hosts_[i].number = i;
    cluster_.on_event = [this](const raid::VolumeEvent& event) {
        if (event.kind == raid::VolumeEventKind::rebuild_began) ++tally_.rebuilds;
        if (event.kind == raid::VolumeEventKind::stopped) ++tally_.stops;
        // Where two do not reach each other, data is meant to go by way of the controller.
        detours_ = detours_ || event.kind == raid::VolumeEventKind::link_broken ||
                   event.kind == raid::VolumeEventKind::host_cut_off;
        say(raid::to_text(event.kind) +
            (event.place ? ", place " + std::to_string(*event.place) : ""));
    };
    say(habits_.to_text());
}

RaidSwarm::~RaidSwarm() = default;

void RaidSwarm::say(const std::string& what) {
    if (options_.trace) options_.trace(std::to_string(agenda_.steps()) + " " + what);
}

void RaidSwarm::run() {
    for (unsigned i = 0; i < habits_.steps && complaints_.all().empty(); ++i) step();
    if (complaints_.all().empty()) wind_up();
    tally_.steps = agenda_.steps();
    tally_.blocks_read = ledger_.blocks_read();
}

void RaidSwarm::step() {
    for (auto count = agenda_.random.below(4); count > 0; --count) work_a_little();
    disturb();
    go_on(agenda_.random.below(60));
    cluster_.check_epochs();
}

// Hosts.

raid::Range RaidSwarm::draw_range() {
    const auto slices = size_ / raid::slice_size;
    const auto first = agenda_.random.below(slices);
    const auto most = std::min<std::uint64_t>(slices - first, habits_.slices_max);
    return {first * raid::slice_size, agenda_.random.between(1, most) * raid::slice_size};
}

void RaidSwarm::work_a_little() {
    const auto host = static_cast<unsigned>(agenda_.random.below(hosts_.size()));
    if (chance(habits_.flushes)) return submit(HostOperation::flush, {}, host);
    const auto operation = chance(habits_.reads) ? HostOperation::read : HostOperation::write;
    submit(operation, draw_range(), host);
}

void RaidSwarm::submit(HostOperation operation, raid::Range range, unsigned host) {
    auto& work = *works_.emplace_back(std::make_unique<Work>());
    work.operation = operation;
    work.range = range;
    work.host = host;
    work.command = ++hosts_[host].commands;
    work.durable = operation == HostOperation::write && chance(habits_.durable);
    work.in_band = chance(habits_.in_band);
    work.octets.resize(range.length);
    work.tag = SteeringTag{++last_tag_};
    work.began = agenda_.steps();
    if (operation == HostOperation::write)
        work.write = ledger_.begin_write(host, work.command, range, work.began, work.octets);
    cluster_.tags[work.tag] = work.octets;
    say(std::string(operation == HostOperation::write  ? "write "
                    : operation == HostOperation::read ? "read "
                                                       : "flush ") +
        (work.write ? std::to_string(work.write) + " " : "") + "at " +
        std::to_string(range.offset) + ", " + std::to_string(range.length));
    ask(work, false);
}

void RaidSwarm::ask(Work& work, bool again) {
    auto& attempt = *work.attempts.emplace_back(std::make_unique<Attempt>(*this, work));
    attempt.operation = work.operation;
    attempt.durable = work.durable;
    attempt.range = work.range;
    attempt.memory.tag = work.tag;
    attempt.session = wire::HostSession{work.host + 1};
    if (options_.mutation != RaidMutation::hosts_are_strangers)
        attempt.host_identity.octets[0] = static_cast<std::uint8_t>(work.host + 1);
    attempt.command = work.command;
    attempt.repeated = again;
    attempt.in_band = work.in_band;
    cluster_.manager().submit(attempt);
}

void RaidSwarm::answered(Work& work, Attempt& attempt, Result<void> outcome) {
    // The answers of a controller that was replaced come to a session that is no more.
    if (work.is_over || &attempt != work.attempts.back().get()) return;
    if (!outcome && attempt.epoch != cluster_.epoch()) return;  // it is sent again
    work.is_over = true;
    cluster_.tags.erase(work.tag);
    const auto now = agenda_.steps() + 1;
    if (!outcome) {
        const bool may_fail = habits_.beyond || outcome.error().code == Code::exhausted;
        if (!may_fail)
            complaints_.add("L1: a request failed that could be served, code " +
                            std::to_string(static_cast<int>(outcome.error().code)));
        ++tally_.failed;
        return;
    }
    if (work.operation == HostOperation::write) {
        ++tally_.writes;
        say("answered write " + std::to_string(work.write));
        ledger_.write_answered(work.write, now);
    } else if (work.operation == HostOperation::read) {
        ++tally_.reads;
        ledger_.read_answered(work.range, work.began, now, work.octets);
    }
}

/// Its memory is gone; what it asked for may be done or not.
void RaidSwarm::kill_host() {
    const auto host = static_cast<unsigned>(agenda_.random.below(hosts_.size()));
    ++tally_.host_deaths;
    say("host " + std::to_string(host) + " dies");
    for (auto& work : works_) {
        if (work->is_over || work->host != host) continue;
        work->is_over = true;
        cluster_.tags.erase(work->tag);
        ++tally_.unknown;
    }
}

// What goes wrong.

/// So that whatever is lost can be made up for: not more boxes at once than the code allows, and
/// one that was away, or is not whole for whatever reason, counts until all is whole again.
bool RaidSwarm::may_disturb(unsigned box) {
    if (is_fragile_) return false;
    if (habits_.beyond) return true;
    auto troubled = disturbed_;
    const auto status = cluster_.manager().status();
    for (const auto& member : status.members)
        if (member.failed || member.state != wire::ArrayMemberState::current)
            troubled.insert(member.place);
    return troubled.contains(box) || troubled.size() < cluster_.layout().spare_columns();
}

void RaidSwarm::disturb() {
    bool waits = !away_.empty() || !held_.empty();
    for (unsigned i = 0; i < cluster_.boxes(); ++i)
        waits = waits || cluster_.disk(i).errors > 0 || cluster_.has_lost_its_journal(i);
    for (const auto& member : cluster_.manager().status().members) waits = waits || member.failed;
    if (is_healthy() && !waits) {
        disturbed_.clear();
        is_fragile_ = false;
    }
    const auto box = static_cast<unsigned>(agenda_.random.below(cluster_.boxes()));
    const bool may = may_disturb(box);
    if (chance(habits_.session_cuts) && may && !away_.contains(box)) lose(box, false);
    if (chance(habits_.power_cuts) && may && !away_.contains(box) && !habits_.beyond)
        lose(box, true);
    if (chance(habits_.returns)) bring_one();
    if (chance(habits_.refusals))
        cluster_.machine(box).windows.refusals = static_cast<unsigned>(agenda_.random.below(5));
    if (chance(habits_.store_errors))
        cluster_.store_errors = static_cast<unsigned>(agenda_.random.below(3));
    if (chance(habits_.slow_boxes) && !held_.contains(box)) {
        held_.insert(box);
        cluster_.hold(box, true);
    } else if (!held_.empty() && chance(40)) {
        cluster_.hold(*held_.begin(), false);
        held_.erase(held_.begin());
    }
    if (chance(habits_.disk_errors) && may) harm_a_disk(box);
    if (chance(habits_.takeovers)) take_over();
    if (chance(habits_.host_deaths)) kill_host();
}

void RaidSwarm::lose(unsigned box, bool power) {
    say("box " + std::to_string(box) + (power ? " loses power" : " loses its session"));
    ++(power ? tally_.power_cuts : tally_.session_cuts);
    if (power)
        cluster_.cut_power(box);
    else
        cluster_.drop(box);
    away_.insert(box);
    disturbed_.insert(box);
}

void RaidSwarm::bring_one() {
    for (const auto& member : cluster_.manager().status().members) {
        if (!member.failed) continue;
        if (cluster_.restart_if_failed(member.place)) cluster_.bring(member.place);
        (void)cluster_.manager().re_add(member.place);
    }
    if (away_.empty()) return;
    auto which = away_.begin();
    std::advance(which, static_cast<std::ptrdiff_t>(agenda_.random.below(away_.size())));
    say("box " + std::to_string(*which) + " is back");
    cluster_.bring(*which);
    away_.erase(which);
}

/// Without a journal nothing but the hosts' memory says what a write was to be: while a box is
/// missing too, half of one cannot be made up for. That is the write hole.
void RaidSwarm::take_over() {
    const bool has_journal = habits_.consistency == wire::ArrayConsistency::journal;
    if (!has_journal && !disturbed_.empty()) return;
    if (!held_.empty()) return;
    ++tally_.takeovers;
    const bool old_goes_on = chance(50);
    say(std::string("another controller takes office") +
        (old_goes_on ? ", the old one goes on" : ""));
    cluster_.take_over(old_goes_on);
    for (auto& work : works_)
        if (!work->is_over) ask(*work, true);
    if (has_journal) return;
    if (!run_until([&] { return all_answered(); }))
        complaints_.add("L2: requests sent again to a new controller are not answered");
}

/// Without a journal a box that fails amid a commit is all that may fail.
void RaidSwarm::harm_a_disk(unsigned box) {
    if (habits_.consistency == wire::ArrayConsistency::none) {
        if (!disturbed_.empty()) return;
        is_fragile_ = true;
    }
    say("disk " + std::to_string(box) + " fails a request");
    ++tally_.disk_errors;
    cluster_.disk(box).errors = 1;
    disturbed_.insert(box);
}

// Time.

void RaidSwarm::go_on(std::uint64_t steps) {
    for (; steps > 0; --steps)
        if (!agenda_.step()) cluster_.pass_time();
}

template <class Condition>
bool RaidSwarm::run_until(Condition condition) {
    for (std::uint64_t i = 0; i < plenty; ++i) {
        if (condition()) return true;
        if (!agenda_.step() && !cluster_.pass_time()) return condition();
        if (!complaints_.all().empty()) return true;
    }
    return false;
}

bool RaidSwarm::all_answered() const {
    return std::ranges::all_of(works_, [](const auto& work) { return work->is_over; });
}

bool RaidSwarm::is_healthy() {
    return cluster_.manager().status().state == raid::VolumeState::healthy;
}

// The end.

void RaidSwarm::wind_up() {
    say("faults stop");
    for (unsigned box : held_) cluster_.hold(box, false);
    held_.clear();
    cluster_.store_errors = 0;
    for (unsigned i = 0; i < cluster_.boxes(); ++i) {
        cluster_.disk(i).errors = 0;
        cluster_.machine(i).windows.refusals = 0;
    }
    while (!away_.empty()) bring_one();
    if (!run_until([&] { return all_answered(); }))
        return complaints_.add("L1: requests are not answered though all boxes are there");
    if (!run_until([&] {
            if (!is_healthy()) bring_one();
            return is_healthy();
        }))
        return complaints_.add("L3: the volume does not become whole, though all boxes are there");
    look_at_everything();
}

void RaidSwarm::look_at_everything() {
    if (!complaints_.all().empty()) return;
    std::vector<std::byte> final(size_);
    const auto first = works_.size();
    for (std::uint64_t at = 0; at < size_; at += 8 * raid::slice_size)
        submit(HostOperation::read, {at, std::min<std::uint64_t>(8 * raid::slice_size, size_ - at)},
               0);
    if (!run_until([&] { return all_answered(); }))
        return complaints_.add("L1: the last reads are not answered");
    for (auto i = first; i < works_.size(); ++i)
        std::ranges::copy(works_[i]->octets,
                          final.begin() + static_cast<std::ptrdiff_t>(works_[i]->range.offset));
    const bool has_journal = habits_.consistency == wire::ArrayConsistency::journal;
    ledger_.check(final, has_journal);
    if (!cluster_.manager().scrub(false)) return complaints_.add("S5: no scrub can begin");
    if (!run_until([&] { return !cluster_.manager().status().scrub.running; }))
        return complaints_.add("L4: a scrub does not end");
    const auto scrub = cluster_.manager().status().scrub;
    if (scrub.mismatches != 0) complaints_.add("S5: a scrub finds a mismatch");
    while (agenda_.step()) continue;  // what old controllers still have on their way
    cluster_.check_parity();
    cluster_.check_quiet();
    cluster_.check_assembly();
    if (habits_.in_band == 0 && !detours_ &&
        cluster_.manager().status().counters.payload_octets != 0)
        complaints_.add("S12: data went by way of the controller");
}

}  // namespace weft::sim
