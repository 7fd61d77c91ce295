// SPDX-License-Identifier: Apache-2.0
// Bytes waiting to be sent, in one piece: for handshakes, where messages are small and few.
#pragma once

#include <vector>

#include "base/wire_format.hpp"

namespace weft::nbd {

class Outbox {
public:
    template <class Header>
    void add(const Header& header) {
        add_octets(encoded(header));
    }
    void add_octets(ConstBuffer octets) {
        octets_.insert(octets_.end(), octets.begin(), octets.end());
    }
    void add_zeroes(std::size_t count) { octets_.resize(octets_.size() + count); }

    bool empty() const { return gone_ == octets_.size(); }
    std::size_t size() const { return octets_.size() - gone_; }
    ConstBuffer pending() const { return ConstBuffer(octets_).subspan(gone_); }
    void sent(std::size_t count) {
        WEFT_CHECK(count <= size());
        gone_ += count;
        if (empty()) octets_ = {}, gone_ = 0;  // an idle connection holds no memory
    }

private:
    std::vector<std::byte> octets_;
    std::size_t gone_ = 0;
};

}  // namespace weft::nbd
