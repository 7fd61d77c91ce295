// SPDX-License-Identifier: Apache-2.0
// Fails the requests its rules name and passes all others on. The rules are explicit and counted,
// never drawn by lot: the same requests fail in every run.
//
// A request that fails here never reaches the device below. Memory for writing is not lent: what
// arrived in it could not be taken back when the write then fails.
#pragma once

#include <optional>

#include "base/fixed_vector.hpp"
#include "block/filter.hpp"
#include "block/limits.hpp"

namespace weft::block {

/// A rule matches the requests that all its parts agree to, and fails some of those.
struct ErrorRule {
    std::optional<BlockOperation> operation{};  ///< none: any
    /// Touches [offset, offset + length). None: anywhere, which includes requests without a range.
    struct Range {
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
    };
    std::optional<Range> range{};

    std::uint64_t every = 1;               ///< fails each `every`-th request that matches
    std::optional<std::uint64_t> times{};  ///< and stops after so many; none: for ever
    Error error{.code = Code::io_failed};
};

class ErrorFilter final : public Filter {
public:
    using Filter::Filter;

    /// Rules are asked in the order they came; one that fails a request hides it from those after.
    /// `exhausted`: there are error_rules_max. `malformed`: every the 0-th.
    Result<void> add(const ErrorRule& rule);
    void clear() { rules_.clear(); }

    void submit(BlockRequest& request) override;
    Buffer lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) override;

private:
    struct Counted {
        ErrorRule rule;
        std::uint64_t matched = 0;
        std::uint64_t failed = 0;
    };
    static bool matches(const ErrorRule& rule, const BlockRequest& request);

    FixedVector<Counted, error_rules_max> rules_;
};

}  // namespace weft::block
