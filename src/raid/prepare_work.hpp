// SPDX-License-Identifier: Apache-2.0
// The end of an order that prepares: what it staged is digested, against what is at home where the
// digest is of the change, and goes to the journal.
#pragma once

#include "raid/journaled_disk.hpp"
#include "raid/order_work.hpp"

namespace weft::raid {

class PrepareWork final : private BlockRequest {
public:
    /// May destroy the work.
    using Ended = std::function<void(const OrderResult&)>;

    /// `result` is what the order's other pieces came to.
    PrepareWork(JournaledDisk& disk, const ReceivedOrder& received, Buffer window, Buffer landing,
                const OrderResult& result, Ended ended)
        : disk_(disk),
          received_(received),
          window_(window),
          landing_(landing),
          result_(result),
          ended_(std::move(ended)) {}

    void start() { advance(); }

private:
    const Piece& piece() const { return received_.order.pieces[next_]; }
    void advance();
    void step();
    void read_old();
    void append();
    void end(const OrderResult& result);
    void completed(Result<void> outcome) override;

    JournaledDisk& disk_;
    const ReceivedOrder& received_;
    Buffer window_, landing_;
    OrderResult result_;
    Ended ended_;
    std::size_t next_ = 0;    ///< the piece under way
    std::uint32_t done_ = 0;  ///< octets of it that were read
    bool waiting_ = false, advancing_ = false;
    Buffer part_{};
};

/// What is to be told of a step of a transaction that did not succeed.
wire::ArrayOutcome outcome_of(const Result<void>& journaled);

}  // namespace weft::raid
