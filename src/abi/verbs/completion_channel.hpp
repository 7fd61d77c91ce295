// SPDX-License-Identifier: Apache-2.0
// What a completion queue and its channel have to say to each other. Inside a Hold.
#pragma once

#include "abi/verbs/objects.hpp"

namespace weft::abi {

/// The queue has news.
void add_event(CompletionChannel& channel, CompletionQueue& queue);
/// The queue is about to go, and with it the events of it that nobody has fetched.
void forget_events(CompletionChannel& channel, CompletionQueue& queue);

/// The queue was armed. If its reader will not wait where it drives the engine itself, the helper
/// must be there from now on.
void expect_reader(CompletionChannel& channel, CompletionQueue& queue);
void stop_waiting_elsewhere(CompletionQueue& queue);

}  // namespace weft::abi
