// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/verbs/objects.hpp"

namespace weft::abi {

/// Inside a Hold: `object`, a queue or queue pair of the context, is about to go. Events about it
/// that nobody has fetched go before it.
void forget_async_events(Context& context, const void* object);

}  // namespace weft::abi
