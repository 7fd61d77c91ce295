// SPDX-License-Identifier: Apache-2.0
// What hosts ask of a volume: hello and goodbye, and reads, writes and flushes whose bytes go
// between their memory and the boxes.
#include <algorithm>

#include "iscsi/target_connection.hpp"
#include "node/array_address.hpp"
#include "node/controller_volume.hpp"
#include "raid/superblock.hpp"

namespace weft::node {

using wire::HostAction;
using wire::HostOutcome;

namespace {

HostOutcome outcome_of(const Result<void>& outcome) {
    if (outcome) return HostOutcome::done;
    switch (outcome.error().code) {
        case Code::out_of_range:
            return HostOutcome::out_of_range;
        case Code::malformed:
        case Code::unsupported:
            return HostOutcome::malformed;
        case Code::exhausted:
        case Code::timed_out:
            return HostOutcome::later;
        case Code::access_denied:
        case Code::disconnected:
            return HostOutcome::host_unreachable;
        default:
            return HostOutcome::failed;
    }
}

constexpr Duration look_at_hosts = std::chrono::seconds(5);
constexpr Duration host_patience = std::chrono::seconds(120);
constexpr Duration cut_off_doubt = std::chrono::seconds(1);
constexpr Duration look_for_silence = std::chrono::seconds(1);
constexpr Duration silence = std::chrono::seconds(2);  ///< of a box that is asked for something

wire::ScsiStatus status_of(HostOutcome outcome) {
    return outcome == HostOutcome::done ? wire::ScsiStatus::good
                                        : wire::ScsiStatus::check_condition;
}

}  // namespace

void ControllerVolume::answer(scsi::VendorCall& call, HostOutcome outcome, std::uint64_t command) {
    const wire::HostAnswer said{.outcome = outcome, .command = command, .size = manager_.size()};
    call.answer(status_of(outcome), encoded(said), {});
}

/// Whom the volume counts on may have changed.
void ControllerVolume::follow_members() {
    for (const auto& each : roster_.follow(manager_.volume()))
        if (!each.may_come) around_.office.dismiss_hosts_at(each.box, identity_);
}

void ControllerVolume::answer(HostCommand& command, HostOutcome outcome) {
    follow_members();
    const auto news = roster_.since(command.heard);
    if (!news) {
        // It begins anew, where nobody knows it but those that may come.
        dismiss(command.session);
        return answer(*command.call, HostOutcome::unknown_session, command.command);
    }
    std::vector<std::byte> descriptors;
    const auto add = [&](const auto& descriptor) {
        const auto octets = encoded(descriptor);
        descriptors.insert(descriptors.end(), octets.begin(), octets.end());
    };
    add(wire::HostAnswer{.outcome = outcome,
                         .command = command.command,
                         .size = manager_.size(),
                         .leaves_writers = command.leaves_writers});
    for (const auto& each : *news) add(each);
    constexpr auto room = scsi::sense_max - wire_size<wire::DescriptorSense>();
    const auto fit = (room - descriptors.size()) / wire_size<wire::HostRelease>();
    if (const auto host = hosts_.find(command.session); host != hosts_.end())
        for (const auto& each : host->second.releases.next(fit)) add(each);
    command.call->answer(status_of(outcome), descriptors, {});
}

/// The host keeps the tag of this command open for late boxes: it hears with the next answer that
/// none is left.
void ControllerVolume::writers_gone(wire::HostSession session, std::uint64_t command) {
    if (session == around_.self) return disk_.writers_gone(command);
    const auto host = hosts_.find(session);
    // One that never says what it has heard begins anew. In another session all tags are closed.
    if (host != hosts_.end() && !host->second.releases.add(command)) dismiss(session);
}

void ControllerVolume::receive(scsi::VendorCall& call) {
    auto block = decode<wire::HostCommandBlock>(call.command_block());
    if (!block) return answer(call, HostOutcome::malformed, 0);
    if (block->parameter_length != call.parameters().size())
        return answer(call, HostOutcome::malformed, block->command);
    if (block->action == HostAction::hello) return hello(call);
    if (wire::is_of_host(static_cast<std::uint8_t>(block->action))) return transfer(call, *block);
    answer(call, HostOutcome::malformed, block->command);
}

/// What was asked for goes on: the memory is the host's own, and rows are taken in their order
/// whoever hears of it.
void ControllerVolume::forget(scsi::VendorCall& call) {
    for (auto& [ticket, greeting] : greetings_)
        if (greeting == &call) greeting = nullptr;
    for (auto& command : commands_)
        if (command->call == &call) command->call = nullptr;
    answer(call, HostOutcome::failed, 0);
}

void ControllerVolume::hello(scsi::VendorCall& call) {
    auto said = decode<wire::HostHello>(call.parameters());
    const auto& sender = call.sender().name();
    if (!said || call.parameters().size() != wire_size<wire::HostHello>() || said->port == 0)
        return answer(call, HostOutcome::malformed, 0);
    // Another may be in office: the host is to look around.
    if (!around_.office.may_act()) return answer(call, HostOutcome::later, 0);
    Host host{.name = raid::text_of_field(said->name),
              .identity = said->identity,
              .admission = {.address = {},
                            .host = {},
                            .port = said->port,
                            .network_address = said->network_address,
                            .secret = {}},
              .initiator = sender.initiator,
              .session_identifier = sender.session_identifier};
    if (said->network_address == Octets<16>{}) {
        const auto from = around_.server.origin_of(call.sender());
        const auto found = from ? network_address_of(from->host) : std::nullopt;
        if (!found) return answer(call, HostOutcome::host_unreachable, 0);
        host.admission.network_address = *found;
    }
    // Only who it was may say that it is over.
    if (auto found = hosts_.find(said->previous);
        found != hosts_.end() && found->second.initiator == sender.initiator)
        dismiss(said->previous);
    if (!has_room_for(sender.initiator)) return answer(call, HostOutcome::later, 0);
    const auto ticket = ++greeting_;
    greetings_[ticket] = &call;
    const auto asked = host.admission;
    // Who goes from here on knew of it, perhaps.
    follow_members();
    host.roster = roster_.number();
    around_.office.admit_host(
        identity_, asked, [this, alive = alive_, ticket, host = std::move(host)](auto admission) {
            if (*alive) welcome(ticket, host, admission);
        });
}

void ControllerVolume::welcome(std::uint64_t ticket, Host host,
                               std::optional<wire::ArrayHostAdmission> admission) {
    auto found = greetings_.find(ticket);
    auto* call = found->second;
    greetings_.erase(found);
    if (admission && call == nullptr) return around_.office.dismiss_host(admission->host);
    if (call == nullptr) return;
    wire::HostWelcome welcome{.outcome = HostOutcome::later,
                              .session = {},
                              .cluster = around_.office.cluster(),
                              .volume = identity_,
                              .epoch = around_.office.epoch(),
                              .size = manager_.size(),
                              .request_limit = raid::limits::request_bytes,
                              .roster = host.roster,
                              .secret = {}};
    if (admission) {
        welcome.outcome = HostOutcome::done;
        welcome.session = admission->host;
        welcome.secret = admission->secret;
        host.admission = *admission;
        hosts_[admission->host] = std::move(host);
        host_timer_->set(around_.world.now() + look_at_hosts);
    }
    call->answer(status_of(welcome.outcome), encoded(welcome), {});
}

/// Those whose session has been over for long: they did not say goodbye, and will not any more.
void ControllerVolume::look_after_hosts() {
    const auto now = around_.world.now();
    std::vector<wire::HostSession> gone;
    for (auto& [session, host] : hosts_) {
        if (is_here(host))
            host.lost_at.reset();
        else if (!host.lost_at)
            host.lost_at = now;
        else if (now - *host.lost_at >= host_patience)
            gone.push_back(session);
    }
    for (auto session : gone) dismiss(session);
    if (!hosts_.empty()) host_timer_->set(now + look_at_hosts);
}

/// One that is ourselves, for initiators that know nothing of arrays, is here always.
bool ControllerVolume::is_host_here(wire::HostSession session) const {
    const auto host = hosts_.find(session);
    return session == around_.self || (host != hosts_.end() && is_here(host->second));
}

bool ControllerVolume::has_host_here() const {
    return std::ranges::any_of(hosts_, [&](const auto& each) { return is_here(each.second); });
}

/// Where a host has too many sessions, the oldest of those whose connection is over makes room.
bool ControllerVolume::has_room_for(const std::string& initiator) {
    std::size_t own = 0;
    std::optional<wire::HostSession> over;
    for (const auto& [session, host] : hosts_) {
        if (host.initiator != initiator) continue;
        ++own;
        if (!over && !is_here(host)) over = session;
    }
    if (own < sessions_per_host_max) return true;
    if (!over) return false;
    dismiss(*over);
    return true;
}

bool ControllerVolume::is_here(const Host& host) const {
    return std::ranges::any_of(around_.server.node().sessions(), [&](const auto& each) {
        return each->nexus() != nullptr && host.is(each->nexus()->name());
    });
}

/// A host that has died is missed by boxes first, which are quicker to look for it. Then it is no
/// link that is broken, and people are not sent to look at their network.
void ControllerVolume::hold_cut_off(const raid::VolumeEvent& event) {
    HeldCutOff held{event, {}};
    for (const auto& command : commands_) held.hosts.insert(command->session);
    std::erase_if(cut_offs_, [&](const auto& each) { return each.event.box == event.box; });
    if (cut_offs_.empty()) cut_off_timer_->set(around_.world.now() + cut_off_doubt);
    cut_offs_.push_back(std::move(held));
}

void ControllerVolume::tell_cut_offs() {
    for (const auto& held : std::exchange(cut_offs_, {})) {
        const bool host_is_gone = std::ranges::any_of(held.hosts, [&](auto session) {
            const auto host = hosts_.find(session);
            return host == hosts_.end() || !is_here(host->second);
        });
        if (!host_is_gone) around_.office.happened(*this, held.event);
    }
}

void ControllerVolume::dismiss(wire::HostSession session) {
    hosts_.erase(session);
    around_.office.dismiss_host(session);
}

void ControllerVolume::transfer(scsi::VendorCall& call, const wire::HostCommandBlock& block) {
    auto asked = decode<wire::HostTransfer>(call.parameters());
    if (!asked || call.parameters().size() != wire_size<wire::HostTransfer>())
        return answer(call, HostOutcome::malformed, block.command);
    auto host = hosts_.find(asked->session);
    if (host == hosts_.end() || !host->second.is(call.sender().name()))
        return answer(call, HostOutcome::unknown_session, asked->command);
    if (block.action == HostAction::goodbye) {
        dismiss(asked->session);
        return answer(call, HostOutcome::done, asked->command);
    }
    if (asked->length > raid::limits::request_bytes)
        return answer(call, HostOutcome::out_of_range, asked->command);
    if (commands_.size() >= host_commands_max)
        return answer(call, HostOutcome::later, asked->command);
    ++host->second.requests;
    host->second.releases.heard(asked->released);
    ++requests_;
    auto& command =
        *commands_.emplace_back(std::make_unique<HostCommand>(*this, call, around_.world.now()));
    command.operation = block.action == HostAction::read    ? raid::HostOperation::read
                        : block.action == HostAction::write ? raid::HostOperation::write
                                                            : raid::HostOperation::flush;
    command.durable = asked->durable;
    command.repeated = asked->repeated;
    command.range = {.offset = asked->offset, .length = asked->length};
    command.memory = {.party = raid::the_host,
                      .tag = asked->tag,
                      .base = asked->base,
                      .identity = wire::identity_of(asked->session)};
    command.session = asked->session;
    command.command = asked->command;
    command.host_identity = host->second.identity;
    command.heard = asked->heard;
    manager().submit(command);
    watch();
}

SlowOperation ControllerVolume::report(const HostCommand& command, bool under_way) const {
    return {.since = command.since,
            .took = around_.world.now() - command.since,
            .under_way = under_way,
            .volume = name_,
            .operation = command.operation,
            .offset = command.range.offset,
            .length = command.range.length,
            .session = command.session,
            .story = command.story};
}

void ControllerVolume::note_slow(SlowOperation operation) {
    if (operation.took < slow) return;
    operation.volume = name_;
    name_boxes(operation);
    slow_.push_back(std::move(operation));
    if (slow_.size() > slow_kept) slow_.pop_front();
}

void ControllerVolume::over(HostCommand& command, Result<void> outcome) {
    note_slow(report(command, false));
    if (outcome && around_.in_band && windows_ && command.operation != raid::HostOperation::flush)
        payload_octets_ += command.range.length;
    auto kept = std::ranges::find(commands_, &command, &std::unique_ptr<HostCommand>::get);
    const auto ended = std::move(*kept);
    commands_.erase(kept);
    if (ended->call != nullptr) answer(*ended, outcome_of(outcome));
}

std::vector<HostReport> ControllerVolume::hosts() const {
    std::vector<HostReport> reports;
    for (const auto& [session, host] : hosts_)
        reports.push_back(
            {.name = host.name,
             .volume = name_,
             .session = session,
             .address = address_of(host.admission.network_address, host.admission.port),
             .requests = host.requests});
    return reports;
}

void ControllerVolume::count(VolumeReport& report) const {
    report.requests = requests_ + disk_.requests();
    report.orders = orders_;
    report.payload_octets = payload_octets_ + disk_.octets();
    if (!around_.in_band) report.relayed_octets = report.status.counters.payload_octets;
}

std::vector<SlowOperation> ControllerVolume::slow_operations() const {
    std::vector<SlowOperation> found(slow_.begin(), slow_.end());
    for (const auto& command : commands_) found.push_back(report(*command, true));
    for (auto& each : disk_.under_way()) {
        each.volume = name_;
        found.push_back(std::move(each));
    }
    std::erase_if(found, [](const auto& each) { return each.took < slow; });
    for (auto& each : found)
        if (each.under_way) name_boxes(each);
    return found;
}

// A write that a box does not answer waits for it, and nobody else can serve it: people are told
// long before the box is given up.

void ControllerVolume::watch() {
    if (std::exchange(watching_, true)) return;
    watch_timer_->set(around_.world.now() + look_for_silence);
}

void ControllerVolume::look_for_silent_boxes() {
    watching_ = false;
    const auto now = around_.world.now();
    const auto status = manager().status();
    std::map<wire::BoxIdentity, Duration> silent;
    bool some = false;
    for (const auto& each : slow_operations()) {
        some = some || each.under_way;
        if (!each.under_way || now - each.story.since < silence) continue;
        for (const auto& box : each.waits_for)
            silent[box] = std::max(silent[box], now - each.story.since);
    }
    for (const auto& member : status.members) {
        const bool is_silent = silent.contains(member.box);
        const bool was_silent = silent_.contains(member.box);
        if (member.slow || is_silent == was_silent) continue;  // that was told
        if (!member.up) continue;                              // and this will be
        around_.office.happened(*this, {.kind = is_silent ? raid::VolumeEventKind::box_slow
                                                          : raid::VolumeEventKind::box_quick,
                                        .place = member.place,
                                        .box = member.box,
                                        .why = {},
                                        .number = 0,
                                        .took = is_silent ? silent[member.box] : Duration{}});
    }
    silent_.clear();
    for (const auto& [box, since] : silent) silent_.insert(box);
    if (some || !silent_.empty() || !commands_.empty()) watch();
}

/// As they are now: another may have the place when somebody asks.
void ControllerVolume::name_boxes(SlowOperation& operation) const {
    const auto& volume = manager_.volume();
    const auto& story = operation.story;
    for (std::uint8_t place = 0; place < volume.boxes; ++place)
        if (operation.under_way && raid::contains(story.boxes, place))
            operation.waits_for.push_back(volume.members[place].box);
    if (story.slowest) operation.slowest = volume.members[*story.slowest].box;
}

}  // namespace weft::node
