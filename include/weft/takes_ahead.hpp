// SPDX-License-Identifier: Apache-2.0
// What a StreamEngine may also be: one that takes bytes from where they lie.
//
// A world reads ahead of what is wanted and then brings the bytes piece by piece, each to its
// place. An engine whose messages are made of many small pieces is better shown all of it.
#pragma once

#include <cstddef>

#include "weft/buffer.hpp"

namespace weft {

class TakesAhead {
public:
    /// The next bytes of the stream, as far as they were read: returns how many of them the engine
    /// has taken, as if they had been put where want() says. None, where that is not worth it or
    /// must not be: want() has their place then. It stops where it hands the stream to another.
    virtual std::size_t take_ahead(ConstBuffer bytes) = 0;

protected:
    ~TakesAhead() = default;
};

}  // namespace weft
