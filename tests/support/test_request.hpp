// SPDX-License-Identifier: Apache-2.0
// A block request that remembers how it ended, and fails the test if it ends twice.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "weft/block_device.hpp"

namespace weft::test {

class TestRequest final : public BlockRequest {
public:
    std::optional<Result<void>> outcome;
    std::function<void()> then;  ///< called when it has completed
    std::vector<std::byte> octets;

    TestRequest() = default;
    TestRequest(BlockOperation kind, std::uint64_t at, std::uint64_t count) {
        operation = kind;
        offset = at;
        length = count;
        if (kind == BlockOperation::read || kind == BlockOperation::write) {
            octets.resize(count);
            buffer_ = octets;
            memory = std::span(&buffer_, 1);
        }
    }
    TestRequest(const TestRequest&) = delete;
    TestRequest& operator=(const TestRequest&) = delete;

    /// Uses that memory, which must outlive it, and not its own octets.
    TestRequest& with_memory(Buffer other) {
        buffer_ = other;
        memory = std::span(&buffer_, 1);
        return *this;
    }

    void completed(Result<void> result) override {
        EXPECT_FALSE(outcome) << "completed twice";
        outcome = result;
        if (then) then();
    }

    bool done() const { return outcome.has_value(); }
    bool succeeded() const { return outcome && *outcome; }
    /// The code it failed with; none if it did not.
    std::optional<Code> failure() const {
        if (!outcome || *outcome) return std::nullopt;
        return outcome->error().code;
    }
    std::string_view text() const { return text_of(octets); }

private:
    Buffer buffer_;
};

/// What a device that answers at once holds there, or all it holds.
inline std::vector<std::byte> contents(BlockDevice& device, std::uint64_t at, std::uint64_t count) {
    TestRequest request(BlockOperation::read, at, count);
    device.submit(request);
    EXPECT_TRUE(request.succeeded());
    return request.octets;
}
inline std::vector<std::byte> contents(BlockDevice& device) {
    return contents(device, 0, device.traits().size);
}

inline Result<void> write_text(BlockDevice& device, std::uint64_t at, std::string_view text) {
    TestRequest request(BlockOperation::write, at, text.size());
    std::copy(bytes_of(text).begin(), bytes_of(text).end(), request.octets.begin());
    device.submit(request);
    EXPECT_TRUE(request.outcome) << "the device did not answer at once";
    return request.outcome ? *request.outcome : Error{.code = Code::timed_out};
}

inline std::string read_text(BlockDevice& device, std::uint64_t at, std::size_t count) {
    TestRequest request(BlockOperation::read, at, count);
    device.submit(request);
    EXPECT_TRUE(request.succeeded());
    return std::string(request.text());
}

}  // namespace weft::test
