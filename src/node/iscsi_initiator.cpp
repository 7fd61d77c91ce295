// SPDX-License-Identifier: Apache-2.0
#include "node/iscsi_initiator.hpp"

#include <algorithm>

#include "iscsi/tcp_initiator_mover.hpp"

namespace weft::node {

using namespace iscsi;

namespace {

constexpr Duration first_pause = std::chrono::milliseconds(100);
constexpr Duration longest_pause = std::chrono::seconds(5);
constexpr unsigned redirections_max = 4;

SessionOptions session_options(World& world, const IscsiInitiatorOptions& options) {
    SessionOptions session;
    session.initiator_name = options.initiator_name;
    session.initiator_alias = "Weft";
    session.target_name = options.url.target_name;
    session.type = options.discovery ? SessionType::discovery : SessionType::normal;
    session.connections = options.connections;
    session.wishes = default_wishes(options.url);
    session.credentials = options.url.credentials;
    session.expected_of_target = options.url.expected_of_target;
    session.send_writes_again = options.send_writes_again;
    session.command_patience = options.command_patience;
    session.silence = options.silence;
    session.ping_interval = options.ping_interval;
    // "10" in the upper bits: chance makes it unique (RFC 7143 section 11.12.5).
    const std::uint64_t chance = options.session_number ? *options.session_number : world.random();
    session.initiator_session_id = {0x80,
                                    static_cast<std::uint8_t>(chance),
                                    static_cast<std::uint8_t>(chance >> 8),
                                    static_cast<std::uint8_t>(chance >> 16),
                                    static_cast<std::uint8_t>(chance >> 24),
                                    static_cast<std::uint8_t>(chance >> 32)};
    session.wishes.terms.max_connections = static_cast<std::uint32_t>(options.connections);
    return session;
}

}  // namespace

Wishes default_wishes(const InitiatorUrl& url) {
    // What digests find damaged is asked for again, where that is possible.
    const bool digests = !url.over_rdma && (url.header_digest || url.data_digest);
    Wishes wishes;
    wishes.terms = {.initiator_segment_max = 262144,
                    .target_segment_max = 262144,
                    .initial_r2t = false,
                    .immediate_data = true,
                    .max_burst = 1048576,
                    .first_burst = 262144,
                    .time_to_wait = 0,
                    .time_to_retain = 0,
                    .max_outstanding_r2t = initiator_requests_max,
                    .error_recovery_level = digests ? 1u : 0u,
                    .rdma_extensions = url.over_rdma,
                    .rdma_initiator_segment_max = 8192,
                    .rdma_target_segment_max = 8192};
    wishes.offer_rdma = url.over_rdma;
    auto wish = [&](bool wanted) {
        if (url.over_rdma) return DigestWish::never;
        return wanted ? DigestWish::required : DigestWish::never;
    };
    wishes.header_digest = wish(url.header_digest);
    wishes.data_digest = wish(url.data_digest);
    return wishes;
}

Result<std::unique_ptr<InitiatorDatamover>> IscsiTcpTransport::connect(
    const Address& address, InitiatorDatamoverUser& user) {
    auto mover = std::make_unique<TcpInitiatorMover>(user);
    WEFT_TRY(auto stream, world_.connect(address, *mover));
    mover->own(std::move(stream));
    return std::unique_ptr<InitiatorDatamover>(std::move(mover));
}

IscsiInitiator::IscsiInitiator(World& world, IscsiTransport& transport,
                               const IscsiInitiatorOptions& options, Holder holder)
    : world_(world),
      transport_(transport),
      first_address_(options.url.address),
      address_(options.url.address),
      patience_(options.patience),
      holder_(std::move(holder)),
      timer_(world.make_timer([this] { tick(); })),
      retry_timer_(world.make_timer([this] { begin_again(); })),
      session_(session_options(world, options), *this) {}

IscsiInitiator::~IscsiInitiator() {
    *alive_ = false;
}

std::uint64_t IscsiInitiator::completions() const {
    std::uint64_t sum = 0;
    for (auto& mover : movers_)
        if (mover) sum += mover->completions();
    return sum;
}

void IscsiInitiator::begin() {
    session_.tick(world_.now());
    session_.begin();
}

void IscsiInitiator::leave() {
    leaving_ = true;
    if (!session_.down()) return session_.leave();
    retry_timer_->cancel();
    world_.defer([this, alive = alive_] {
        if (*alive) end({.code = Code::disconnected});
    });
}

void IscsiInitiator::connection_wanted(std::size_t index) {
    auto mover = transport_.connect(address_, session_.connection(index));
    if (!mover) {
        world_.defer([this, alive = alive_, index, why = mover.error()] {
            if (*alive) session_.attach_failed(index, why);
        });
        return;
    }
    movers_[index] = std::move(*mover);
    session_.attach(index, *movers_[index]);
}

void IscsiInitiator::connection_unwanted(std::size_t index) {
    // It is calling us; and so is its stream.
    std::shared_ptr<InitiatorDatamover> mover = std::move(movers_[index]);
    world_.defer([mover] {});
}

void IscsiInitiator::fill_with_chance(Buffer octets) {
    for (auto& octet : octets) octet = static_cast<std::byte>(world_.random());
}

void IscsiInitiator::session_up() {
    ever_up_ = true;
    redirections_ = 0;
    holder_.up();
}

void IscsiInitiator::works() {
    lost_at_.reset();
    pause_ = first_pause;
}

void IscsiInitiator::session_down(Error why) {
    if (leaving_) return end(why);
    if (!session_.redirected_to().empty() && ++redirections_ <= redirections_max) {
        if (auto elsewhere = parse_portal(session_.redirected_to())) {
            address_ = *elsewhere;
            retry_timer_->set(world_.now());
            return;
        }
    }
    const bool hopeless = session_.login_status() == wire::LoginStatus::authentication_failure ||
                          session_.login_status() == wire::LoginStatus::authorization_failure;
    if (!ever_up_ || hopeless || patience_ == Duration{}) return end(why);
    const Instant now = world_.now();
    if (!lost_at_) lost_at_ = now;
    if (now - *lost_at_ >= patience_) return end(why);
    // A redirection holds for one session; the next asks at the front door again.
    address_ = first_address_;
    retry_timer_->set(now + pause_);
    pause_ = std::min(pause_ * 2, longest_pause);
}

void IscsiInitiator::begin_again() {
    if (!over_ && session_.down()) begin();
}

void IscsiInitiator::end(Error why) {
    if (over_) return;
    over_ = true;
    timer_->cancel();
    holder_.gave_up(why);
}

void IscsiInitiator::deadline_changed() {
    if (auto when = session_.deadline())
        timer_->set(*when);
    else
        timer_->cancel();
}

void IscsiInitiator::tick() {
    session_.tick(world_.now());
    deadline_changed();
}

}  // namespace weft::node
