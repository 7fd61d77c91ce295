// SPDX-License-Identifier: Apache-2.0
// A BlockRequest that remembers how it ended, and short ways to make one.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "support/golden.hpp"
#include "weft/block_device.hpp"

namespace weft::test {

class TestRequest final : public BlockRequest {
public:
    TestRequest() = default;
    TestRequest(BlockOperation what, std::uint64_t at, std::uint64_t size) {
        operation = what;
        offset = at;
        length = size;
    }
    // Devices hold requests by address.
    TestRequest(const TestRequest&) = delete;
    TestRequest& operator=(const TestRequest&) = delete;

    std::function<void()> on_completed;  ///< called at the end of completed(), if set

    /// One piece of memory, which must outlive the request.
    TestRequest& with_memory(Buffer piece) {
        piece_ = piece;
        memory = {&piece_, 1};
        return *this;
    }

    void completed(Result<void> how) override {
        EXPECT_FALSE(outcome_.has_value()) << "a request completed twice";
        outcome_ = how;
        if (on_completed) on_completed();
    }

    bool done() const { return outcome_.has_value(); }
    bool succeeded() const { return outcome_ && outcome_->has_value(); }
    /// Why it failed; nothing if it has not.
    std::optional<Code> failure() const {
        if (!outcome_ || outcome_->has_value()) return std::nullopt;
        return outcome_->error().code;
    }

private:
    Buffer piece_;
    std::optional<Result<void>> outcome_;
};

/// What a device holds there, read with one request.
inline Bytes contents(BlockDevice& device, std::uint64_t offset, std::uint64_t length) {
    Bytes octets(length);
    TestRequest request(BlockOperation::read, offset, length);
    device.submit(request.with_memory(octets));
    EXPECT_TRUE(request.succeeded());
    return octets;
}
inline Bytes contents(BlockDevice& device) {
    return contents(device, 0, device.traits().size);
}

}  // namespace weft::test
