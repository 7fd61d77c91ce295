// SPDX-License-Identifier: Apache-2.0
// What happened in a run, folded into one number: two runs of one seed must agree on it.
//
// When they do not, show() both traces to a file each and compare the files: the first line that
// differs is where something asked the real world, or walked a container in address order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "weft/instant.hpp"

namespace weft::sim {

class Trace {
public:
    using Sink = std::function<void(const std::string& line)>;

    /// `subject` says which link, disk or machine; `crc` is that of the bytes that moved.
    void note(Instant when, std::string_view kind, std::uint64_t subject, std::uint64_t size,
              std::uint32_t crc);

    std::uint64_t hash() const { return hash_; }
    void show(Sink sink) { sink_ = std::move(sink); }

private:
    void fold(std::uint64_t word);

    std::uint64_t hash_ = 0xcbf29ce484222325;  // FNV-1a
    Sink sink_;
};

}  // namespace weft::sim
