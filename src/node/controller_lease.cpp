// SPDX-License-Identifier: Apache-2.0
#include "node/controller_lease.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/error_text.hpp"

namespace weft::node {
namespace {

constexpr Duration shortest_pause = std::chrono::milliseconds(20);
constexpr Duration longest_pause = std::chrono::milliseconds(500);

}  // namespace

struct ControllerLease::Look final : raid::MetadataLook {
    explicit Look(ControllerLease& made_by) : owner(made_by) {}
    void completed(Result<void> outcome) override { owner.looked(outcome); }
    ControllerLease& owner;
};
struct ControllerLease::Election final : raid::MetadataElection {
    explicit Election(ControllerLease& made_by) : owner(made_by) {}
    void completed(Result<void> outcome) override { owner.elected(outcome); }
    ControllerLease& owner;
};
struct ControllerLease::Renewal final : raid::MetadataRenewal {
    explicit Renewal(ControllerLease& made_by) : owner(made_by) {}
    void completed(Result<void> outcome) override { owner.renewed(outcome); }
    ControllerLease& owner;
};

ControllerLease::ControllerLease(World& world, raid::MetadataStore& store, const Options& options,
                                 Holder holder)
    : world_(world),
      store_(store),
      options_(options),
      holder_(std::move(holder)),
      look_(std::make_unique<Look>(*this)),
      election_(std::make_unique<Election>(*this)),
      renewal_(std::make_unique<Renewal>(*this)),
      timer_(world.make_timer([this] { timer_rang(); })),
      doubt_timer_(world.make_timer([this] { watch_doubt(); })) {}

ControllerLease::~ControllerLease() = default;

Duration ControllerLease::pause() const {
    const Duration tenth = (since_ ? seen_.lease : options_.lease) / 10;
    return std::clamp(tenth, shortest_pause, longest_pause);
}

void ControllerLease::timer_rang() {
    if (state_ == State::seeking) look();
    if (state_ == State::in_office) renew();
}

// ---------------------------------------------------------------------------------- seeking it

void ControllerLease::seek(const std::string& who) {
    who_ = who;
    state_ = State::seeking;
    look();
}

void ControllerLease::look() {
    asked_at_ = world_.now();
    ++asked_;
    store_.look(*look_);
}

void ControllerLease::fail(Error why) {
    state_ = State::idle;
    holder_.won(why);
}

/// The same thing is said once.
void ControllerLease::say(const std::string& sentence) {
    if (sentence == said_) return;
    said_ = sentence;
    if (holder_.news) holder_.news(sentence);
}

void ControllerLease::looked(Result<void> outcome) {
    --asked_;
    if (state_ == State::resigned) return go_on_resigning();
    if (state_ != State::seeking) return;
    if (outcome) return weigh(look_->office);
    if (!options_.standby) return fail(outcome.error());
    say("waits for the store, which does not answer: " + to_text(outcome.error()));
    timer_->set(world_.now() + pause());
}

void ControllerLease::weigh(const raid::MetadataOffice& office) {
    const auto now = world_.now();
    if (office.is_free()) {
        if (!std::exchange(free_, true)) free_since_ = now;
        // Others have had their turn if one was seen in office.
        if (since_ || now - free_since_ >= options_.modesty) return stand(false);
    } else if (since_ && office.is_unchanged_since(seen_)) {
        // Counted to when the question was sent: then at the latest it stood there so.
        if (asked_at_ - *since_ >= office.lease) return stand(true);
    } else {
        const bool same_holder = since_ && office.epoch == seen_.epoch;
        changes_ = same_holder ? changes_ + 1 : 0;
        if (!options_.standby && changes_ > 0) {
            seen_ = office;
            return fail({.code = Code::access_denied});
        }
        seen_ = office;
        since_ = now;
        free_ = false;
        say("waits for the controller " + office.holder + ", which is in office with epoch " +
            std::to_string(static_cast<std::uint64_t>(office.epoch)));
    }
    timer_->set(now + pause());
}

void ControllerLease::fill_in(raid::MetadataElection& election) const {
    election.lease = options_.lease;
    election.holder = who_;
}

void ControllerLease::stand(bool against_holder) {
    fill_in(*election_);
    election_->seen = against_holder ? std::optional(seen_) : std::nullopt;
    asked_at_ = world_.now();
    ++asked_;
    store_.elect(*election_);
}

void ControllerLease::elected(Result<void> outcome) {
    --asked_;
    if (state_ == State::resigned) {
        if (outcome) epoch_ = election_->epoch;
        owes_ = outcome.has_value();  // it came too late to be wanted
        return go_on_resigning();
    }
    if (state_ != State::seeking) return;
    if (outcome) {
        state_ = State::in_office;
        moved_to(election_->epoch, asked_at_);
        return holder_.won(epoch_);
    }
    const bool beaten = outcome.error().code == Code::access_denied;
    if (!beaten && !options_.standby) return fail(outcome.error());
    timer_->set(world_.now() + pause());
}

// ---------------------------------------------------------------------------------- holding it

bool ControllerLease::holds() const {
    if (state_ != State::in_office) return false;
    return options_.lease.count() == 0 || world_.now() - held_since_ < tenure();
}

std::uint32_t ControllerLease::remaining_ms() const {
    if (options_.lease.count() == 0 || !holds()) return 0;
    const auto rest = held_since_ + tenure() - world_.now();
    const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(rest).count();
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 1, UINT32_MAX));
}

void ControllerLease::moved_to(wire::Epoch epoch, Instant asked) {
    epoch_ = epoch;
    held_since_ = asked;
    if (options_.lease.count() == 0) return;
    timer_->set(asked + options_.lease / 5);
    doubt_timer_->set(held_since_ + tenure());
}

void ControllerLease::renew() {
    if (asked_ > 0) return;
    asked_at_ = world_.now();
    renewal_->epoch = epoch_;
    renewal_->releases = false;
    ++asked_;
    store_.renew(*renewal_);
}

void ControllerLease::renewed(Result<void> outcome) {
    --asked_;
    if (state_ == State::resigned) return go_on_resigning();
    if (state_ != State::in_office) return;
    const bool of_before = renewal_->epoch != epoch_;
    if (!outcome && outcome.error().code == Code::access_denied && !of_before) return depose();
    if (outcome && !of_before) {
        held_since_ = asked_at_;
        doubt_timer_->set(held_since_ + tenure());
        if (holds() && std::exchange(doubtful_, false)) holder_.doubtful(false);
    }
    const auto soon = outcome ? options_.lease / 5 : options_.lease / 20;
    timer_->set(world_.now() + std::max<Duration>(soon, shortest_pause));
}

void ControllerLease::watch_doubt() {
    if (state_ != State::in_office || holds() || std::exchange(doubtful_, true)) return;
    holder_.doubtful(true);
}

void ControllerLease::depose() {
    if (state_ != State::in_office) return;
    state_ = State::deposed;
    holder_.deposed();
}

void ControllerLease::resign(std::function<void()> told) {
    owes_ = state_ == State::in_office;
    state_ = State::resigned;
    timer_->cancel();
    doubt_timer_->cancel();
    resigned_ = std::move(told);
    go_on_resigning();
}

void ControllerLease::go_on_resigning() {
    if (asked_ > 0) return;  // what is at the store ends first
    if (std::exchange(owes_, false)) {
        renewal_->epoch = epoch_;
        renewal_->releases = true;
        ++asked_;
        return store_.renew(*renewal_);
    }
    if (resigned_) world_.defer(std::exchange(resigned_, nullptr));
}

}  // namespace weft::node
