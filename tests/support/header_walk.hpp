// SPDX-License-Identifier: Apache-2.0
// Walks through a golden file that holds several headers, one behind another:
//
//     HeaderWalk walk("scsi/capacity.hex");
//     walk.expect(ReadCapacity10{});
//     walk.expect(Capacity10{.last_block = 0x31fff, .block_bytes = 512});
//     walk.expect_end();
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/header.hpp"

namespace weft::test {

class HeaderWalk {
public:
    explicit HeaderWalk(const std::string& golden_name) : octets_(golden(golden_name)) {}
    explicit HeaderWalk(Bytes octets) : octets_(std::move(octets)) {}

    /// The next octets are this header, in both directions, and no fewer of them are.
    template <class Header>
    void expect(const Header& expected) {
        SCOPED_TRACE("at offset " + std::to_string(at_));
        expect_header(take(wire_size<Header>()), expected);
    }

    /// The next octets as they are: names, bit maps and whatever else is no header.
    Bytes take(std::size_t count) {
        if (!within(at_, count, octets_.size())) {
            ADD_FAILURE() << count << " octets wanted at " << at_ << ", " << octets_.size()
                          << " in all";
            return Bytes(count);
        }
        auto part = ConstBuffer(octets_).subspan(at_, count);
        at_ += count;
        return Bytes(part.begin(), part.end());
    }
    ConstBuffer rest() const { return ConstBuffer(octets_).subspan(at_); }

    void expect_end() const { EXPECT_EQ(rest().size(), 0u) << "octets nobody has looked at"; }

private:
    Bytes octets_;
    std::size_t at_ = 0;
};

}  // namespace weft::test
