// SPDX-License-Identifier: Apache-2.0
#include "node/iscsi_server.hpp"

#include <algorithm>
#include <cstring>

#include "node/connection_room.hpp"
#include "node/reservation_file.hpp"

namespace weft::node {
namespace {

constexpr Duration tick_time = std::chrono::seconds(1);
/// What a session that holds nothing may ask for and have at once, whatever others hold.
constexpr std::size_t reserve_bytes = 256u << 10;
/// So that one command alone can have the longest transfer.
constexpr std::size_t pool_bytes_min = 2 * scsi::transfer_bytes_max;

}  // namespace

struct IscsiServer::Connection {
    std::unique_ptr<Stream> stream;
    std::optional<iscsi::TargetConnection> engine;
    std::optional<iscsi::TcpTargetMover> tcp;
    std::unique_ptr<iscsi::TargetDatamover> iser;  ///< from the beginning, or since it has turned
    bool hung_up = false;

    bool is_open() const { return !hung_up; }
    bool is_unfinished() const { return engine->logging_in(); }
    void hang_up() {
        hung_up = true;
        if (iser) return iser->close();
        stream.reset();
        if (tcp) tcp->closed(std::nullopt);
    }
};

struct IscsiServer::Target {
    Target(scsi::TargetOptions options, std::unique_ptr<ReservationFile> kept)
        : reservations(std::move(kept)), device(std::move(options)) {}

