// SPDX-License-Identifier: Apache-2.0
// World::make_timer: a handle the caller owns, and behind it the entry in the heap, which
// outlives the handle by one turn so that a task may drop the timer that called it.
#pragma once

#include <functional>
#include <memory>

#include "weft/world.hpp"

namespace weft::linux {

class EventLoop;

std::unique_ptr<weft::Timer> make_timer(EventLoop& loop, std::function<void()> task);

}  // namespace weft::linux
