// SPDX-License-Identifier: Apache-2.0
// How soon boxes answer reads, and which of them has fallen behind the others.
//
// A box is measured against the others and not against a clock: when all are busy none is slow. Of
// each a mean and a deviation are kept, moving, as TCP keeps them of a round trip; mean and four
// deviations is what few answers exceed. Who does not answer within some times that of the others
// is late. One that was late, where the others then served the same read, is called slow: reads go
// around it, but for one now and then that tries it, until it answers as the others do again.
#pragma once

#include <array>
#include <optional>

#include "raid/bands.hpp"
#include "raid/limits.hpp"
#include "weft/instant.hpp"

namespace weft::raid {

/// Of one box.
class BoxPace {
public:
    void note(Duration took);
    bool is_known() const { return answers_ >= answers_to_know; }
    Duration typical() const { return mean_; }
    /// Few answers take longer.
    Duration high() const { return mean_ + 4 * deviation_; }

private:
    static constexpr unsigned answers_to_know = 4;

    Duration mean_{}, deviation_{};
    unsigned answers_ = 0;
};

struct HedgeOptions {
    /// No box is late before this; zero: reads wait for their boxes, however long.
    Duration at_least = std::chrono::milliseconds(50);
    unsigned times_the_others = 4;
    /// While nobody knows how soon boxes answer.
    Duration unknown = std::chrono::seconds(1);
    Duration between_tries = std::chrono::milliseconds(100);  ///< of a box that is slow
    unsigned good_tries = 8;                                  ///< in a row, and it is not any more
    Duration rest = std::chrono::seconds(10);                 ///< or nothing was late for so long
};

class BoxPaces {
public:
    explicit BoxPaces(const HedgeOptions& options) : options_(options) {}

    bool is_on() const { return options_.at_least > Duration{}; }
    Duration at_least() const { return options_.at_least; }
    /// How long one waits for this box before it is late.
    Duration patience_with(std::uint8_t place) const;
    /// What the others typically take: the middle one of them.
    Duration others(std::uint8_t place) const;
    Duration typical(std::uint8_t place) const { return boxes_[place].pace.typical(); }

    /// A read was answered. True: the box was slow, and is not any more.
    bool answered(std::uint8_t place, Duration took, Instant now);
    /// It was late, and the others served what it did not. True: it was not slow before.
    bool fell_behind(std::uint8_t place, Instant now);
    Mask slow() const { return slow_; }
    /// Those a read that begins now should do without.
    Mask to_avoid(Instant now) const;
    /// A slow box is asked for something: not again for a while.
    void tried(std::uint8_t place, Instant now);
    /// Of those that are slow, who has not been late for long; what is owed by `owing` is late.
    Mask rested(Mask owing, Instant now);
    std::optional<Instant> deadline() const;
    /// Another has its place, or it is away.
    void forget(std::uint8_t place);

private:
    struct Box {
        BoxPace pace;
        Instant next_try{}, last_late{};
        unsigned good = 0;  ///< answers in a row
    };
    std::optional<Duration> middle_of_others(std::uint8_t place,
                                             Duration (BoxPace::*what)() const) const;

    HedgeOptions options_;
    std::array<Box, limits::boxes> boxes_;
    Mask slow_ = 0;
};

}  // namespace weft::raid