    std::unique_ptr<ReservationFile> reservations;  ///< none: they end with the target
    scsi::Target device;
    bool leaving = false;
    bool quiet = false;
    std::function<void()> gone;
};

IscsiServer::IscsiServer(World& world, Options options)
    : world_(world),
      options_(options),
      pool_({.bytes = std::max(options.buffer_bytes, pool_bytes_min),
             .reserve_bytes = reserve_bytes,
             .idle_bytes = options.idle_buffer_bytes}),
      node_({.wishes = options.wishes,
             .discovery = options.discovery,
             .sessions_per_initiator = options.connections_per_host_max,
             .now = [&world] { return world.now(); },
             .defer = [&world](std::function<void()> task) { world.defer(std::move(task)); },
             .chance =
                 [&world](Buffer octets) {
                     while (!octets.empty()) {
                         auto word = world.random();
                         auto count = std::min(octets.size(), sizeof word);
                         std::memcpy(octets.data(), &word, count);
                         octets = octets.subspan(count);
                     }
                 }}),
      first_octets_(
          world, {.waiting_max = iscsi::logins_max, .patience = iscsi::login_time},
          [this](std::unique_ptr<Stream> stream, Spoken spoken, ConstBuffer read_already) {
              if (spoken == Spoken::mpa && iser_)
                  (void)iser_->respond(std::move(stream), read_already);  // refused, it is closed
              else if (spoken == Spoken::json && options_.json)
                  options_.json(std::move(stream), read_already);
              else
                  begin_tcp(std::move(stream), read_already);
          }) {
    timer_ = world_.make_timer([this] { tick(); });
    if (!options.iser) return;
    auto made = iscsi::IserTarget::make(world, options.iser_options,
                                        [this](std::unique_ptr<verbs::ConnectionRequest> request) {
                                            begin_iser(std::move(request));
                                        });
    if (made) iser_ = std::move(*made);  // if there is no memory for it, TCP is served all the same
}

IscsiServer::~IscsiServer() {
    *alive_ = false;
    for (auto& timer : timers_) timer->reset();
}

// --------------------------------------------------------------------------- targets and units

IscsiServer::Target* IscsiServer::find(const std::string& name) {
    for (auto& target : targets_)
        if (!target.leaving && target.device.name() == name) return &target;
    return nullptr;
}

Result<void> IscsiServer::add_target(const std::string& name, iscsi::TargetRules rules) {
    std::unique_ptr<ReservationFile> reservations;
    if (!options_.state_folder.empty()) {
        auto opened =
            ReservationFile::open(world_, ReservationFile::path_for(options_.state_folder, name));
        if (!opened) return Error{.code = Code::io_failed, .detail = opened.error().detail};
        reservations = std::move(*opened);
    }
    auto& target = targets_.emplace_back(
        scsi::TargetOptions{.name = name,
                            .pool = &pool_,
                            .surroundings = {.now = [this] { return world_.now(); },
                                             .call_later =
                                                 [this](Duration when, std::function<void()> task) {
                                                     call_later(when, std::move(task));
                                                 }}},
        std::move(reservations));
    target.device.add_port(1, 1);
    auto offered = node_.offer(name, target.device, std::move(rules));
    if (offered) return {};
    targets_.pop_back();
    return offered.error();
}

/// Now, but not from inside; or when the time has come.
void IscsiServer::call_later(Duration when, std::function<void()> task) {
    if (when <= Duration::zero()) {
        world_.defer([alive = alive_, task = std::move(task)] {
            if (*alive) task();
        });
        return;
    }
    auto slot = std::make_shared<std::unique_ptr<Timer>>();
    *slot = world_.make_timer([slot, task = std::move(task), this] {
        task();
        // A timer cannot be destroyed from inside itself.
        world_.defer([slot] { slot->reset(); });
    });
    (*slot)->set(world_.now() + when);
    timers_.push_back(slot);
    std::erase_if(timers_, [](auto& each) { return *each == nullptr; });
}

Result<void> IscsiServer::remove_target(const std::string& name, std::function<void()> gone) {
    auto* target = find(name);
    if (target == nullptr) return Error{.code = Code::not_found};
    target->leaving = true;
    target->gone = std::move(gone);
    return node_.withdraw(name, [this, target] { leave_target(*target); });
}

/// No session uses the target any more: its units finish what they do on their own account.
void IscsiServer::leave_target(Target& target) {
    target.device.drain([this, &target] {
        target.quiet = true;
        world_.defer([this, &target, alive = alive_] {
            if (!*alive) return;
            auto told = std::move(target.gone);
            targets_.remove_if([&](auto& each) { return &each == &target; });
            if (told) told();
        });
    });
}

Result<void> IscsiServer::add_unit(const std::string& target, std::uint32_t number,
                                   BlockDevice& device, scsi::UnitOptions options) {
    auto* found = find(target);
    if (found == nullptr) return Error{.code = Code::not_found};
    if (options.reservations == nullptr) options.reservations = found->reservations.get();
    auto added = found->device.add_unit(number, device, std::move(options));
    if (!added) return added.error();
    return {};
}

Result<void> IscsiServer::remove_unit(const std::string& target, std::uint32_t number,
                                      std::function<void()> gone) {
    auto* found = find(target);
    if (found == nullptr) return Error{.code = Code::not_found};
    return found->device.remove_unit(number, std::move(gone));
}

// --------------------------------------------------------------------------------- connections

Result<Address> IscsiServer::listen(const Address& address) {
    WEFT_TRY(auto listener, world_.listen(address, [this](std::unique_ptr<Stream> stream) {
        accepted(std::move(stream));
    }));
    listeners_.push_back(std::move(listener));
    node_.add_portal({.address = listeners_.back()->address()});
    return listeners_.back()->address();
}

bool IscsiServer::has_room(const Address& remote, const std::string& peer) {
    // An unfinished login may be more than one: who was silent so far may begin at any moment.
    const ConnectionRoom room{.connections_max = options_.connections_max,
                              .handshakes_max = iscsi::logins_max,
                              .of_one_peer_max = options_.connections_per_host_max};
    const auto admission = make_room(connections_, room, [&](const Connection& each) {
        return each.engine->origin().remote.host == remote.host;
    });
    if (admission == Admission::granted) return true;
    const bool of_one = admission == Admission::too_many_of_one_peer;
    tell({.kind = Event::Kind::refused,
          .peer = peer,
          .fault = Error{.code = Code::exhausted},
          .why = of_one ? remote.host + " has " + std::to_string(room.of_one_peer_max) +
                              " connections already, and may not have more"
                        : "there are " + std::to_string(room.connections_max) +
                              " connections already"});
    return false;
}

std::optional<std::string> IscsiServer::refusal_in(const Event& event) {
    if (event.kind == Event::Kind::refused)
        return "a connection from " + event.peer + " was refused: " + event.why;
    if (event.kind == Event::Kind::left && event.status == wire::LoginStatus::out_of_resources)
        return event.initiator + " at " + event.peer +
               " was refused a session: it has as many as it may with one target, or all are taken";
    return std::nullopt;
}

void IscsiServer::accepted(std::unique_ptr<Stream> stream) {
    ++accepted_;
    if (!iser_ && !options_.json) return begin_tcp(std::move(stream), {});
    first_octets_.add(std::move(stream));
}

IscsiServer::Place IscsiServer::add_connection(iscsi::Origin origin) {
    auto which = connections_.emplace(connections_.end());
    auto logged_in = [this, which] {
        tell({.kind = Event::Kind::logged_in,
              .peer = which->engine->origin().peer,
              .initiator = which->engine->initiator_name(),
              .target = which->engine->target_name()});
    };
    iscsi::TargetConnection::Holder holder{.logged_in = logged_in,
                                           .gone = [this, which] { gone(which); }};
    if (iser_)
        holder.turn_to_rdma = [this, which](const iscsi::ConnectionTerms& terms) {
            turn_to_rdma(which, terms);
        };
    which->engine.emplace(node_, std::move(origin), std::move(holder));
    if (connections_.size() == 1) timer_->set(world_.now() + tick_time);
    return which;
}

void IscsiServer::begin_tcp(std::unique_ptr<Stream> stream, ConstBuffer read_already) {
    // Not before it has spoken: whoever manages must get in where initiators do not.
    if (!has_room(stream->remote(), stream->peer())) return;
    auto which = add_connection({stream->peer(), stream->local(), stream->remote()});
    which->stream = std::move(stream);
    which->tcp.emplace(*which->engine, [which] {
        if (which->stream) which->stream->wake();
    });
    which->engine->use(*which->tcp);
    (void)feed(*which->tcp, read_already);  // a few octets of a header, which it always wants
    which->stream->drive(*which->tcp);
    tell({.kind = Event::Kind::connected, .peer = which->engine->origin().peer});
}

void IscsiServer::begin_iser(std::unique_ptr<verbs::ConnectionRequest> request) {
    if (rdma_taker_) rdma_taker_(request);
    if (!request) return;
    auto remote = request->remote();
    bool bracketed = remote.host.find(':') != std::string::npos;
    auto peer =
        (bracketed ? "[" + remote.host + "]" : remote.host) + ":" + std::to_string(remote.port);
    if (!has_room(remote, peer)) return;
    auto which = add_connection({peer, request->local(), remote, true});
    auto mover = iser_->accept(std::move(request), *which->engine);
    if (!mover) return which->engine->lost(mover.error());
    which->iser = std::move(*mover);
    which->engine->use(*which->iser);
    tell({.kind = Event::Kind::connected, .peer = which->engine->origin().peer});
}

/// The final Login Response has been given to TCP. When its last octet has gone, RDMA follows.
void IscsiServer::turn_to_rdma(Place which, const iscsi::ConnectionTerms& terms) {
    which->tcp->release_when_sent([this, which, terms] {
        auto mover = iser_->switch_over(std::move(which->stream), *which->engine, terms);
        if (mover) {
            which->iser = std::move(*mover);
            which->engine->use(*which->iser);
            return;
        }
        world_.defer([which, alive = alive_, why = mover.error()] {
            if (*alive) which->engine->lost(why);
        });
    });
}

void IscsiServer::tick() {
    const auto now = world_.now();
    for (auto& connection : connections_) connection.engine->tick(now);
    if (!connections_.empty()) timer_->set(now + tick_time);
}

void IscsiServer::gone(Place which) {
    auto& engine = *which->engine;
    tell({.kind = Event::Kind::left,
          .peer = engine.origin().peer,
          .initiator = engine.initiator_name(),
          .target = engine.target_name(),
          .status = engine.login_status(),
          .fault = engine.fault()});
    // We are being called from inside the connection: it can only be destroyed later.
    world_.defer([this, which, alive = alive_] {
        if (*alive) connections_.erase(which);
    });
}

void IscsiServer::hang_up_all() {
    for (auto& connection : connections_) connection.hang_up();
}

void IscsiServer::drain() {
    listeners_.clear();
    first_octets_.clear();
    node_.refuse_logins();
    for (auto& connection : connections_) connection.engine->ask_to_leave(world_.now());
}

void IscsiServer::stop() {
    listeners_.clear();
    node_.refuse_logins();
    first_octets_.clear();
    hang_up_all();
    if (std::exchange(stopping_, true)) return;
    std::vector<std::string> names;
    for (auto& target : targets_)
        if (!target.leaving) names.push_back(target.device.name());
    for (const auto& name : names) (void)remove_target(name, {});
}

std::optional<Address> IscsiServer::origin_of(const scsi::Nexus& nexus) const {
    for (const auto& session : node_.sessions())
        if (session->nexus() == &nexus && !session->connections().empty())
            return session->connections().front()->origin().remote;
    return std::nullopt;
}

bool IscsiServer::quiet() const {
    return connections_.empty() && node_.quiet() && (!stopping_ || targets_.empty());
}

}  // namespace weft::node
