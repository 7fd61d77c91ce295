// SPDX-License-Identifier: Apache-2.0
// What every receiver of a byte stream looks like: it says where the next bytes belong.
//
// want() may be empty: the receiver will not take more until something else has happened (a
// buffer came free, a request completed). filled() reports at most one event; an error means the
// stream is beyond repair.
#pragma once

#include <concepts>
#include <cstddef>

#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft {

template <class R>
concept StreamReceiver = requires(R& receiver, std::size_t count) {
    { receiver.want() } -> std::convertible_to<Buffer>;
    { receiver.filled(count).has_value() } -> std::convertible_to<bool>;
    { receiver.filled(count).error() } -> std::convertible_to<Error>;
};

}  // namespace weft
