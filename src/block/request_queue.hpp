// SPDX-License-Identifier: Apache-2.0
// Requests in line, first come first served. The line goes through BlockRequest::next, which
// belongs to whoever holds the request: it costs no memory, and its bound is its makers'.
#pragma once

#include "base/intrusive_queue.hpp"
#include "weft/block_device.hpp"

namespace weft::block {

using RequestQueue = IntrusiveQueue<BlockRequest>;

}  // namespace weft::block
