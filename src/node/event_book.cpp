// SPDX-License-Identifier: Apache-2.0
#include "node/event_book.hpp"

#include <algorithm>

#include "raid/records.hpp"
#include "raid/superblock.hpp"

namespace weft::node {
namespace {

/// Its end is cut off where it does not fit.
template <std::size_t size>
Octets<size> field_of(const std::string& text) {
    Octets<size> field{};
    (void)raid::set_field(field, text.substr(0, size - 1));
    return field;
}

wire::ArrayEventRecord record_of(const ControllerEvent& event) {
    return {.number = event.number,
            .when = static_cast<std::uint64_t>(event.when.time_since_epoch().count()),
            .volume = field_of<64>(event.volume),
            .box = field_of<64>(event.box),
            .what = field_of<256>(event.what)};
}

}  // namespace

EventBook::EventBook(World& world, Keep keep)
    : world_(world), keep_(std::move(keep)), timer_(world.make_timer([this] { keep_some(); })) {}

void EventBook::recall(std::vector<wire::ArrayEventRecord> records) {
    std::ranges::sort(records, {}, &wire::ArrayEventRecord::number);
    for (const auto& record : records) {
        if (record.number <= last_) continue;
        last_ = record.number;
        events_.push_back({.number = record.number,
                           .when = Date(Duration(static_cast<std::int64_t>(record.when))),
                           .volume = raid::text_of_field(record.volume),
                           .box = raid::text_of_field(record.box),
                           .what = raid::text_of_field(record.what)});
    }
    // Whoever was told of more than could be kept must not take ours for those.
    if (last_ != 0) last_ += gap;
    kept_ = last_;
    first_own_ = last_ + 1;
}

void EventBook::note(const std::string& volume, const std::string& box, const std::string& what) {
    events_.push_back(
        {.number = ++last_, .when = world_.date(), .volume = volume, .box = box, .what = what});
    if (events_.size() > remembered) events_.pop_front();
    if (hear_) hear_(events_.back());
    if (!keeping_ && last_ == kept_ + 1) timer_->set(world_.now() + gather);
}

/// One transaction at a time. Of more than the store has room for the last are kept.
void EventBook::keep_some() {
    timer_->cancel();
    kept_ = std::max(kept_, last_ > lasting ? last_ - lasting : 0);
    std::vector<raid::MetadataChange> changes;
    for (const auto& event : events_) {
        if (event.number <= kept_ || changes.size() == at_once) continue;
        changes.push_back({record_prefix + std::to_string(event.number % lasting),
                           raid::encode_record(record_of(event))});
    }
    if (changes.empty()) return;
    const auto last = kept_ + changes.size();
    keeping_ = true;
    keep_(std::move(changes), [this, last, alive = alive_](Result<void> outcome) {
        if (*alive) kept(last, outcome);
    });
}

/// A store that is away is asked again. Whoever is in office no longer has nothing to say there.
void EventBook::kept(std::uint64_t last, Result<void> outcome) {
    keeping_ = false;
    const bool deposed = !outcome && outcome.error().code == Code::access_denied;
    if (outcome || deposed) kept_ = deposed ? last_ : last;
    if (kept_ < last_) timer_->set(world_.now() + (outcome ? gather : try_again_after));
}

}  // namespace weft::node
