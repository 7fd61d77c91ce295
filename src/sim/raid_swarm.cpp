// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/raid_swarm_work.hpp"

namespace weft::sim {

namespace {

/// Of node::HostDisk.
constexpr Duration host_patience = std::chrono::seconds(120);
constexpr Duration longest_pause = std::chrono::milliseconds(500);

RaidHabits drawn(Random& random, std::uint64_t seed, const RaidSwarmOptions& options) {
    RaidHabits habits(random, options.consistency, options.beyond);
    if (options.all_faults) habits.draw_more(Random(~seed));
    if (options.all_faults && options.short_of_room)
        habits.draw_room(Random(~seed * 11), options.small_rings);
    if (options.gray) habits.draw_gray(Random(~seed * 19));
    if (options.gray_alone) habits.leave_only_gray();
    return habits;
}

}  // namespace

void RaidSwarm::Tally::add(const Tally& other) {
    reads += other.reads, writes += other.writes, unknown += other.unknown;
    failed += other.failed, blocks_read += other.blocks_read;
    session_cuts += other.session_cuts, power_cuts += other.power_cuts;
    takeovers += other.takeovers, disk_errors += other.disk_errors;
    host_deaths += other.host_deaths, rebuilds += other.rebuilds;
    steps += other.steps, stops += other.stops;
    links_cut += other.links_cut, rotten_blocks += other.rotten_blocks;
    lost_writes += other.lost_writes, strayed_writes += other.strayed_writes;
    damaged_transfers += other.damaged_transfers, replacements += other.replacements;
    wiped_disks += other.wiped_disks, blackouts += other.blackouts;
    healed_blocks += other.healed_blocks, back_pressed += other.back_pressed;
    scrubs += other.scrubs, probes += other.probes;
    hedged_reads += other.hedged_reads;
    put_backs += other.put_backs, noticed_put_backs += other.noticed_put_backs;
    full_file_systems += other.full_file_systems;
    pauses += other.pauses, gray_faults += other.gray_faults, loads += other.loads;
    connections_reset += other.connections_reset, asked_again += other.asked_again;
    overtaken = std::max(overtaken, other.overtaken);
}

RaidSwarm::RaidSwarm(std::uint64_t seed, RaidSwarmOptions options)
    : options_(std::move(options)),
      agenda_(seed),
      habits_(drawn(agenda_.random, seed, options_)),
      cluster_(agenda_, complaints_, habits_, options_.mutation),
      size_(habits_.stripes * cluster_.layout().stripe_bytes()),
      ledger_(complaints_, size_),
      blame_rule_(complaints_, cluster_),
      time_rule_(complaints_),
      fairness_rule_(complaints_),
      rebuild_rule_(complaints_),
      hosts_(habits_.hosts),
      faults_(~seed * 3),
      slowing_(~seed * 5),
      copying_(~seed * 7),
      room_(~seed * 13) {
    for (unsigned i = 0; i < hosts_.size(); ++i) hosts_[i].number = i;
    cluster_.on_silence = [this](unsigned box) { away_.insert(box), disturbed_.insert(box); };
    cluster_.on_event = [this](const raid::VolumeEvent& event) {
        if (event.kind == raid::VolumeEventKind::rebuild_began) ++tally_.rebuilds;
        if (event.kind == raid::VolumeEventKind::stopped) ++tally_.stops;
        if (event.kind == raid::VolumeEventKind::block_healed) ++tally_.healed_blocks;
        if (event.kind == raid::VolumeEventKind::box_put_back &&
            ++tally_.noticed_put_backs > tally_.put_backs)
            complaints_.add("L3: a box is taken for one that was put back, and was not");
        if (event.kind == raid::VolumeEventKind::box_failed && event.place)
            check_failed(*event.place, event.why);
        // A host that was killed may be taken for one that is cut off where nothing else is gray.
        if (options_.gray || event.kind != raid::VolumeEventKind::host_cut_off)
            blame_rule_.look_at(event, agenda_.now());
        // Where two do not reach each other, data is meant to go by way of the controller.
        detours_ = detours_ || event.kind == raid::VolumeEventKind::link_broken ||
                   event.kind == raid::VolumeEventKind::host_cut_off;
        say(raid::to_text(event.kind) +
            (event.place ? ", place " + std::to_string(*event.place) : "") +
            (event.why != wire::ArrayOutcome{} ? ": " + raid::to_text(event.why) : ""));
    };
    cluster_.on_link = [this](const std::string& machine, const node::ArrayLinks::Event& event) {
        using Kind = node::ArrayLinks::Event::Kind;
        if (event.kind == Kind::linked) return;
        say(machine +
            (event.kind == Kind::lost      ? " loses a connection with "
             : event.kind == Kind::refused ? " refuses "
                                           : " cannot connect to ") +
            (event.peer.role == wire::ArrayRole::host ? "host " : "box ") +
            std::to_string(event.peer.identity.octets[0]) + "/" +
            std::to_string(event.peer.identity.octets[15]) + ": " + event.why);
    };
    if (options_.all_faults)
        cluster_.write_fate = [this](unsigned box, std::uint64_t offset, std::size_t size) {
            return fate_of(box, offset, size);
        };
    say(habits_.to_text());
}

RaidSwarm::~RaidSwarm() = default;

std::string RaidSwarm::standing() {
    const auto status = cluster_.manager().status();
    std::string text = "state " + std::to_string(static_cast<int>(status.state)) + ", " +
                       std::to_string(status.requests) + " requests under way";
    for (const auto& member : status.members)
        text += "; place " + std::to_string(member.place) + ": box " +
                std::to_string(cluster_.machine_at(member.place)) + ", " +
                std::to_string(static_cast<int>(member.state)) + (member.up ? "" : ", down") +
                (member.failed ? ", failed" : "");
    return text;
}

void RaidSwarm::say(const std::string& what) {
    if (options_.trace) options_.trace(std::to_string(agenda_.steps()) + " " + what);
}

void RaidSwarm::run() {
    for (unsigned i = 0; i < habits_.steps && complaints_.all().empty(); ++i) step();
    if (complaints_.all().empty() && options_.gray) bear_load();
    if (complaints_.all().empty()) wind_up();
    if (!complaints_.all().empty()) say(standing());
    tally_.steps = agenda_.steps();
    tally_.blocks_read = ledger_.blocks_read();
    tally_.back_pressed = cluster_.back_pressed;
    tally_.overtaken = fairness_rule_.most();
    tally_.hedged_reads = cluster_.hedged_reads();
}

void RaidSwarm::step() {
    for (auto count = agenda_.random.below(4); count > 0; --count) work_a_little();
    disturb();
    go_on(agenda_.random.below(60));
    if (options_.gray) look_at_rules();
    cluster_.check_epochs();
    if (options_.all_faults) check_rest();
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
    // Hosts like to write what others are writing.
    const auto liked = options_.all_faults && faults_.chance(25) && !works_.empty()
                           ? works_[faults_.below(works_.size())]->range
                           : raid::Range{};
    const auto range = draw_range();
    submit(operation, liked.length != 0 ? liked : range, host);
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
    work.began = agenda_.steps();
    if (operation == HostOperation::write)
        work.write = ledger_.begin_write(host, work.command, range, work.began, work.octets);
    work.tag = cluster_.host(host).lend(work.octets, operation == HostOperation::read);
    work.asked_at = agenda_.now();
    work.number = works_.size();
    open_.push_back(&work);
    fairness_rule_.asked(work.number);
    say(work.name() + std::string(" ") + (work.write ? std::to_string(work.write) + " " : "") +
        "at " + std::to_string(range.offset) + ", " + std::to_string(range.length));
    ask(work, false);
}

void RaidSwarm::ask(Work& work, bool again) {
    auto& attempt = *work.attempts.emplace_back(std::make_unique<Attempt>(*this, work, work.host));
    attempt.operation = work.operation;
    attempt.durable = work.durable;
    attempt.range = work.range;
    attempt.memory.tag = work.tag;
    cluster_.attach(work.host, attempt);
    if (options_.mutation != RaidMutation::hosts_are_strangers)
        attempt.host_identity.octets[0] = static_cast<std::uint8_t>(work.host + 1);
    attempt.command = work.command;
    attempt.repeated = again;
    attempt.in_band = work.in_band;
    cluster_.submit(attempt);
}

void RaidSwarm::answered(Work& work, Attempt& attempt, Result<void> outcome) {
    // The answers of a controller that was replaced come to a session that is no more, once the
    // host has asked the next. Until then a write it has answered is written.
    if (work.is_over || work.is_answered || &attempt != work.attempts.back().get()) return;
    const bool is_late = attempt.epoch != cluster_.epoch();
    if (is_late && (!outcome || work.operation != HostOperation::write)) return;
    cluster_.hear(work.host, attempt.news);
    if (!outcome && may_ask_later(work, outcome.error())) return ask_later(work, attempt);
    work.is_answered = true;
    auto& host = cluster_.host(work.host);
    if (attempt.leaves_writers) {
        host.take_back_from_writers(work.tag, work.command);
        return finish(work, outcome);
    }
    host.take_back(work.tag, [this, &work, outcome] {
        if (!work.is_over) finish(work, outcome);
    });
}

/// As node::HostDisk: what says "later", or "unreachable", is not the end.
bool RaidSwarm::may_ask_later(const Work& work, const Error& why) const {
    const bool passes = why.code == Code::exhausted || why.code == Code::timed_out ||
                        why.code == Code::access_denied || why.code == Code::disconnected;
    return passes && agenda_.now() < work.asked_at + host_patience;
}

void RaidSwarm::ask_later(Work& work, const Attempt& attempt) {
    ++tally_.asked_again;
    agenda_.after(work.pause, [this, &work, &attempt] {
        if (!work.is_over && &attempt == work.attempts.back().get()) ask(work, true);
    });
    work.pause = std::min<Duration>(work.pause * 2, longest_pause);
}

/// Its memory is its own again.
void RaidSwarm::finish(Work& work, Result<void> outcome) {
    work.is_over = true;
    fairness_rule_.answered(work.number);
    if (work.is_load) agenda_.later([this] { --reading_, keep_reading(); });
    const auto now = agenda_.steps() + 1;
    if (!outcome) {
        // docs/failures.md, case 40: where room is short for longer than the volume is patient.
        const bool lacked_room = cluster_.anybody_lacks_room() &&
                                 agenda_.now() >= work.asked_at + RaidTimeRule::patience;
        const bool may_fail =
            habits_.beyond || lacked_room || outcome.error().code == Code::exhausted;
        if (!may_fail)
            time_rule_.look_at_failed(work.name(), outcome.error().code, work.asked_at,
                                      agenda_.now());
        if (!final_.empty()) unreadable_.push_back(work.range);
        ++tally_.failed;
        return work.use_otherwise();
    }
    if (work.operation == HostOperation::write) {
        ++tally_.writes;
        say("answered write " + std::to_string(work.write));
        ledger_.write_answered(work.write, now);
    } else if (work.operation == HostOperation::read) {
        ++tally_.reads;
        ledger_.read_answered(work.range, work.began, now, work.octets);
        if (!final_.empty())
            std::ranges::copy(work.octets, final_.subspan(work.range.offset).begin());
    }
    work.use_otherwise();
}

/// Its memory is gone; what it asked for may be done or not.
void RaidSwarm::kill_host() {
    const auto host = static_cast<unsigned>(agenda_.random.below(hosts_.size()));
    // What it asked for goes on without it, and nobody here could tell until when.
    if (is_damage_open()) return;
    ++tally_.host_deaths;
    detours_ = true;  // until it is known which, a host that is gone is one that is not reached
    say("host " + std::to_string(host) + " dies");
    cluster_.restart_host(host);
    for (auto& work : works_) {
        if (work->is_over || work->host != host) continue;
        work->is_over = true;
        fairness_rule_.excuse(work->number);
        if (work->is_load) --reading_;
        ++tally_.unknown;
    }
}

// Time.

void RaidSwarm::go_on(std::uint64_t steps) {
    constexpr double seldom = 0.2;  // of the answers that are on their way so long
    for (; steps > 0; --steps) {
        if (!agenda_.step()) cluster_.pass_time();
        if (unheard_ > 0 && faults_.chance(habits_.disasters * seldom)) strike();
    }
}

bool RaidSwarm::all_answered() {
    std::erase_if(open_, [](const Work* work) { return work->is_over; });
    return open_.empty();
}

bool RaidSwarm::is_healthy() {
    return cluster_.manager().status().state == raid::VolumeState::healthy;
}

}  // namespace weft::sim
