// SPDX-License-Identifier: Apache-2.0
#include "block/error_filter.hpp"

namespace weft::block {

Result<void> ErrorFilter::add(const ErrorRule& rule) {
    if (rule.every == 0) return Error{.code = Code::malformed};
    if (rules_.full()) return Error{.code = Code::exhausted};
    rules_.push_back({.rule = rule});
    return {};
}

bool ErrorFilter::matches(const ErrorRule& rule, const BlockRequest& request) {
    if (rule.operation && *rule.operation != request.operation) return false;
    if (!rule.range) return true;
    // Written as differences, since the sum of an offset and a length may pass 2^64.
    auto [offset, length] = *rule.range;
    return request.offset >= offset ? request.offset - offset < length && request.length > 0
                                    : offset - request.offset < request.length && length > 0;
}

void ErrorFilter::submit(BlockRequest& request) {
    for (auto& [rule, matched, failed] : rules_) {
        bool spent = rule.times && failed >= *rule.times;
        if (spent || !matches(rule, request) || ++matched % rule.every != 0) continue;
        ++failed;
        request.completed(rule.error);
        return;
    }
    below().submit(request);
}

Buffer ErrorFilter::lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) {
    if (operation == BlockOperation::write) return {};
    return below().lend(operation, offset, length);
}

}  // namespace weft::block
