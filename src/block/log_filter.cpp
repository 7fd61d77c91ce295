// SPDX-License-Identifier: Apache-2.0
#include "block/log_filter.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "base/error_text.hpp"

namespace weft::block {
namespace {

const char* name_of(BlockOperation operation) {
    switch (operation) {
        case BlockOperation::read:
            return "read";
        case BlockOperation::write:
            return "write";
        case BlockOperation::flush:
            return "flush";
        case BlockOperation::trim:
            return "trim";
        case BlockOperation::write_zeroes:
            return "write zeroes";
        case BlockOperation::prefetch:
            return "prefetch";
        case BlockOperation::status:
            return "status";
    }
    return "unknown operation";
}

}  // namespace

void LogFilter::coming_back(const BlockRequest& request, const Result<void>& outcome) {
    std::array<char, 64> range{};
    if (request.operation != BlockOperation::flush)
        std::snprintf(range.data(), range.size(), " %" PRIu64 " bytes at %" PRIu64, request.length,
                      request.offset);
    std::array<char, 256> line{};
    int size = std::snprintf(line.data(), line.size(), "%s%s%s%s%s: %s", name_of(request.operation),
                             range.data(), request.durable ? ", durable" : "",
                             request.keep_space ? ", keeping space" : "",
                             request.fast_only ? ", only if fast" : "",
                             outcome ? "done" : to_text(outcome.error().code));
    say_({line.data(), std::min(static_cast<std::size_t>(size), line.size() - 1)});
}

}  // namespace weft::block
