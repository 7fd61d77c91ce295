// SPDX-License-Identifier: Apache-2.0
#include "node/outbound_peer.hpp"

#include <algorithm>
#include <chrono>

#include "base/check.hpp"
#include "base/error_text.hpp"
#include "wire/terminate.hpp"

namespace weft::node {

namespace {

/// Before the next connection, if some in a row have proved and ended before any use; it doubles
/// with each.
constexpr Duration shortest_pause = std::chrono::milliseconds(10);
constexpr Duration longest_pause = std::chrono::seconds(1);
/// Connections under which nothing moved, before a transfer has timed out.
constexpr unsigned hung_max = 2;

/// How often it is looked whether another connection is to be tried beside the one in use.
constexpr Duration look_period = std::chrono::seconds(1);
/// How long that one may move nothing before: the peer may be well, and this connection wait for a
/// packet that TCP sends again too seldom. With ArrayLinkOptions::patience for the other it is less
/// than a controller waits for the end of an order.
constexpr Duration still_max = std::chrono::seconds(2);
/// How often it is tried whether a preferred network is back.
constexpr Duration return_period = std::chrono::seconds(5);

/// A connection may be reset while it is being made, or its first packet be lost, and that proves
/// nothing: attempts go on for so long before the peer is taken for unreachable.
constexpr Duration unreachable_after = std::chrono::milliseconds(300);
constexpr Duration between_attempts = std::chrono::milliseconds(50);

constexpr Error unreachable{.code = Code::disconnected};

/// Whether nothing of that memory may be reached in that way, and not only that part of it.
bool is_about_whole_tag(const verbs::Termination& said) {
    if (said.layer == static_cast<std::uint8_t>(wire::TerminateLayer::ddp)) {
        const auto code = wire::TaggedBufferError{said.error_code};
        return code != wire::TaggedBufferError::out_of_bounds &&
               code != wire::TaggedBufferError::offset_wraps;
    }
    const auto code = wire::RemoteProtectionError{said.error_code};
    return code != wire::RemoteProtectionError::out_of_bounds &&
           code != wire::RemoteProtectionError::offset_wraps;
}

/// Whether a Terminate of the peer is about this transfer. Every request has steering tags of its
/// own, so none that is innocent has the one that is quoted.
bool is_quoted(const TransferJob& job, const verbs::Termination& said) {
    using About = verbs::Termination::About;
    const bool same_way =
        job.way == TransferJob::Way::send ? said.about == About::write : said.about == About::read;
    const auto& transfer = *job.transfer;
    if (!said.is_protection() || !same_way || said.target.tag != transfer.peer.tag) return false;
    if (is_about_whole_tag(said)) return true;
    const auto into = said.target.address - (transfer.peer.base + transfer.at);
    return said.about == About::write ? into < transfer.memory.size() || into == 0
                                      : into == 0 && said.size == transfer.memory.size();
}

}  // namespace

OutboundPeer::OutboundPeer(const Surroundings& around, OutboundPeerOwner& owner,
                           const wire::ArrayConnectionEnd& end, const ArraySecret& secret,
                           std::vector<Address> where)
    : world_(around.world),
      device_(around.device),
      domain_(around.domain),
      options_(around.options),
      owner_(owner),
      end_(end),
      secret_(secret),
      where_(std::move(where)),
      places_(where_.size()),
      pause_(around.world.make_timer([this] { pause_over(); })),
      look_(around.world.make_timer([this] { look(); })) {}

Result<void> OutboundPeer::add(const TransferJob& job) {
    if (waiting_.size() >= options_.waiting_max)
        return Error{.code = Code::exhausted,
                     .where = static_cast<std::uint32_t>(options_.waiting_max)};
    if (state_ == State::idle)
        if (auto begun = connect(); !begun) {
            ++counters_.unreachable;
            return unreachable;
        }
    waiting_.push_back(job);
    if (link_) link_->post_what_may();
    look_soon();
    return {};
}

std::vector<TransferJob> OutboundPeer::take_all() {
    std::vector<TransferJob> jobs;
    if (link_) jobs = link_->take_posted();
    link_.reset();
    attempts_.clear();
    pause_->cancel();
    state_ = State::idle;
    jobs.insert(jobs.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    return jobs;
}

// ---------------------------------------------------------------------------------- connections

/// Over the preferred network, or the first that takes an attempt.
Result<void> OutboundPeer::connect() {
    for (std::size_t place = 0; place < where_.size(); ++place)
        places_[place].tried = is_attempted(place);
    if (!trying_since_) trying_since_ = world_.now();
    if (!attempts_.empty() || try_next_place()) {
        state_ = State::connecting;
        look_soon();
        return {};
    }
    return unreachable;
}

bool OutboundPeer::is_attempted(std::size_t place) const {
    return std::ranges::find(attempts_, place, &Attempt::place) != attempts_.end();
}

bool OutboundPeer::try_next_place() {
    for (std::size_t place = 0; place < where_.size(); ++place)
        if (!places_[place].tried && !is_attempted(place) && attempt(place)) return true;
    return false;
}

Result<void> OutboundPeer::attempt(std::size_t place) {
    places_[place].tried = true;
    places_[place].last_attempt = world_.now();
    const auto greeting = owner_.greeting_to(end_);
    if (!greeting) return unreachable;
    auto made = std::make_unique<OutboundLink>(world_, device_, owner_of_link(), options_, secret_);
    if (auto begun = made->connect(where_[place], *greeting, domain_); !begun) {
        ++counters_.attempts_failed;
        note_end(to_text(begun.error()));
        if (!link_) owner_.connection_ended(*this, false, last_end_);
        return begun;
    }
    attempts_.push_back({place, std::move(made)});
    return {};
}

void OutboundPeer::proved(OutboundLink& link) {
    auto found = std::ranges::find_if(
        attempts_, [&](const Attempt& each) { return each.link.get() == &link; });
    WEFT_CHECK(found != attempts_.end());
    auto attempt = std::move(*found);
    attempts_.erase(found);
    ++counters_.connections;
    if (link_) {
        std::vector<Ended> ended;
        leave_for(std::move(attempt), ended);
        // Not from in here: whoever is told may do anything to us.
        world_.defer([ended] { tell(ended); });
        return;
    }
    attempts_.clear();  // the others came too late
    trying_since_.reset();
    link_ = std::move(attempt.link);
    place_ = attempt.place;
    state_ = State::connected;
    owner_.connected(*this);
    look_soon();
}

/// For a connection over a preferred network, or one that takes the place of a still one.
void OutboundPeer::leave_for(Attempt attempt, std::vector<Ended>& ended) {
    const bool was_still = link_->still_for() >= still_max;
    auto posted = link_->take_posted();
    link_.reset();  // what it had of anybody's memory it must not have any more
    attempts_.clear();
    ++counters_.ended;
    note_end(was_still                 ? "it moved nothing, and another connection could be made"
             : attempt.place == place_ ? "another connection took its place"
                                       : "a preferred network is back");
    owner_.connection_ended(*this, true, last_end_);
    std::vector<TransferJob> again;
    for (auto& job : posted)
        if (auto why = was_still ? begun_too_long(job) : std::nullopt)
            end_as(*why, job, ended);
        else
            again.push_back(job);
    counters_.retried += again.size();
    waiting_.insert(waiting_.begin(), again.begin(), again.end());
    link_ = std::move(attempt.link);
    place_ = attempt.place;
    owner_.connected(*this);
    look_soon();
}

void OutboundPeer::ended(OutboundLink& link, End how, const std::string& why) {
    std::vector<Ended> ended;
    if (&link == link_.get()) {
        connection_lost(std::move(link_), how, why, ended);
    } else {
        std::erase_if(attempts_, [&](const Attempt& each) { return each.link.get() == &link; });
        ++counters_.attempts_failed;
        if (!link_) {  // else it was tried in passing, and nothing depends on it
            note_end(why);
            attempt_failed(ended);
        }
    }
    tell(ended);  // last: whoever is told may do anything to us
}

void OutboundPeer::attempt_failed(std::vector<Ended>& ended) {
    if (state_ != State::connecting || !attempts_.empty() || try_next_place()) return;
    if (trying_since_ && world_.now() - *trying_since_ < unreachable_after) {
        state_ = State::pausing;
        return pause_->set(world_.now() + between_attempts);
    }
    state_ = State::idle;
    trying_since_.reset();
    owner_.connection_ended(*this, false, last_end_);
    end_waiting(unreachable, ended);
}

void OutboundPeer::connection_lost(std::unique_ptr<OutboundLink> gone, End how,
                                   const std::string& why, std::vector<Ended>& ended) {
    const auto said = gone->termination();
    const bool has_served = gone->has_served();
    auto posted = gone->take_posted();
    const std::string reason = why;
    gone.reset();  // what it had of anybody's memory it must not have any more when they are told
    state_ = State::idle;
    ++counters_.ended;
    if (said && said->is_protection()) ++counters_.terminated;
    note_end(reason);
    owner_.connection_ended(*this, true, last_end_);
    sort_out(std::move(posted), how, said, has_served, ended);
    connect_again(has_served || !ended.empty(), ended);
}

/// At once, unless that has just been tried and was of no use.
void OutboundPeer::connect_again(bool was_of_use, std::vector<Ended>& ended) {
    fruitless_ = was_of_use ? 0 : fruitless_ + 1;
    if (waiting_.empty()) return attempts_.clear();
    if (fruitless_ > 1) {
        attempts_.clear();
        state_ = State::pausing;
        const auto doublings = std::min(fruitless_ - 2, 10u);
        return pause_->set(world_.now() +
                           std::min(longest_pause, shortest_pause * (1 << doublings)));
    }
    if (!connect()) end_waiting(unreachable, ended);
}

void OutboundPeer::pause_over() {
    std::vector<Ended> ended;
    state_ = State::idle;
    if (!connect()) end_waiting(unreachable, ended);
    tell(ended);
}

// ---------------------------------------------------------------------- one connection or another

void OutboundPeer::look_soon() {
    if (looking_) return;
    looking_ = true;
    look_->set(world_.now() + look_period);
}

void OutboundPeer::look() {
    looking_ = false;
    if (state_ == State::connecting) {
        try_next_place();
        return look_soon();
    }
    if (state_ != State::connected) return;
    const auto still = link_->still_for();
    for (std::size_t place = 0; place < where_.size(); ++place) {
        const bool is_wanted = place < place_ || still >= still_max;
        const auto pause = still >= still_max ? look_period : return_period;
        const bool is_due = world_.now() - places_[place].last_attempt >= pause;
        if (is_wanted && is_due && !is_attempted(place)) (void)attempt(place);
    }
    if (place_ > 0 || link_->is_busy()) look_soon();
}

void OutboundPeer::note_end(const std::string& why) {
    last_end_ = why;
    last_end_at_ = world_.now();
}

// ------------------------------------------------------------------------------------ transfers

std::optional<Error> OutboundPeer::judge(TransferJob& job, End how, bool explained) {
    if (how == End::stalled && ++job.hung >= hung_max) return Error{.code = Code::timed_out};
    if (how != End::stalled && !explained) ++job.unexplained;
    return begun_too_long(job);
}

std::optional<Error> OutboundPeer::begun_too_long(TransferJob& job) const {
    if (!job.again_since) job.again_since = world_.now();
    if (world_.now() - *job.again_since < options_.retry_for) return std::nullopt;
    return Error{.code = Code::timed_out};
}

void OutboundPeer::end_as(const Error& why, const TransferJob& job, std::vector<Ended>& ended) {
    ended.push_back({job.transfer, why});
    count(why);
}

void OutboundPeer::sort_out(std::vector<TransferJob> posted, End how,
                            const std::optional<verbs::Termination>& said, bool has_served,
                            std::vector<Ended>& ended) {
    const bool by_peer = said && said->from == verbs::Termination::From::peer;
    auto end_if_quoted = [&](const TransferJob& job) {
        if (!by_peer || !is_quoted(job, *said)) return false;
        ended.push_back({job.transfer, {.code = Code::access_denied}});
        return true;
    };
    std::erase_if(posted, end_if_quoted);
    std::erase_if(waiting_, end_if_quoted);
    const bool explained = !ended.empty();

    std::vector<TransferJob> again, behind;
    for (auto& job : posted) {
        const bool was_alone = job.goes_alone();
        if (auto why = judge(job, how, explained))
            ended.push_back({job.transfer, *why});
        else
            (was_alone ? behind : again).push_back(job);
    }
    counters_.retried += again.size() + behind.size();
    // A connection that ended before any use ended under those that wait for it, too: they must
    // not wait for ever.
    if (!has_served && !explained) {
        const auto now = world_.now();
        for (auto& job : waiting_)
            if (!job.again_since) job.again_since = now;
        std::erase_if(waiting_, [&](const TransferJob& job) {
            if (now - *job.again_since < options_.retry_for) return false;
            ended.push_back({job.transfer, {.code = Code::timed_out}});
            return true;
        });
    }
    waiting_.insert(waiting_.begin(), again.begin(), again.end());
    waiting_.insert(waiting_.end(), behind.begin(), behind.end());
    for (const auto& each : ended) count(each.why);
}

void OutboundPeer::end_waiting(Error why, std::vector<Ended>& ended) {
    for (const auto& job : waiting_) {
        ended.push_back({job.transfer, why});
        count(why);
    }
    waiting_.clear();
}

void OutboundPeer::count(const Error& why) {
    ++(why.code == Code::access_denied ? counters_.refused
       : why.code == Code::timed_out   ? counters_.timed_out
                                       : counters_.unreachable);
}

void OutboundPeer::tell(const std::vector<Ended>& ended) {
    for (const auto& each : ended) each.transfer->completed(each.why);
}

ArrayLinkFacts OutboundPeer::facts() const {
    ArrayLinkFacts facts;
    facts.direction = ArrayLinkFacts::Direction::outbound;
    if (state_ == State::pausing) facts.state = ArrayLinkFacts::State::pausing;
    facts.peer = end_;
    facts.counters = counters_;
    facts.last_end = last_end_;
    facts.since_last_end = world_.now() - last_end_at_;
    if (!where_.empty()) facts.remote = where_.front();
    if (state_ == State::connecting) facts.state = ArrayLinkFacts::State::connecting;
    if (link_) link_->describe(facts);
    facts.waiting = static_cast<std::uint32_t>(waiting_.size());
    return facts;
}

}  // namespace weft::node
