// SPDX-License-Identifier: Apache-2.0
#include "sim/link.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "sim/limits.hpp"

namespace weft::sim {
namespace {

class LinkStream final : public Stream {
public:
    LinkStream(std::shared_ptr<Link> link, Side side) : link_(std::move(link)), side_(side) {}
    ~LinkStream() override { link_->abandon(side_); }

    void drive(StreamEngine& engine) override { link_->drive(side_, engine); }
    void wake() override { link_->wake(side_); }
    std::string peer() const override { return link_->peer(side_); }
    Address local() const override { return link_->address_of(side_); }
    Address remote() const override { return link_->address_of(other(side_)); }
    std::size_t segment_size() const override { return link_->segment_size(); }

    LinkId id() const { return link_->id(); }

private:
    std::shared_ptr<Link> link_;
    Side side_;
};

}  // namespace

LinkId link_of(const Stream& stream) {
    return dynamic_cast<const LinkStream&>(stream).id();
}

bool is_loopback(const Address& address) {
    return address.host == "localhost" || address.host == "127.0.0.1" || address.host == "::1";
}

std::string to_text(const Address& address) {
    if (address.is_unix()) return address.path;
    bool numeric_v6 = address.host.find(':') != std::string::npos;
    return (numeric_v6 ? "[" + address.host + "]" : address.host) + ":" +
           std::to_string(address.port);
}

Link::End::End(Clockwork& clockwork, const LinkOptions& options, Link& link, Side side)
    : stage(side == Side::connector ? Stage::connecting : Stage::absent),
      outgoing(
          clockwork, options, link.subject(side),
          [&link, side](Piece piece) { link.arrived(other(side), std::move(piece)); },
          [&link, side] { link.gave_up(side); }),
      acknowledgement(clockwork.schedule, "acknowledged", link.subject(side)),
      visit(clockwork.schedule, "visit", link.subject(side)),
      tick(clockwork.schedule, "tick", link.subject(side)) {}

Link::Link(Clockwork& clockwork, LinkId id, const LinkOptions& options, Address address,
           Owner owner)
    : clockwork_(clockwork),
      id_(id),
      options_(options),
      address_(std::move(address)),
      owner_(std::move(owner)),
      connector_(clockwork, options_, *this, Side::connector),
      acceptor_(clockwork, options_, *this, Side::acceptor) {
    if (!owner_.shares) return;
    for (Side side : {Side::connector, Side::acceptor})
        at(side).outgoing.set_shared([this, side](Instant ready, std::size_t bytes) {
            return owner_.shares(*this, side, ready, bytes);
        });
}

/// Two numbers per link, so that a trace line names the end it is about.
std::uint64_t Link::subject(Side side) const {
    return static_cast<std::uint64_t>(id_) * 2 + (side == Side::acceptor ? 1 : 0);
}

std::unique_ptr<Stream> Link::connect(StreamEngine& engine) {
    drive(Side::connector, engine);
    connector_.outgoing.signal(Signal::hello);
    return std::make_unique<LinkStream>(shared_from_this(), Side::connector);
}

std::unique_ptr<Stream> Link::accept() {
    WEFT_CHECK(acceptor_.stage == Stage::absent);
    acceptor_.stage = Stage::open;
    acceptor_.outgoing.signal(Signal::hello);
    return std::make_unique<LinkStream>(shared_from_this(), Side::acceptor);
}

void Link::refuse() {
    acceptor_.outgoing.signal(Signal::reset);
    mark_left(Side::acceptor);
}

void Link::leave_unanswered() {
    connector_.outgoing.set_receiver_dark(true);
    connector_.outgoing.signal(Signal::hello);
}

void Link::drive(Side side, StreamEngine& engine) {
    End& end = at(side);
    WEFT_CHECK(end.engine == nullptr || end.stage == Stage::open);
    WEFT_CHECK(end.lent.empty());  // a TCP could have to send it again, and the lender is going
    if (end.stage == Stage::left) return;
    end.engine = &engine;
    end.wants_nothing = false;
    plan_visit(side, clockwork_.now());
}

void Link::wake(Side side) {
    at(side).wants_nothing = false;
    plan_visit(side, clockwork_.now());
}

void Link::abandon(Side side) {
    if (at(side).stage == Stage::left) return;
    clockwork_.note("abandoned", subject(side));
    // A TCP that closes with bytes unread says "reset" and not "goodbye", and the peer may then
    // lose what it has not read either; or it may not. Both are seen, so both are tried.
    End& end = at(side);
    bool abrupt = !end.unread().empty() && clockwork_.random.chance(50);
    if (!end.failure) end.outgoing.signal(abrupt ? Signal::reset : Signal::goodbye);
    mark_left(side);
}

std::string Link::peer(Side side) const {
    if (side == Side::connector) return to_text(address_);
    return connector_.machine + "#" + std::to_string(static_cast<std::uint64_t>(id_));
}

Address Link::address_of(Side side) const {
    if (side == Side::acceptor) return address_;
    if (address_.is_unix()) return {};  // as on Linux, where who connects has no path
    // A port of its own for each connection alive, below those that listeners are given.
    constexpr std::uint64_t first = 32768, count = 16384;
    auto port = static_cast<std::uint16_t>(first + static_cast<std::uint64_t>(id_) % count);
    return Address::tcp(is_loopback(address_) ? address_.host : connector_.machine, port);
}

void Link::plan_visit(Side side, Instant when) {
    End& end = at(side);
    if (end.stage == Stage::left || (end.visit.is_set() && end.visit.when() <= when)) return;
    end.visit.set(when, [this, side] { visit(side); });
}

void Link::visit(Side side) {
    End& end = at(side);
    if (end.stage == Stage::left || end.engine == nullptr || end.held) return;
    if (end.failure) return tell_closed(side, end.failure);
    if (end.stage == Stage::answered) {
        end.stage = Stage::open;
        clockwork_.note("opened", subject(side));
        end.engine->opened();
    }
    unsigned pieces = 0;
    for (bool moved = true; moved && end.stage == Stage::open;) {
        if (pieces++ == limits::pieces_per_visit) {
            plan_visit(side, clockwork_.now());
            break;
        }
        // Which comes first is the network's whim, not something an engine may count on.
        bool send_first = clockwork_.random.chance(50);
        moved = send_first ? send(side) : receive(side);
        moved |= send_first ? receive(side) : send(side);
    }
    if (end.stage != Stage::left) settle(side);
}

/// Gives the engine one piece of what has arrived. False: nothing more can be given now.
bool Link::receive(Side side) {
    End& end = at(side);
    if (end.stage != Stage::open || end.unread().empty()) return false;
    const bool finished = end.engine->finished();
    if (end.stage != Stage::open) return false;
    if (finished) {
        // Nobody wants it, and who sends it may not listen before it is taken.
        took(side, end.unread().size());
        return false;
    }
    if (end.wants_nothing) return false;
    end.wants_nothing = true;  // before the call, in which the engine may say wake()
    Buffer place = end.engine->want();
    if (end.stage != Stage::open || place.empty()) return false;
    end.wants_nothing = false;
    auto bytes = end.unread().first(draw_cut(std::min(place.size(), end.unread().size())));
    std::memcpy(place.data(), bytes.data(), bytes.size());
    clockwork_.note("filled", subject(side), bytes);
    const std::size_t count = bytes.size();
    took(side, count);
    end.engine->filled(count);
    return true;
}

/// So much of what has arrived is out of the way.
void Link::took(Side side, std::size_t count) {
    End& end = at(side);
    End& sender = at(other(side));
    bool sender_was_stuck = sender.outgoing.room() == 0;
    sender.outgoing.taken(count);
    if (sender_was_stuck) plan_visit(other(side), clockwork_.now() + end.outgoing.draw_delay());
    end.inbox_taken += count;
    if (end.inbox_taken == end.inbox.size()) end.inbox.clear(), end.inbox_taken = 0;
}

/// Takes one piece of what the engine wants sent. False: nothing more can be taken now.
bool Link::send(Side side) {
    End& end = at(side);
    if (end.stage != Stage::open || end.outgoing.room() == 0 || !end.lent.empty()) return false;
    if (gather_pending(end).empty() || end.stage != Stage::open) return false;
    if (clockwork_.random.chance(5)) check_pending_again(end);
    if (end.stage != Stage::open) return false;
    ConstBuffer bytes = gathered_;
    bytes = bytes.first(draw_cut(std::min(bytes.size(), end.outgoing.room())));
    clockwork_.note("sent", subject(side), bytes);
    std::vector<std::byte> travelling(bytes.begin(), bytes.end());
    if (std::exchange(end.corrupts_next, false)) {
        clockwork_.note("fault: corrupted", subject(side));
        travelling[clockwork_.random.below(travelling.size())] ^= std::byte{1}
                                                                  << clockwork_.random.below(8);
    }
    owner_.sends(*this, side, travelling);
    end.outgoing.send(std::move(travelling));
    // A kernel's socket copies at once; a TCP of our own keeps what it was lent until the peer has
    // it. Engines must bear both.
    if (clockwork_.random.chance(options_.kept_lent_percent))
        keep_lent(side, bytes.size());
    else
        end.engine->sent(bytes.size());
    return true;
}

void Link::keep_lent(Side side, std::size_t count) {
    End& end = at(side);
    end.lent_bytes.assign(gathered_.begin(),
                          gathered_.begin() + static_cast<std::ptrdiff_t>(count));
    for (ConstBuffer piece : gathered_from_) {
        auto part = piece.first(std::min(piece.size(), count));
        if (!part.empty()) end.lent.push_back(part);
        count -= part.size();
    }
    end.acknowledgement.set(clockwork_.now() + end.outgoing.draw_delay(),
                            [this, side] { acknowledge(side); });
}

/// Engines promise that what they lent stays as it was until they hear sent() or closed().
void Link::check_lent(const End& end) const {
    auto expected = end.lent_bytes.begin();
    for (ConstBuffer piece : end.lent) {
        bool lent_bytes_are_unchanged = std::equal(piece.begin(), piece.end(), expected);
        WEFT_CHECK(lent_bytes_are_unchanged);
        expected += static_cast<std::ptrdiff_t>(piece.size());
    }
}

void Link::acknowledge(Side side) {
    End& end = at(side);
    if (end.failure || end.held) return;  // the engine hears closed() instead, or this later
    check_lent(end);
    end.lent.clear();
    end.engine->sent(end.lent_bytes.size());
    visit(side);
}

void Link::release(Side side) {
    End& end = at(side);
    end.held = false;
    if (end.stage == Stage::left || end.engine == nullptr) return;
    if (!end.lent.empty() && !end.acknowledgement.is_set())
        end.acknowledgement.set(clockwork_.now(), [this, side] { acknowledge(side); });
    plan_visit(side, clockwork_.now());
}

/// What the engine lends now, put together, up to what the window can take.
ConstBuffer Link::gather_pending(End& end) {
    std::array<ConstBuffer, limits::outgoing_pieces> pieces;
    auto room = std::span(pieces).first(clockwork_.random.between(1, pieces.size()));
    std::size_t count = end.engine->pending(room);
    gathered_.clear();
    gathered_from_.clear();
    if (end.stage == Stage::left) return {};
    WEFT_CHECK(count <= room.size());
    for (ConstBuffer piece : room.first(count)) {
        auto fits = std::min(piece.size(), options_.window_bytes - gathered_.size());
        gathered_.insert(gathered_.end(), piece.begin(), piece.begin() + fits);
        gathered_from_.push_back(piece.first(fits));
    }
    // Pieces that hold nothing must not hide what follows them.
    if (gathered_.empty() && count == room.size() && room.size() < pieces.size()) {
        count = end.engine->pending(pieces);
        if (end.stage == Stage::left) return {};
        for (ConstBuffer piece : std::span(pieces).first(count)) {
            gathered_.insert(gathered_.end(), piece.begin(), piece.end());
            gathered_from_.push_back(piece);
        }
    }
    return gathered_;
}

/// Engines promise the same bytes until they hear sent(). A real socket that is full asks twice.
void Link::check_pending_again(End& end) {
    std::vector<std::byte> before = gathered_;
    gather_pending(end);
    if (end.stage != Stage::open) return;
    auto common = static_cast<std::ptrdiff_t>(std::min(before.size(), gathered_.size()));
    bool pending_gave_the_same_bytes =
        common > 0 && std::equal(before.begin(), before.begin() + common, gathered_.begin());
    WEFT_CHECK(pending_gave_the_same_bytes);
}

std::size_t Link::draw_cut(std::size_t available) {
    switch (options_.cutting) {
        case Cutting::whole:
            return available;
        case Cutting::single_bytes:
            return 1;
        case Cutting::anywhere:
            break;
    }
    constexpr std::uint64_t a_few = 8;
    switch (clockwork_.random.below(4)) {
        case 0:
            return available;
        case 1:
            return clockwork_.random.between(1, std::min<std::uint64_t>(available, a_few));
        default:
            return clockwork_.random.between(1, available);
    }
}

/// When no more bytes can move: is this the end, and if not, when does the engine want its tick?
void Link::settle(Side side) {
    End& end = at(side);
    bool finished = end.engine->finished();
    if (end.stage == Stage::left) return;
    if (finished) {
        bool all_sent = gather_pending(end).empty();
        if (end.stage == Stage::left) return;
        if (all_sent) {
            end.outgoing.signal(Signal::goodbye);
            return tell_closed(side, std::nullopt);
        }
    } else if (end.peer_said_goodbye && end.unread().empty()) {
        return tell_closed(side, Error{.code = Code::disconnected});
    }
    auto deadline = end.engine->deadline();
    if (end.stage == Stage::left) return;
    if (deadline)
        end.tick.set(*deadline, [this, side] { tick(side); });
    else
        end.tick.cancel();
}

void Link::tick(Side side) {
    End& end = at(side);
    if (end.engine == nullptr || end.held) return;
    end.engine->tick(clockwork_.now());
    visit(side);
}

void Link::arrived(Side side, Piece piece) {
    End& end = at(side);
    switch (piece.signal) {
        case Signal::hello:
            if (side == Side::acceptor && end.stage == Stage::absent) {
                owner_.wants_acceptor(*this);
            } else if (side == Side::connector && end.stage == Stage::connecting) {
                end.stage = Stage::answered;
                visit(side);
            }
            return;
        case Signal::bytes:
            return bytes_arrived(side, piece.bytes);
        case Signal::goodbye:
            end.peer_said_goodbye = true;
            return visit(side);
        case Signal::reset:
            return fail(side, reason_for_reset(side));
    }
}

/// The words Linux has for it.
Error Link::reason_for_reset(Side side) const {
    if (at(side).stage != Stage::connecting)
        return Error{.code = Code::disconnected, .detail = ECONNRESET};
    if (address_.is_unix()) return Error{.code = Code::not_found, .detail = ENOENT};
    return Error{.code = Code::io_failed, .detail = ECONNREFUSED};
}

void Link::bytes_arrived(Side side, ConstBuffer bytes) {
    End& end = at(side);
    clockwork_.note("arrived", subject(side), bytes);
    if (end.stage == Stage::left) {
        // Nobody will ever read this, so the sender is told. What it sends meanwhile is never
        // taken, so the window bounds how often.
        at(other(side)).outgoing.drop();
        end.outgoing.signal(Signal::reset);
        return;
    }
    if (end.failure) return;
    end.inbox.insert(end.inbox.end(), bytes.begin(), bytes.end());
    visit(side);
}

/// What `side` sent could not arrive for too long.
void Link::gave_up(Side side) {
    End& end = at(side);
    clockwork_.note("gave up", subject(side));
    end.outgoing.drop();
    if (at(other(side)).stage == Stage::absent) mark_left(other(side));
    if (end.stage == Stage::left || end.failure) return;
    fail(side, Error{.code = Code::timed_out, .detail = ETIMEDOUT});
    // Should the other end be reached again soon, it learns that this one is no more.
    if (!has_left(other(side))) end.outgoing.signal(Signal::reset);
}

void Link::fail(Side side, Error error) {
    End& end = at(side);
    if (end.stage == Stage::left || end.failure) return;
    if (end.stage == Stage::absent) return mark_left(side);
    end.failure = error;
    lose_unread(side);
    plan_visit(side, clockwork_.now());
}

void Link::tell_closed(Side side, std::optional<Error> why) {
    StreamEngine* engine = at(side).engine;
    check_lent(at(side));
    mark_left(side);
    clockwork_.note(why ? "lost" : "closed", subject(side));
    engine->closed(why);
}

void Link::mark_left(Side side) {
    End& end = at(side);
    end.stage = Stage::left;
    end.engine = nullptr;
    end.visit.cancel();
    end.tick.cancel();
    end.acknowledgement.cancel();
    end.lent.clear();
    lose_unread(side);
    if (has_left(other(side))) owner_.is_over(id_);
}

void Link::reset() {
    clockwork_.note("fault: reset", subject(Side::connector));
    for (Side side : {Side::connector, Side::acceptor}) {
        at(side).outgoing.drop();
        fail(side, Error{.code = Code::disconnected, .detail = ECONNRESET});
    }
}

void Link::half_open(Side gone) {
    clockwork_.note("fault: half open", subject(gone));
    at(other(gone)).outgoing.set_receiver_dark(true);
    fail(gone, Error{.code = Code::disconnected});
}

/// Nobody will read this. It must not fill the window, or a sender that waits for room would wait
/// for ever, and never learn that nobody is there.
void Link::lose_unread(Side side) {
    End& end = at(side);
    if (end.unread().empty()) return;
    at(other(side)).outgoing.taken(end.unread().size());
    plan_visit(other(side), clockwork_.now());
    end.inbox.clear();
    end.inbox_taken = 0;
}

void Link::heal() {
    connector_.outgoing.set_partitioned(false);
    acceptor_.outgoing.set_partitioned(false);
}

void Link::clog(Duration extra_delay) {
    connector_.outgoing.set_clogged_by(extra_delay);
    acceptor_.outgoing.set_clogged_by(extra_delay);
}

void Link::darken(Side side) {
    at(other(side)).outgoing.set_receiver_dark(true);
    if (at(side).stage != Stage::absent && !has_left(side)) mark_left(side);
}

}  // namespace weft::sim
