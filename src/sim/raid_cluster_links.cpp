// SPDX-License-Identifier: Apache-2.0
// Who of a cluster knows whom, by which secrets, and what happens to the ways between them: as
// ControllerNode introduces boxes to each other and admits hosts (node/controller_boxes.cpp).
#include <algorithm>

#include "sim/raid_office.hpp"

namespace weft::sim {

namespace {

node::ArraySecret secret_from(std::uint64_t one, std::uint64_t other, std::uint64_t epoch) {
    Random draw(one * 0x1'0000 + other + (epoch << 32));
    node::ArraySecret secret{};
    for (auto& octet : secret) octet = static_cast<std::uint8_t>(draw.next());
    return secret;
}

}  // namespace

node::ArraySecret RaidCluster::secret_between(unsigned one, unsigned other, std::uint64_t epoch) {
    return secret_from(std::min(one, other), std::max(one, other), epoch);
}
node::ArraySecret RaidCluster::secret_of_controller(std::uint64_t epoch) {
    return secret_from(1000, 0, epoch);
}
node::ArraySecret RaidCluster::secret_of_host(wire::HostSession session) {
    return secret_from(2000, 0, static_cast<std::uint64_t>(session));
}

// Boxes.

/// A box that is about to be up, to all who are and they to it, before any order counts on it.
void RaidCluster::introduce(unsigned i) {
    if (!places_[i].machine) return;
    auto& station = places_[i].machine->station;
    const auto self = wire::box_end(places_[i].identity);
    for (unsigned other = 0; other < machines(); ++other) {
        const auto& place = places_[other];
        if (other == i || place.session == 0 || !place.machine) continue;
        auto& queue = sessions_.at(place.session).queue;
        if (std::erase_if(queue, [&](const Command& each) { return each.forgets == i; }) > 0)
            forget_at(other, i);
        const auto secret = secret_between(i, other, epoch_);
        auto& others = place.machine->station;
        (void)station.links().know(wire::box_end(place.identity), secret, others.where());
        (void)others.links().know(self, secret, station.where());
    }
    auto& office = *offices_.back();
    office.station.links().let_in(wire::host_end(Office::own_session), self);
    (void)station.links().know(wire::host_end(Office::own_session),
                               node::secret_for(secret_of_controller(epoch_), self),
                               office.station.where());
    for (const auto& [number, guest] : guests_) admit(i, guest);
}

/// All others forget a box that is away, each before whatever it is told next; and the controller
/// bars it from its own memory.
void RaidCluster::forget(unsigned i) {
    offices_.back()->station.links().bar(wire::host_end(Office::own_session),
                                         wire::box_end(places_[i].identity));
    for (unsigned other = 0; other < machines(); ++other) {
        const auto session = places_[other].session;
        if (other == i || session == 0 || !places_[other].machine) continue;
        sessions_.at(session).queue.push_back({{}, {}, i});
        agenda_.later([this, session] { deliver(session); });
    }
}

void RaidCluster::forget_at(unsigned i, unsigned other) {
    if (places_[i].machine)
        places_[i].machine->station.links().forget(wire::box_end(places_[other].identity));
}

void RaidCluster::listen_to(RaidStation& station, RaidTransfers& transfers) {
    station.links().on_event(
        [this, machine = station.host().name(), &transfers](const node::ArrayLinks::Event& event) {
            if (on_link) on_link(machine, event);
            if (mutation_ == RaidMutation::ends_count_against_all &&
                event.kind == node::ArrayLinks::Event::Kind::lost)
                transfers.lose(event.peer);
        });
}

// Hosts.

void RaidCluster::admit(unsigned i, const Guest& guest) {
    if (guest.epoch != epoch_ || !guest.host->session()) return;
    const auto self = wire::box_end(places_[i].identity);
    (void)places_[i].machine->station.links().know(wire::host_end(*guest.host->session()),
                                                   node::secret_for(guest.secret, self),
                                                   guest.host->where());
}

RaidHost& RaidCluster::host(unsigned number) {
    auto& guest = guests_[number];
    if (!guest.host) {
        guest.host = std::make_unique<RaidHost>(agenda_, number);
        guest.host->keeps_tags = mutation_ == RaidMutation::tags_are_kept;
        guest.host->closes_at_once = mutation_ == RaidMutation::sinks_are_closed_at_once;
    }
    return *guest.host;
}

void RaidCluster::welcome(unsigned number, Guest& guest) {
    auto& office = *offices_.back();
    const wire::HostSession session{office.number << 32 | ++office.last_host_session};
    guest.secret = secret_of_host(session);
    guest.epoch = epoch_;
    (void)office.roster.follow(manager_->volume());
    guest.heard = office.roster.number();
    host(number).welcomed(session, guest.secret, cluster_, wire::Epoch{epoch_});
    (void)office.station.links().know(
        wire::host_end(session),
        node::secret_for(guest.secret, wire::host_end(Office::own_session)), guest.host->where());
    for (unsigned i = 0; i < machines(); ++i)
        if (is_up(i) && has_part(i)) admit(i, guest);
}

void RaidCluster::attach(unsigned number, raid::HostRequest& request) {
    auto& known = host(number);
    auto& guest = guests_[number];
    if (guest.epoch != epoch_ || !known.session()) welcome(number, guest);
    request.session = *known.session();
    request.memory.party = raid::the_host;
    request.memory.identity = wire::identity_of(*known.session());
}

std::vector<wire::HostNews> RaidCluster::news_for(unsigned number) {
    auto& office = *offices_.back();
    (void)office.roster.follow(manager_->volume());
    return office.roster.since(guests_[number].heard).value_or(std::vector<wire::HostNews>{});
}

void RaidCluster::hear(unsigned number, const std::vector<wire::HostNews>& news) {
    auto& guest = guests_[number];
    for (const auto& each : news) {
        if (each.number <= guest.heard || guest.epoch != epoch_) continue;
        guest.heard = each.number;
        host(number).hear(each.box, each.may_come);
    }
}

void RaidCluster::restart_host(unsigned number) {
    host(number).restart();
    guests_[number].epoch = 0;
}

/// The controller itself is one, too.
bool RaidCluster::is_host_here(wire::HostSession session) const {
    return session == Office::own_session || std::ranges::any_of(guests_, [&](const auto& each) {
               return each.second.host->session() == session;
           });
}

void RaidCluster::writers_gone(wire::HostSession session, std::uint64_t command) {
    for (auto& [number, guest] : guests_)
        if (guest.host->session() == session)
            agenda_.later([this, number = number, session, command] {
                if (host(number).session() == session) host(number).writers_gone(command);
            });
}

// What happens to links.

void RaidCluster::cut_link(unsigned from, unsigned to) {
    cut_off_.insert({name_of(from), name_of(to)});
    agenda_.world.network().cut_off(name_of(from), name_of(to));
}

void RaidCluster::cut_host_link(unsigned from, unsigned number) {
    const auto& name = host(number).machine().name();
    cut_off_.insert({name_of(from), name});
    agenda_.world.network().cut_off(name_of(from), name);
}

void RaidCluster::mend_links() {
    for (const auto& way : std::exchange(cut_off_, {})) {
        agenda_.world.network().reach_again(way.first, way.second);
        mended_[way] = agenda_.now();
    }
}

template <class Which>
std::optional<Instant> RaidCluster::last_cut(Which which, Instant now) const {
    if (std::ranges::any_of(cut_off_, which)) return now;
    std::optional<Instant> last;
    for (const auto& [way, when] : mended_)
        if (which(way)) last = std::max(last.value_or(when), when);
    return last;
}

std::optional<Instant> RaidCluster::cut_at(unsigned i, Instant now) const {
    const auto name = name_of(i);
    if (holds_transfers(i)) return now;
    return last_cut([&](const Way& way) { return way.first == name || way.second == name; }, now);
}

std::optional<Instant> RaidCluster::cut_between(unsigned one, unsigned other, Instant now) const {
    const Way way{name_of(one), name_of(other)}, back{way.second, way.first};
    return last_cut([&](const Way& each) { return each == way || each == back; }, now);
}

std::optional<Instant> RaidCluster::host_cut_at(unsigned i, Instant now) const {
    const auto name = name_of(i);
    return last_cut(
        [&](const Way& way) { return way.first == name && way.second.starts_with("host"); }, now);
}

std::optional<Instant> RaidCluster::gone_at(unsigned i, Instant now) const {
    return is_up(i) && !holds_transfers(i) ? places_[i].gone_at : now;
}

void RaidCluster::hold_transfers(unsigned i, bool held) {
    auto& network = agenda_.world.network();
    if (!held) {
        const auto links = std::exchange(places_[i].held_links, {});
        for (const auto link : links) network.heal(link);
        if (!links.empty()) mended_[{name_of(i), "all"}] = *(places_[i].gone_at = agenda_.now());
        return;
    }
    for (const auto link : network.links()) {
        if (network.connector_of(link) != name_of(i)) continue;
        network.partition(link, Side::connector);
        places_[i].held_links.insert(link);
    }
}

std::uint64_t RaidCluster::windows_refused() const {
    std::uint64_t refused = offices_.back()->windows.refused;
    for (const auto& place : places_)
        if (place.machine) refused += place.machine->windows.refused;
    return refused;
}

std::uint64_t RaidCluster::transferred() const {
    std::uint64_t octets = offices_.back()->transfers.octets;
    for (const auto& place : places_)
        if (place.machine) octets += place.machine->transfers.octets;
    return octets;
}

}  // namespace weft::sim
