// SPDX-License-Identifier: Apache-2.0
// A request that remembers its answer, for tests that wait for one.
#pragma once

#include <optional>
#include <vector>

#include "weft/block_device.hpp"

namespace weft::test {

class WaitingRequest final : public BlockRequest {
public:
    WaitingRequest() = default;
    WaitingRequest(BlockOperation what, std::uint64_t from, std::uint64_t count) {
        operation = what;
        offset = from;
        length = count;
    }
    WaitingRequest(BlockOperation what, std::uint64_t from, std::vector<Buffer> pieces)
        : WaitingRequest(what, from, 0) {
        scatter = std::move(pieces);
        for (auto piece : scatter) length += piece.size();
        memory = scatter;
    }
    WaitingRequest(const WaitingRequest&) = delete;

    std::vector<Buffer> scatter;
    std::optional<Result<void>> outcome;
    int completions = 0;

    void completed(Result<void> result) override {
        outcome = result;
        ++completions;
    }
    bool done() const { return outcome.has_value(); }
};

}  // namespace weft::test
