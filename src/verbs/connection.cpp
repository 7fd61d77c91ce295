// SPDX-License-Identifier: Apache-2.0
#include "verbs/connection.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "verbs/limits.hpp"

namespace weft::verbs {
namespace {

iwarp::Wishes wishes_of(const ConnectOptions& options) {
    return {.revision = static_cast<std::uint8_t>(options.plain_startup ? 1 : 2),
            .checksum = options.checksums,
            .markers = options.markers,
            .peer_to_peer = options.peer_to_peer,
            .show_ourselves = !options.only_standard,
            .trust_plain_siw = !options.only_standard,
            .inbound_reads = options.inbound_reads,
            .outbound_reads = options.outbound_reads,
            .inbound_reads_max = limits::reads};
}

}  // namespace

Result<std::unique_ptr<ConnectionObject>> ConnectionObject::connect(
    std::shared_ptr<DeviceCore> core, const Address& address, QueuePairObject& queue_pair,
    const ConnectOptions& options, ConnectionEvents& events) {
    auto& world = core->world;
    auto made = std::make_unique<ConnectionObject>(std::move(core));
    // Made once to have the wishes and the private data refused now, not when we are connected.
    if (auto good = iwarp::Startup::initiate(wishes_of(options), options.private_data, Instant{});
        !good)
        return good.error();
    WEFT_TRY(made->stream_, world.connect(address, *made, options.from));
    made->private_data_.assign(options.private_data.begin(), options.private_data.end());
    made->prepare(queue_pair, options, events);
    return made;
}

Result<std::unique_ptr<ConnectionObject>> ConnectionObject::connect_over(
    std::shared_ptr<DeviceCore> core, std::unique_ptr<Stream> stream, QueuePairObject& queue_pair,
    const ConnectOptions& options, ConnectionEvents& events) {
    auto made = std::make_unique<ConnectionObject>(std::move(core));
    WEFT_TRY(auto startup, iwarp::Startup::initiate(wishes_of(options), options.private_data,
                                                    made->core_->world.now()));
    made->startup_ = std::make_unique<iwarp::Startup>(std::move(startup));
    made->stream_ = std::move(stream);
    made->prepare(queue_pair, options, events);
    made->stream_->drive(*made);
    return made;
}

void ConnectionObject::prepare(QueuePairObject& queue_pair, const ConnectOptions& options,
                               ConnectionEvents& events) {
    options_ = options;
    options_.private_data = {};
    events_ = &events;
    queue_pair_ = &queue_pair;
    queue_pair.link(*this);
    if (options.traffic_class) stream_->set_traffic_class(*options.traffic_class);
}

Result<std::unique_ptr<ConnectionObject>> ConnectionObject::respond(
    std::shared_ptr<DeviceCore> core, std::unique_ptr<Stream> stream, ConstBuffer read_already,
    RequestSink& sink) {
    auto made = std::make_unique<ConnectionObject>(std::move(core));
    WEFT_TRY(auto startup, iwarp::Startup::respond({}, made->core_->world.now()));
    made->startup_ = std::make_unique<iwarp::Startup>(std::move(startup));
    made->role_ = iwarp::Role::responder;
    made->sink_ = &sink;
    made->stream_ = std::move(stream);
    if (auto taken = made->take(read_already); !taken) return taken.error();
    made->stream_->drive(*made);
    return made;
}

/// What someone else has read for us, as if the world brought it now.
Result<void> ConnectionObject::take(ConstBuffer octets) {
    while (!octets.empty() && !failure_) {
        auto place = want();
        if (place.empty()) return Error{.code = Code::malformed};  // more than a request
        auto count = std::min(place.size(), octets.size());
        std::copy_n(octets.begin(), count, place.begin());
        octets = octets.subspan(count);
        filled(count);
    }
    if (failure_) return *failure_;
    return {};
}

ConnectionObject::~ConnectionObject() {
    stream_.reset();  // from here on no byte of ours is lent
    release_queue_pair(LifeEvent::close_asked);
}

void ConnectionObject::release_queue_pair(LifeEvent how) {
    if (!queue_pair_) return;
    auto* queue_pair = std::exchange(queue_pair_, nullptr);
    queue_pair->note(how);
    queue_pair->note(
        LifeEvent::stream_ended);  // also if we have closed: nothing will be heard of it
    queue_pair->unlink();
}

Result<void> ConnectionObject::accept(QueuePairObject& queue_pair, const ConnectOptions& options,
                                      ConnectionEvents& events) {
    if (!stream_ || !startup_) return Error{.code = Code::disconnected};
    auto accepted = startup_->accept(wishes_of(options), options.private_data, core_->world.now());
    if (!accepted) return accepted;
    prepare(queue_pair, options, events);
    stream_->wake();
    return {};
}

Result<void> ConnectionObject::reject(std::unique_ptr<ConnectionObject>& connection,
                                      ConstBuffer private_data) {
    auto& one = *connection;
    if (!one.stream_ || !one.startup_) return Error{.code = Code::disconnected};
    if (auto rejected = one.startup_->reject(private_data, one.core_->world.now()); !rejected)
        return rejected;
    one.rejecting_ = true;
    one.hang_up_at_ = one.core_->world.now() + limits::rejection_grace;
    one.stream_->wake();
    auto core = one.core_;
    core->let_depart(std::move(connection));
    return {};
}

void ConnectionObject::opened() {
    auto startup = iwarp::Startup::initiate(wishes_of(options_), private_data_, core_->world.now());
    WEFT_CHECK(startup);  // the same was accepted in connect()
    startup_ = std::make_unique<iwarp::Startup>(std::move(*startup));
    private_data_ = {};
}

Buffer ConnectionObject::want() {
    if (stage_ == Stage::running) return session() ? session()->want() : Buffer{};
    return startup_ && !failure_ ? startup_->want() : Buffer{};
}

void ConnectionObject::filled(std::size_t count) {
    traffic_.octets_received += count;
    if (stage_ == Stage::running) return session()->filled(count);
    auto event = startup_->filled(count);
    event ? note(*event) : give_up(event.error());
}

std::size_t ConnectionObject::take_ahead(ConstBuffer bytes) {
    if (stage_ != Stage::running || !session()) return 0;
    const auto taken = session()->take_ahead(bytes);
    traffic_.octets_received += taken;
    return taken;
}

std::size_t ConnectionObject::pending(std::span<ConstBuffer> pieces) {
    if (stage_ == Stage::running) return session() ? session()->pending(pieces) : 0;
    return startup_ ? startup_->pending(pieces) : 0;
}

void ConnectionObject::sent(std::size_t count) {
    traffic_.octets_sent += count;
    if (stage_ == Stage::running) return session()->sent(count);
    auto event = startup_->sent(count);
    event ? note(*event) : give_up(event.error());
}

bool ConnectionObject::finished() const {
    if (stage_ == Stage::running) {
        auto* session = queue_pair_ ? queue_pair_->session() : nullptr;
        return !session || session->finished();
    }
    return stage_ == Stage::over || failure_ || (rejecting_ && !hang_up_at_);
}

std::optional<Instant> ConnectionObject::deadline() const {
    if (stage_ == Stage::running) {
        auto* session = queue_pair_ ? queue_pair_->session() : nullptr;
        if (!session) return std::nullopt;
        return session->finished() ? close_by_.value_or(Instant{}) : session->deadline();
    }
    if (hang_up_at_) return hang_up_at_;
    return startup_ && !failure_ ? startup_->deadline() : std::nullopt;
}

void ConnectionObject::tick(Instant now) {
    if (stage_ == Stage::running) {
        if (session()) session()->finished() ? hurry_close(now) : session()->tick(now);
        return;
    }
    if (hang_up_at_) {
        if (now >= *hang_up_at_) hang_up_at_.reset();
        return;
    }
    if (!startup_ || failure_) return;
    if (auto in_time = startup_->tick(now); !in_time) failure_ = in_time.error();
}

/// A peer that takes nothing more would keep us from closing for as long as it likes.
void ConnectionObject::hurry_close(Instant now) {
    if (!close_by_) close_by_ = session()->is_stuck() ? now : now + limits::closing_patience;
    if (now >= *close_by_) drop_stream();
}

void ConnectionObject::drop_stream() {
    stream_.reset();
    end(LifeEvent::stream_lost, Error{.code = Code::timed_out});
}

void ConnectionObject::note(std::optional<iwarp::StartupEvent> event) {
    if (!event) return;
    auto data = startup_->peer_private_data();
    switch (*event) {
        case iwarp::StartupEvent::requested:
            peer_private_data_.assign(data.begin(), data.end());
            has_request_ = true;
            if (sink_) sink_->requested(*this);
            return;
        case iwarp::StartupEvent::established:
            if (role_ == iwarp::Role::initiator)
                peer_private_data_.assign(data.begin(), data.end());
            begin_session();
            return;
        case iwarp::StartupEvent::rejected:
            if (role_ == iwarp::Role::initiator)
                peer_private_data_.assign(data.begin(), data.end());
            rejecting_ = true;
            return;
    }
}

void ConnectionObject::begin_session() {
    auto terms = startup_->terms();
    facts_ = {.checksums = terms.checksum,
              .markers_in = terms.markers_in,
              .markers_out = terms.markers_out,
              .inbound_reads = terms.inbound_reads,
              .outbound_reads = terms.outbound_reads,
              .extended = terms.peer == iwarp::Peer::weft,
              .local = stream_->local(),
              .remote = stream_->remote()};
    stage_ = Stage::running;
    startup_.reset();
    if (!queue_pair_) return;  // destroyed while its connection was being made: finished() says so
    queue_pair_->begin_session(
        terms, {.placement = options_.place_before_check ? iwarp::Placement::eager
                                                         : iwarp::Placement::verified,
                .segment_size = stream_->segment_size()});
    // The peer's first bytes may be here already, and were not wanted until now.
    stream_->wake();
    // A responder whose peer will show that it is ready waits for that.
    bool waits = role_ == iwarp::Role::responder && terms.ready != iwarp::ReadyMessage::none;
    if (!waits) tell(News::established);
}

/// The start-up failed. Of some faults the peer is told in a Terminate.
void ConnectionObject::give_up(Error why) {
    failure_ = why;
    if (!iwarp::is_to_be_explained(why) || !queue_pair_) return;
    auto terms = startup_->terms();
    terms.ready = iwarp::ReadyMessage::none;
    stage_ = Stage::running;
    startup_.reset();
    queue_pair_->begin_session(terms, {.segment_size = stream_->segment_size()}).fail(why);
}

void ConnectionObject::wake() {
    if (stream_) stream_->wake();
}

void ConnectionObject::peer_spoke() {
    if (role_ == iwarp::Role::responder) tell(News::established);
}

void ConnectionObject::queue_pair_gone() {
    queue_pair_ = nullptr;
    stream_.reset();  // its session is about to go: nothing of it may be lent
    end(LifeEvent::close_asked, Error{.code = Code::disconnected});
}

void ConnectionObject::disconnect() {
    if (stage_ == Stage::running && session()) {
        queue_pair_->note(LifeEvent::close_asked);
        session()->close();
        return;
    }
    stream_.reset();
    end(LifeEvent::close_asked, Error{.code = Code::disconnected});
}

void ConnectionObject::closed(std::optional<Error> why) {
    stream_.reset();
    // An orderly end has no more to say than that it is one; a reset has the system's own words.
    bool lost = why && (why->code != Code::disconnected || why->detail != 0);
    end(lost ? LifeEvent::stream_lost : LifeEvent::stream_ended, why);
}

void ConnectionObject::end(LifeEvent how, std::optional<Error> why) {
    if (stage_ == Stage::over) return;
    bool began = stage_ == Stage::running && !failure_;
    stage_ = Stage::over;
    if (!failure_) failure_ = why.value_or(Error{.code = Code::disconnected});
    release_queue_pair(how);
    // Both destroy this.
    if (sink_) return std::exchange(sink_, nullptr)->abandoned(*this);
    if (role_ == iwarp::Role::responder && rejecting_) return depart();
    tell(began ? News::disconnected : rejecting_ ? News::rejected : News::failed);
}

void ConnectionObject::depart() {
    auto core = core_;
    core->has_departed(*this);
}

void ConnectionObject::tell(News news) {
    if (!events_) return;
    if (news == News::established && std::exchange(established_told_, true)) return;
    // A responder's connection that broke before the peer was ready was never there.
    if (news == News::disconnected && !established_told_) news = News::failed;
    if (news == News::established)
        established_due_ = true;
    else
        end_due_ = news;
    core_->announcer->add(*this);
}

void ConnectionObject::announce() {
    auto news = end_due_.value_or(News::established);
    if (std::exchange(established_due_, false)) {
        if (end_due_) core_->announcer->add(*this);
        news = News::established;
    }
    switch (news) {  // each may destroy this
        case News::established:
            return events_->established();
        case News::rejected:
            return events_->rejected();
        case News::failed:
            return events_->failed(*failure_);
        case News::disconnected:
            return events_->disconnected();
    }
}

}  // namespace weft::verbs
