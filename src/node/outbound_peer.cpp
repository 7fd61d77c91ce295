// SPDX-License-Identifier: Apache-2.0
#include "node/outbound_peer.hpp"

#include <algorithm>
#include <chrono>

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
                           std::optional<Address> where)
    : world_(around.world),
      device_(around.device),
      domain_(around.domain),
      options_(around.options),
      owner_(owner),
      end_(end),
      secret_(secret),
      where_(std::move(where)),
      pause_(around.world.make_timer([this] { pause_over(); })) {}

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
    return {};
}

std::vector<TransferJob> OutboundPeer::take_all() {
    std::vector<TransferJob> jobs;
    if (link_) jobs = link_->take_posted();
    link_.reset();
    pause_->cancel();
    state_ = State::idle;
    jobs.insert(jobs.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    return jobs;
}

// ---------------------------------------------------------------------------------- connections

Result<void> OutboundPeer::connect() {
    const auto greeting = owner_.greeting_to(end_);
    if (!where_ || !greeting) return unreachable;
    auto made = std::make_unique<OutboundLink>(world_, device_, owner_of_link(), options_, secret_);
    if (auto begun = made->connect(*where_, *greeting, domain_); !begun) {
        ++counters_.attempts_failed;
        note_end(to_text(begun.error()));
        owner_.connection_ended(*this, false, last_end_);
        return begun;
    }
    link_ = std::move(made);
    state_ = State::connecting;
    return {};
}

void OutboundPeer::proved(OutboundLink& /*link*/) {
    ++counters_.connections;
    state_ = State::connected;
    owner_.connected(*this);
}

void OutboundPeer::ended(OutboundLink& link, End how, const std::string& why) {
    const auto said = link.termination();
    const bool was_proved = link.is_proved(), has_served = link.has_served();
    auto posted = link.take_posted();
    link_.reset();  // what it had of anybody's memory it must not have any more when they are told
    state_ = State::idle;
    ++(was_proved ? counters_.ended : counters_.attempts_failed);
    if (was_proved && said && said->is_protection()) ++counters_.terminated;
    note_end(why);
    owner_.connection_ended(*this, was_proved, last_end_);

    std::vector<Ended> ended;
    if (was_proved) {
        sort_out(std::move(posted), how, said, has_served, ended);
        connect_again(has_served || !ended.empty(), ended);
    } else {
        end_waiting(unreachable, ended);
    }
    tell(ended);  // last: whoever is told may do anything to us
}

/// At once, unless that has just been tried and was of no use.
void OutboundPeer::connect_again(bool was_of_use, std::vector<Ended>& ended) {
    fruitless_ = was_of_use ? 0 : fruitless_ + 1;
    if (waiting_.empty()) return;
    if (fruitless_ > 1) {
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

void OutboundPeer::note_end(const std::string& why) {
    last_end_ = why;
    last_end_at_ = world_.now();
}

// ------------------------------------------------------------------------------------ transfers

std::optional<Error> OutboundPeer::judge(TransferJob& job, End how, bool explained) {
    if (how == End::stalled && ++job.hung >= hung_max) return Error{.code = Code::timed_out};
    if (how != End::stalled && !explained) ++job.unexplained;
    if (!job.again_since) job.again_since = world_.now();
    if (world_.now() - *job.again_since >= options_.retry_for)
        return Error{.code = Code::timed_out};
    return std::nullopt;
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
    if (where_) facts.remote = *where_;
    if (link_) link_->describe(facts);
    facts.waiting = static_cast<std::uint32_t>(waiting_.size());
    return facts;
}

}  // namespace weft::node
