// SPDX-License-Identifier: Apache-2.0
// The one source of chance in a simulated world: xoshiro256** started by splitmix64.
//
// Written out here because a seed must mean the same run with every compiler and library; the
// distributions of <random> promise no such thing.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/check.hpp"
#include "weft/instant.hpp"

namespace weft::sim {

class Random {
public:
    explicit Random(std::uint64_t seed) {
        for (auto& word : state_) {
            seed += 0x9e3779b97f4a7c15;
            std::uint64_t mixed = seed;
            mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
            mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
            word = mixed ^ mixed >> 31;
        }
    }

    std::uint64_t next() {
        std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
        std::uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }

    /// 0 to bound - 1. The modulo's bias is far below what any test could notice.
    std::uint64_t below(std::uint64_t bound) {
        WEFT_CHECK(bound > 0);
        return next() % bound;
    }

    /// `least` to `most`, both possible.
    std::uint64_t between(std::uint64_t least, std::uint64_t most) {
        WEFT_CHECK(least <= most);
        std::uint64_t width = most - least + 1;
        return width == 0 ? next() : least + next() % width;
    }

    Duration between(Duration least, Duration most) {
        WEFT_CHECK(least <= most);
        return least + Duration(below(static_cast<std::uint64_t>((most - least).count()) + 1));
    }

    /// True about `percent` times in a hundred; never for 0, always for 100.
    bool chance(double percent) {
        constexpr std::uint64_t steps = 1'000'000'000;
        return static_cast<double>(below(steps)) < percent * (steps / 100.0);
    }

private:
    std::array<std::uint64_t, 4> state_;
};

}  // namespace weft::sim
