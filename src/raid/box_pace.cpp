// SPDX-License-Identifier: Apache-2.0
#include "raid/box_pace.hpp"

#include <algorithm>

namespace weft::raid {

void BoxPace::note(Duration took) {
    if (answers_ == 0) {
        mean_ = took;
        deviation_ = took / 2;
    } else {
        const Duration off = took > mean_ ? took - mean_ : mean_ - took;
        deviation_ += (off - deviation_) / 4;
        mean_ += (took - mean_) / 8;
    }
    if (answers_ < answers_to_know) ++answers_;
}

/// The middle, so that one more slow box does not make this one look quick.
std::optional<Duration> BoxPaces::middle_of_others(std::uint8_t place,
                                                   Duration (BoxPace::*what)() const) const {
    std::array<Duration, limits::boxes> known{};
    std::size_t count = 0;
    for (std::uint8_t i = 0; i < limits::boxes; ++i)
        if (i != place && boxes_[i].pace.is_known()) known[count++] = (boxes_[i].pace.*what)();
    if (count == 0) return std::nullopt;
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>((count - 1) / 2);
    std::nth_element(known.begin(), middle, known.begin() + static_cast<std::ptrdiff_t>(count));
    return *middle;
}

Duration BoxPaces::patience_with(std::uint8_t place) const {
    const auto high = middle_of_others(place, &BoxPace::high);
    if (!high) return std::max(options_.at_least, options_.unknown);
    return std::max(options_.at_least, *high * options_.times_the_others);
}

Duration BoxPaces::others(std::uint8_t place) const {
    return middle_of_others(place, &BoxPace::typical).value_or(Duration{});
}

bool BoxPaces::answered(std::uint8_t place, Duration took, Instant now) {
    Box& box = boxes_[place];
    const bool late = took >= patience_with(place);
    box.pace.note(took);
    if (!contains(slow_, place)) return false;
    if (late) {
        box.good = 0;
        box.last_late = now;
        return false;
    }
    if (++box.good < options_.good_tries) return false;
    slow_ &= ~only(place);
    return true;
}

bool BoxPaces::fell_behind(std::uint8_t place, Instant now) {
    Box& box = boxes_[place];
    box.good = 0;
    box.last_late = now;
    box.next_try = now + options_.between_tries;
    const bool is_new = !contains(slow_, place);
    slow_ |= only(place);
    return is_new;
}

Mask BoxPaces::to_avoid(Instant now) const {
    Mask avoided = slow_;
    for (std::uint8_t i = 0; slow_ != 0 && i < limits::boxes; ++i)
        if (contains(slow_, i) && boxes_[i].next_try <= now) avoided &= ~only(i);
    return avoided;
}

void BoxPaces::tried(std::uint8_t place, Instant now) {
    boxes_[place].next_try = now + options_.between_tries;
}

Mask BoxPaces::rested(Mask owing, Instant now) {
    Mask rested = 0;
    for (std::uint8_t i = 0; slow_ != 0 && i < limits::boxes; ++i) {
        if (!contains(slow_, i)) continue;
        if (contains(owing, i)) boxes_[i].last_late = now;
        if (now - boxes_[i].last_late >= options_.rest) rested |= only(i);
    }
    slow_ &= ~rested;
    return rested;
}

std::optional<Instant> BoxPaces::deadline() const {
    std::optional<Instant> first;
    for (std::uint8_t i = 0; slow_ != 0 && i < limits::boxes; ++i) {
        if (!contains(slow_, i)) continue;
        const Instant at = boxes_[i].last_late + options_.rest;
        if (!first || at < *first) first = at;
    }
    return first;
}

void BoxPaces::forget(std::uint8_t place) {
    boxes_[place] = {};
    slow_ &= ~only(place);
}

}  // namespace weft::raid
