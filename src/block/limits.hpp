// SPDX-License-Identifier: Apache-2.0
// How much a device of this folder holds at a time.
#pragma once

#include <chrono>
#include <cstddef>

namespace weft::block {

/// Requests a filter has under way in the device below. More wait in line, at no cost in memory.
inline constexpr std::size_t relay_places = 64;

/// The same of a HangFilter, which stands between a part of a box and its disk.
inline constexpr std::size_t hang_places = 256;

/// Requests a DelayFilter is timing. More wait in line, and their time begins when they get a
/// place.
inline constexpr std::size_t delay_places = 256;

/// Until a PatientFilter looks again whether there is room.
inline constexpr auto patient_pause = std::chrono::seconds(1);

inline constexpr std::size_t error_rules_max = 16;

}  // namespace weft::block
