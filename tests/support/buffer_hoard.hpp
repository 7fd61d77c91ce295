// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "iwarp/fpdu_buffers.hpp"

namespace weft::test {

/// Takes all that is left of a pool.
class Hoard {
public:
    explicit Hoard(iwarp::FpduBuffers& buffers) : buffers_(buffers) {
        for (auto size = iwarp::FpduBuffers::largest; size > 0; size /= 2)
            for (Buffer one; !(one = buffers.take_if_free(size)).empty();) all_.push_back(one);
    }
    ~Hoard() { give_back(); }
    void give_back() {
        for (Buffer each : std::exchange(all_, {})) buffers_.give_back(each);
    }

private:
    iwarp::FpduBuffers& buffers_;
    std::vector<Buffer> all_;
};

}  // namespace weft::test
