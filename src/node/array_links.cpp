// SPDX-License-Identifier: Apache-2.0
#include "node/array_links.hpp"

#include <algorithm>

#include "base/error_text.hpp"

namespace weft::node {

using wire::ArrayConnectionEnd;

namespace {

ArrayConnectionEnd end_of(const raid::PartyAccess& access) {
    switch (access.party.kind) {
        case raid::PartyKind::host:
        case raid::PartyKind::controller:  // it is admitted at boxes as a host, of its own volumes
            return {wire::ArrayRole::host, access.identity};
        case raid::PartyKind::box:
            break;
    }
    return {wire::ArrayRole::box, access.identity};
}

}  // namespace

ArrayLinks::ArrayLinks(World& world, verbs::Device& device, const Options& options)
    : world_(world),
      device_(device),
      options_(options),
      domain_(device.make_domain()),
      lent_timer_(world.make_timer([this] { take_back_what_is_due(); })) {}

ArrayLinks::~ArrayLinks() {
    hear_ = nullptr;
    forget_all();
}

Result<void> ArrayLinks::keep_ready(Buffer memory) {
    WEFT_TRY(auto region,
             domain_->register_memory(memory, Rights::local_write, Addressing::by_address));
    ready_.push_back({memory, std::move(region)});
    return {};
}

void ArrayLinks::set_office(wire::ClusterIdentity cluster, wire::Epoch epoch) {
    if (cluster == cluster_ && epoch == epoch_) return;
    cluster_ = cluster;
    epoch_ = epoch;
    cut_all();
}

void ArrayLinks::appear_as(const ArrayConnectionEnd& self, std::optional<ArraySecret> secret) {
    disappear(self);
    names_.push_back({.end = self, .secret = secret});
}

void ArrayLinks::disappear(const ArrayConnectionEnd& self) {
    if (std::erase_if(names_, [&](auto& name) { return name.end == self; }) == 0) return;
    cut_inbound([&](auto& link) { return link.greeting().to == self; });
}

void ArrayLinks::bar(const ArrayConnectionEnd& self, const ArrayConnectionEnd& peer) {
    auto name = std::ranges::find(names_, self, &Name::end);
    if (name == names_.end() || !name->barred.insert(key_of(peer)).second) return;
    cut_inbound(
        [&](auto& link) { return link.greeting().to == self && link.greeting().from == peer; });
}

void ArrayLinks::let_in(const ArrayConnectionEnd& self, const ArrayConnectionEnd& peer) {
    auto name = std::ranges::find(names_, self, &Name::end);
    if (name != names_.end()) name->barred.erase(key_of(peer));
}

bool ArrayLinks::is_barred(const ArrayConnectionEnd& self, const ArrayConnectionEnd& peer) const {
    auto name = std::ranges::find(names_, self, &Name::end);
    return name != names_.end() && name->barred.contains(key_of(peer));
}

Result<void> ArrayLinks::know(const ArrayConnectionEnd& peer, const ArraySecret& secret,
                              std::vector<Address> where) {
    auto found = peers_.find(key_of(peer));
    if (found != peers_.end()) {
        const auto& known = *found->second;
        if (known.secret() == secret && known.where() == where) return {};
        forget(peer);
    } else if (peers_.size() >= options_.peers_max) {
        return Error{.code = Code::exhausted,
                     .where = static_cast<std::uint32_t>(options_.peers_max)};
    }
    const OutboundPeer::Surroundings around{
        .world = world_, .device = device_, .domain = domain_, .options = options_.link};
    peers_.insert_or_assign(
        key_of(peer),
        std::make_unique<OutboundPeer>(around, owner_of_peers(), peer, secret, std::move(where)));
    return {};
}

void ArrayLinks::forget(const ArrayConnectionEnd& peer) {
    cut_inbound([&](auto& link) { return link.greeting().from == peer; });
    arrivals_.erase(key_of(peer));
    auto found = peers_.extract(key_of(peer));
    if (found) end(found.mapped()->take_all());
}

void ArrayLinks::cut_all() {
    cut_inbound([](auto&) { return true; });
    std::vector<TransferJob> jobs;
    for (auto& [key, peer] : peers_) {
        const auto more = peer->take_all();
        jobs.insert(jobs.end(), more.begin(), more.end());
    }
    end(jobs);
}

void ArrayLinks::forget_all() {
    cut_inbound([](auto&) { return true; });
    auto peers = std::exchange(peers_, {});
    std::vector<TransferJob> jobs;
    for (auto& [key, peer] : peers) {
        const auto more = peer->take_all();
        jobs.insert(jobs.end(), more.begin(), more.end());
    }
    end(jobs);
}

bool ArrayLinks::take_back(SteeringTag tag) {
    bool any = false;
    for (auto& link : inbound_) any |= link->take_back(tag);
    return any;  // the ends are told later
}

void ArrayLinks::take_back_later(SteeringTag tag) {
    lent_.emplace_back(world_.now() + options_.link.patience, tag);
    if (lent_.size() == 1) lent_timer_->set(lent_.front().first);
}

void ArrayLinks::take_back_what_is_due() {
    for (; !lent_.empty() && lent_.front().first <= world_.now(); lent_.pop_front())
        take_back(lent_.front().second);
    if (!lent_.empty()) lent_timer_->set(lent_.front().first);
}

template <class Which>
void ArrayLinks::cut_inbound(Which which) {
    inbound_.remove_if([&](auto& link) { return which(*link); });
}

void ArrayLinks::end(const std::vector<TransferJob>& jobs) {
    for (const auto& job : jobs) job.transfer->completed(Error{.code = Code::disconnected});
}

bool ArrayLinks::is_greeting(ConstBuffer private_data) {
    return decode<wire::ArrayGreeting>(private_data).has_value();
}

void ArrayLinks::take(std::unique_ptr<verbs::ConnectionRequest> request) {
    auto greeting = decode<wire::ArrayGreeting>(request->private_data());
    if (!greeting) return tell(Event::Kind::refused, {}, "it does not greet as parties do");
    auto judged = judge(*greeting);
    if (auto* why = std::get_if<std::string>(&judged)) {
        (void)request->reject({});  // where even that cannot be sent, it is gone already
        return tell(Event::Kind::refused, greeting->from, *why);
    }
    make_room_for_unproved();
    auto link = std::make_unique<InboundLink>(world_, device_, owner_of_links(), options_.link,
                                              std::get<ArraySecret>(judged));
    if (auto done = link->accept(*request, *greeting, epoch_, domain_); !done)
        return tell(Event::Kind::refused, greeting->from, to_text(done.error()));
    inbound_.push_back(std::move(link));
}

std::variant<ArraySecret, std::string> ArrayLinks::judge(
    const wire::ArrayGreeting& greeting) const {
    if (greeting.cluster != cluster_) return "it is of another cluster";
    if (greeting.epoch < epoch_) return "it obeys a controller that is no longer in office";
    auto name = std::ranges::find(names_, greeting.to, &Name::end);
    if (name == names_.end()) return "it looks for somebody else";
    if (name->barred.contains(key_of(greeting.from))) return "it was counted out";
    if (name->secret) return secret_for(*name->secret, greeting.from);
    auto known = peers_.find(key_of(greeting.from));
    if (known == peers_.end()) return "nobody has spoken of it";
    return known->second->secret();
}

/// Whoever connects and proves nothing must not keep those out who can.
void ArrayLinks::make_room_for_unproved() {
    if (unproved() < options_.unproved_max) return;
    auto oldest = std::ranges::find_if(inbound_, [](auto& link) { return !link->is_proved(); });
    if (oldest == inbound_.end()) return;
    const auto who = (*oldest)->greeting().from;
    inbound_.erase(oldest);
    tell(Event::Kind::refused, who, "too many have connected and not proved themselves");
}

void ArrayLinks::proved(InboundLink& link) {
    // The peer began anew, so the one before is of no use to it; perhaps it never saw it end.
    const auto greeting = link.greeting();
    cut_inbound([&](auto& other) {
        return &other != &link && other.is_proved() && other.greeting().from == greeting.from &&
               other.greeting().to == greeting.to;
    });
    ++arrivals_of(greeting.from).counters.connections;
    tell(Event::Kind::linked, greeting.from, {});
}

void ArrayLinks::ended(InboundLink& link, const std::string& why) {
    const auto who = link.greeting().from;
    const auto kind = link.is_proved() ? Event::Kind::lost : Event::Kind::refused;
    const auto said = link.termination();
    if (kind == Event::Kind::lost) {
        auto& arrivals = arrivals_of(who);
        link.count_traffic(arrivals.counters);
        ++arrivals.counters.ended;
        if (said && said->is_protection()) ++arrivals.counters.terminated;
        arrivals.last_end = why;
        arrivals.last_end_at = world_.now();
    }
    const std::string reason = why;
    inbound_.remove_if([&](auto& each) { return each.get() == &link; });
    tell(kind, who, reason);
}

/// Who proved itself is known, or has part of the secret of a session: few. Beyond the bound the
/// one is forgotten whose connection ended first.
ArrayLinks::Arrivals& ArrayLinks::arrivals_of(const ArrayConnectionEnd& peer) {
    if (!arrivals_.contains(key_of(peer)) && arrivals_.size() >= options_.peers_max)
        arrivals_.erase(std::ranges::min_element(
            arrivals_, {}, [](const auto& each) { return each.second.last_end_at; }));
    auto& found = arrivals_[key_of(peer)];
    found.peer = peer;
    return found;
}

// ------------------------------------------------------------------------------------ transfers

void ArrayLinks::fetch(raid::PeerTransfer& transfer) {
    begin({.transfer = &transfer, .way = TransferJob::Way::fetch});
}
void ArrayLinks::send(raid::PeerTransfer& transfer) {
    begin({.transfer = &transfer, .way = TransferJob::Way::send});
}

void ArrayLinks::begin(const TransferJob& job) {
    auto found = peers_.find(key_of(end_of(job.transfer->peer)));
    if (found == peers_.end()) return job.transfer->completed(Error{.code = Code::access_denied});
    if (auto taken = found->second->add(job); !taken) job.transfer->completed(taken.error());
}

std::optional<wire::ArrayGreeting> ArrayLinks::greeting_to(const ArrayConnectionEnd& peer) const {
    if (names_.empty()) return std::nullopt;
    return wire::ArrayGreeting{
        .cluster = cluster_, .epoch = epoch_, .from = names_.front().end, .to = peer, .fresh = {}};
}

void ArrayLinks::connected(const OutboundPeer& peer) {
    tell(Event::Kind::linked, peer.end(), {});
}

void ArrayLinks::connection_ended(const OutboundPeer& peer, bool was_proved,
                                  const std::string& why) {
    tell(was_proved ? Event::Kind::lost : Event::Kind::failed, peer.end(), why);
}

// --------------------------------------------------------------------------------------- facts

std::vector<ArrayLinkFacts> ArrayLinks::facts() const {
    std::vector<ArrayLinkFacts> all;
    for (const auto& [key, peer] : peers_) {
        auto facts = peer->facts();
        const bool was_used = facts.state != ArrayLinkFacts::State::down ||
                              facts.counters.connections + facts.counters.attempts_failed > 0;
        if (was_used) all.push_back(std::move(facts));
    }
    for (const auto& [key, arrivals] : arrivals_) all.push_back(facts_of(arrivals));
    return all;
}

ArrayLinkFacts ArrayLinks::facts_of(const Arrivals& arrivals) const {
    ArrayLinkFacts facts;
    facts.direction = ArrayLinkFacts::Direction::inbound;
    facts.peer = arrivals.peer;
    facts.counters = arrivals.counters;
    facts.last_end = arrivals.last_end;
    facts.since_last_end = world_.now() - arrivals.last_end_at;
    for (const auto& link : inbound_)
        if (link->is_proved() && link->greeting().from == arrivals.peer) link->describe(facts);
    return facts;
}

std::size_t ArrayLinks::links() const {
    auto count = static_cast<std::size_t>(
        std::ranges::count_if(inbound_, [](auto& link) { return link->is_proved(); }));
    for (auto& [key, peer] : peers_) count += peer->is_connected();
    return count;
}

std::size_t ArrayLinks::unproved() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(inbound_, [](auto& link) { return !link->is_proved(); }));
}

void ArrayLinks::tell(Event::Kind kind, const ArrayConnectionEnd& peer, const std::string& why) {
    if (hear_) hear_({kind, peer, why});
}

}  // namespace weft::node
