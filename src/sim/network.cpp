// SPDX-License-Identifier: Apache-2.0
#include "sim/network.hpp"

#include <algorithm>
#include <cerrno>

#include "sim/limits.hpp"

namespace weft::sim {
namespace {

bool is_any(const std::string& host) {
    return host.empty() || host == "::" || host == "0.0.0.0";
}

bool reaches(const std::string& listening_machine, const Address& listening,
             const std::string& from_machine, const Address& wanted) {
    bool same_machine = listening_machine == from_machine;
    if (wanted.is_unix() || listening.is_unix()) return same_machine && wanted == listening;
    if (wanted.port != listening.port) return false;
    if (is_loopback(wanted))
        return same_machine && (is_loopback(listening) || is_any(listening.host));
    return wanted.host == listening.host ||
           (is_any(listening.host) && wanted.host == listening_machine);
}

}  // namespace

class Network::Registration final : public Listener {
public:
    Registration(Network& network, ListenerId id, Address address)
        : network_(network), id_(id), address_(std::move(address)) {}
    ~Registration() override { network_.listeners_.erase(id_); }
    Address address() const override { return address_; }

private:
    Network& network_;
    ListenerId id_;
    Address address_;
};

void Network::set_options(const Address& address, const LinkOptions& options) {
    std::erase_if(options_, [&](const auto& entry) { return entry.first == address; });
    options_.emplace_back(address, options);
}

const LinkOptions& Network::options_for(const Address& address) const {
    for (const auto& [known, options] : options_)
        if (known == address) return options;
    return default_options_;
}

bool Network::is_taken(const std::string& machine, const Address& address) const {
    return std::any_of(listeners_.begin(), listeners_.end(), [&](const auto& entry) {
        return entry.second->machine == machine && entry.second->address == address;
    });
}

Result<std::unique_ptr<Listener>> Network::listen(const std::string& machine, Address address,
                                                  World::Accepted accepted) {
    if (listeners_.size() >= limits::listeners) return Error{.code = Code::exhausted};
    if (!address.is_unix() && address.port == 0) address.port = ++last_free_port_;
    if (is_taken(machine, address)) return Error{.code = Code::io_failed, .detail = EADDRINUSE};
    ListenerId id = ++last_listener_;
    listeners_[id] =
        std::make_shared<ListenerRecord>(ListenerRecord{machine, address, std::move(accepted)});
    return std::unique_ptr<Listener>(std::make_unique<Registration>(*this, id, address));
}

Result<std::unique_ptr<Stream>> Network::connect(const std::string& machine, const Address& address,
                                                 StreamEngine& engine) {
    if (links_.size() >= limits::links) return Error{.code = Code::exhausted};
    if (dark_machines_.contains(machine)) return Error{.code = Code::disconnected};
    LinkId id{++last_link_};
    Link::Owner owner{
        .wants_acceptor = [this](Link& link) { answer(link); },
        .is_over =
            [this](LinkId over) {
                // Not at once: the link may be in the middle of a call.
                clockwork_.schedule.soon("link over", static_cast<std::uint64_t>(over),
                                         [this, over] { links_.erase(over); });
            },
        .sends =
            [this](Link& link, Side from, ConstBuffer octets) {
                if (watcher_)
                    watcher_(
                        {link.id(), from, link.machine(from), link.machine(other(from)), octets});
            },
        .shares = [this](Link& link, Side from, Instant ready,
                         std::size_t bytes) { return pass(link, from, ready, bytes); },
    };
    auto link =
        std::make_shared<Link>(clockwork_, id, options_for(address), address, std::move(owner));
    links_[id] = link;
    link->machine(Side::connector) = machine;
    bool stays_home = address.is_unix() || is_loopback(address);
    link->machine(Side::acceptor) = stays_home ? machine : address.host;
    return link->connect(engine);
}

Result<std::vector<Address>> Network::resolve(const Address& address) const {
    bool is_known = address.is_unix() || is_loopback(address) || is_any(address.host) ||
                    machines_.contains(address.host) ||
                    std::any_of(listeners_.begin(), listeners_.end(), [&](const auto& entry) {
                        return entry.second->address.host == address.host;
                    });
    if (!is_known) return Error{.code = Code::not_found};
    if (address.is_unix() || !address.host.empty()) return std::vector{address};
    return std::vector{Address::tcp("localhost", address.port)};
}

Network::ListenerRecord* Network::find_listener(const std::string& from_machine,
                                                const Address& address) {
    for (const auto& [id, record] : listeners_)
        if (reaches(record->machine, record->address, from_machine, address)) return record.get();
    return nullptr;
}

void Network::answer(Link& link) {
    ListenerRecord* found = find_listener(link.machine(Side::connector), link.address());
    if (found != nullptr) link.machine(Side::acceptor) = found->machine;
    if (dark_machines_.contains(link.machine(Side::acceptor)) || is_lost(link))
        return link.leave_unanswered();
    const auto& connector = link.machine(Side::connector);
    const auto& acceptor = link.machine(Side::acceptor);
    const bool apart = separated_.contains(std::minmax(connector, acceptor)) ||
                       cut_off_.contains({connector, acceptor});
    if (found == nullptr || apart) return link.refuse();
    // A copy: the callback may destroy its listener.
    auto accepted = found->accepted;
    if (const auto paused = paused_.find(acceptor); paused != paused_.end()) {
        link.hold(Side::acceptor);
        return paused->second.push_back({std::move(accepted), link.accept()});
    }
    accepted(link.accept());
}

/// Of the bytes that find no room in a queue TCP hears nothing, and sends them again after a while.
Instant Network::pass(Link& link, Side from, Instant ready, std::size_t bytes) {
    if (lines_.empty() || bytes == 0) return ready;
    auto pass_one = [&](const std::string& machine, Line Lines::*way) {
        const auto found = lines_.find(machine);
        if (found == lines_.end()) return;
        const auto passed = (found->second.*way).pass(ready, bytes, clockwork_.random);
        if (passed.again) sent_again_ += bytes;
        ready = passed.when;
    };
    pass_one(link.machine(from), &Lines::out);
    pass_one(link.machine(other(from)), &Lines::in);
    return ready;
}

void Network::set_lines(const std::string& machine, const LineOptions& options) {
    auto& lines = lines_[machine];
    lines.out.set_options(options);
    lines.in.set_options(options);
}

void Network::cut_off(const std::string& from, const std::string& to) {
    cut_off_.insert({from, to});
    for (const auto& [id, link] : links_)
        if (link->machine(Side::connector) == from && link->machine(Side::acceptor) == to)
            link->reset();
}

void Network::pause(const std::string& machine) {
    paused_.try_emplace(machine);
    for (const auto& [id, link] : links_)
        for (Side side : {Side::connector, Side::acceptor})
            if (link->machine(side) == machine) link->hold(side);
}

void Network::resume(const std::string& machine) {
    auto found = paused_.extract(machine);
    if (!found) return;
    for (const auto& [id, link] : links_)
        for (Side side : {Side::connector, Side::acceptor})
            if (link->machine(side) == machine) link->release(side);
    auto waiting = std::make_shared<std::vector<Accepting>>(std::move(found.mapped()));
    clockwork_.schedule.soon("accepted late", 0, [waiting] {
        for (auto& each : *waiting) each.accepted(std::move(each.stream));
    });
}

std::vector<LinkId> Network::links() const {
    std::vector<LinkId> ids;
    for (const auto& [id, link] : links_)
        if (!link->has_left(Side::connector) || !link->has_left(Side::acceptor)) ids.push_back(id);
    return ids;
}

std::optional<LinkId> Network::find(const Address& connector) const {
    for (const auto& [id, link] : links_)
        if (link->address_of(Side::connector) == connector) return id;
    return std::nullopt;
}

std::string Network::connector_of(LinkId id) {
    Link* link = find(id);
    return link ? link->machine(Side::connector) : std::string{};
}

Link* Network::find(LinkId link) {
    auto found = links_.find(link);
    return found == links_.end() ? nullptr : found->second.get();
}

void Network::reset(LinkId id) {
    if (Link* link = find(id)) link->reset();
}

void Network::half_open(LinkId id, Side gone) {
    if (Link* link = find(id)) link->half_open(gone);
}

void Network::partition(LinkId id, Side from) {
    if (Link* link = find(id)) link->partition(from);
}

void Network::heal(LinkId id) {
    if (Link* link = find(id)) link->heal();
}

void Network::clog(LinkId id, Duration extra_delay) {
    if (Link* link = find(id)) link->clog(extra_delay);
}

void Network::corrupt(LinkId id, Side from) {
    if (Link* link = find(id)) link->corrupt(from);
}

void Network::separate(const std::string& one, const std::string& other) {
    separated_.insert(std::minmax(one, other));
    for (const auto& [id, link] : links_)
        if (std::minmax(link->machine(Side::connector), link->machine(Side::acceptor)) ==
            std::minmax(one, other))
            link->reset();
}

void Network::unite(const std::string& one, const std::string& other) {
    separated_.erase(std::minmax(one, other));
}

bool Network::is_lost(Link& link) const {
    const auto& host = link.address().host;
    return lost_hosts_.contains(host) || lost_from_.contains({link.machine(Side::connector), host});
}

void Network::lose(const std::string& host) {
    lost_hosts_.insert(host);
    for (const auto& [id, link] : links_)
        if (is_lost(*link))
            for (Side side : {Side::connector, Side::acceptor}) link->partition(side);
}

void Network::lose_from(const std::string& machine, const std::string& host) {
    lost_from_.insert({machine, host});
    for (const auto& [id, link] : links_)
        if (is_lost(*link))
            for (Side side : {Side::connector, Side::acceptor}) link->partition(side);
}

void Network::regain(const std::string& host) {
    lost_hosts_.erase(host);
    for (const auto& [id, link] : links_)
        if (link->address().host == host) {
            link->heal();
            link->lighten(Side::acceptor);
        }
}

void Network::regain_all() {
    lost_from_.clear();
    lost_hosts_.clear();
    for (const auto& [id, link] : links_) {
        if (dark_machines_.contains(link->machine(Side::acceptor))) continue;
        link->heal();
        link->lighten(Side::acceptor);
    }
}

void Network::power_cut(const std::string& machine) {
    const auto forgotten = paused_.extract(machine);
    dark_machines_.insert(machine);
    std::erase_if(listeners_, [&](const auto& entry) { return entry.second->machine == machine; });
    for (const auto& [id, link] : links_)
        for (Side side : {Side::connector, Side::acceptor})
            if (link->machine(side) == machine) link->darken(side);
}

void Network::go_dark(const std::string& machine) {
    dark_machines_.insert(machine);
    std::erase_if(listeners_, [&](const auto& entry) { return entry.second->machine == machine; });
    for (const auto& [id, link] : links_)
        for (Side side : {Side::connector, Side::acceptor})
            if (link->machine(side) == machine) link->half_open(side);
}

void Network::power_on(const std::string& machine) {
    dark_machines_.erase(machine);
    for (const auto& [id, link] : links_)
        for (Side side : {Side::connector, Side::acceptor})
            if (link->machine(side) == machine) link->lighten(side);
}

}  // namespace weft::sim
