// SPDX-License-Identifier: Apache-2.0
// Numbers of transactions, and which of them have not ended: what boxes may forget follows from it.
#pragma once

#include <set>

#include "wire/array_identity.hpp"

namespace weft::raid {

class TransactionLedger {
public:
    void set_epoch(wire::Epoch epoch) { epoch_ = epoch; }

    wire::TransactionNumber begin() { return number_of(++count_); }
    wire::TransactionNumber last() const { return number_of(count_); }
    /// Boxes keep something of it until it has ended at all of them.
    void keep(wire::TransactionNumber transaction) { open_.insert(transaction); }
    void ended(wire::TransactionNumber transaction) { open_.erase(transaction); }
    /// Everything below has ended wherever it was begun.
    wire::TransactionNumber settled() const {
        return open_.empty() ? number_of(count_ + 1) : *open_.begin();
    }

private:
    wire::TransactionNumber number_of(std::uint64_t count) const {
        constexpr unsigned count_bits = 40;
        return wire::TransactionNumber{static_cast<std::uint64_t>(epoch_) << count_bits | count};
    }

    wire::Epoch epoch_{};
    std::uint64_t count_ = 0;
    std::set<wire::TransactionNumber> open_;
};

}  // namespace weft::raid
