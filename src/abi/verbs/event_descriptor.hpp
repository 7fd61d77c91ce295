// SPDX-License-Identifier: Apache-2.0
// Descriptors that applications wait for: readable as long as events wait behind them. Each is an
// eventfd that counts the events. It is touched inside a Hold only, so its number is always theirs,
// and taking one off never blocks.
#pragma once

namespace weft::abi {

/// -1 and errno where there are no descriptors left.
int make_event_descriptor();
void count_event(int descriptor);
void uncount_event(int descriptor);
/// Whether the application has asked for EAGAIN instead of a wait.
bool is_nonblocking(int descriptor);

/// After a wait that returned -1: whether a blocking read() would go on now, as it does where the
/// handlers of signals were set so.
bool goes_on_after_signal();

/// Outside a Hold: waits until the descriptor is readable, as a blocking read() of it would,
/// signals included. False, with errno: the wait was interrupted.
bool wait_for_event(int descriptor);

}  // namespace weft::abi
