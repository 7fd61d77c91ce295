// SPDX-License-Identifier: Apache-2.0
// What hosts have written and read, and whether all of it can have happened to one disk.
//
// Every block says what it is: of which volume, for which place, by which host's command, which
// version, and a checksum over all of it. So a read tells from which write each of its blocks is,
// and a block that is at the wrong place, torn or made up is known at once (S4, S6). Which blocks
// may be read when is a register's question, block by block (S1, S2): of a value known by its write
// alone, all that were written and read of it form a span of time, and the spans of two values must
// be such that one can have been there before the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "raid/bands.hpp"
#include "sim/rdma_memory_model.hpp"

namespace weft::sim {

class RaidLedger {
public:
    using WriteNumber = std::uint64_t;  ///< 0: what was there in the beginning, zeroes
    using Moment = std::uint64_t;

    RaidLedger(Complaints& complaints, std::uint64_t size) : complaints_(complaints), size_(size) {}

    /// A write begins. Its octets are made here.
    WriteNumber begin_write(unsigned host, std::uint64_t command, raid::Range range, Moment now,
                            Buffer octets);
    void write_answered(WriteNumber write, Moment now);
    /// Nobody will ever know; it may have been carried out, once, whole or not at all.
    void write_unknown(WriteNumber) {}
    void read_answered(raid::Range range, Moment began, Moment now, ConstBuffer octets);

    /// All at the end: each block's history, and that no write was done in part. `final` is all of
    /// the volume, read when nothing was under way. Without a journal half a write that failed may
    /// be there.
    /// Where nothing could be read, `final` is not looked at.
    void check(ConstBuffer final, const std::vector<raid::Range>& unreadable, bool atomic);
    std::uint64_t blocks_read() const { return blocks_read_; }

private:
    struct Write {
        raid::Range range;
        unsigned host;
        std::uint64_t command;
        Moment began;
        std::optional<Moment> answered;
    };
    /// All that happened with one value of one block.
    struct Span {
        Moment first_end = ~Moment{0};
        Moment last_begin = 0;
    };

    std::optional<WriteNumber> read_block(std::uint64_t offset, ConstBuffer block,
                                          const char* when);
    void check_block(std::uint64_t offset, const std::map<WriteNumber, Span>& spans);
    void check_whole(const std::vector<WriteNumber>& found);
    std::string name_of(WriteNumber write) const;

    Complaints& complaints_;
    std::uint64_t size_;
    std::vector<Write> writes_;                                    ///< number n is at n - 1
    std::map<std::uint64_t, std::map<WriteNumber, Span>> blocks_;  ///< by offset
    std::uint64_t blocks_read_ = 0;
};

}  // namespace weft::sim
