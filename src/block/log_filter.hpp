// SPDX-License-Identifier: Apache-2.0
// Says one line for every request, when it has completed:
//
//     write 4096 bytes at 8192, durable: done
//     read 512 bytes at 1048576: this lies outside the device
//
// The line lives as long as the call; nothing is allocated for it.
#pragma once

#include <functional>
#include <string_view>

#include "block/relay_filter.hpp"

namespace weft::block {

class LogFilter final : public RelayFilter {
public:
    using Say = std::function<void(std::string_view line)>;

    LogFilter(BlockDevice& below, Say say)
        : RelayFilter(below, relay_places), say_(std::move(say)) {}

private:
    void coming_back(const BlockRequest& request, const Result<void>& outcome) override;

    Say say_;
};

}  // namespace weft::block
