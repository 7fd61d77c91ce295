// SPDX-License-Identifier: Apache-2.0
// The data-out of one command over iSER, as a target keeps account of it: what came with the
// command, what follows it unsolicited, and what is left to be read from the initiator's memory.
//
// Where the memory begins is told in two ways. RFC 7145 advertises the whole buffer, unless
// TaggedBufferForSolicitedDataOnly says otherwise. All who connect by RDMA first advertise what is
// not sent unsolicited, and say nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "iscsi/datamover.hpp"

namespace weft::iscsi::iser {

class DataOut {
public:
    /// A part to be read from the advertised buffer.
    struct Part {
        std::uint32_t offset = 0;  ///< in the command's data
        std::uint32_t length = 0;
        std::uint64_t in_buffer = 0;  ///< from the advertised base
    };
    struct Terms {
        std::uint32_t first_burst_max = 65536;
        std::uint32_t burst_max = 262144;
        bool immediate_data = true;
        bool solicited_only = true;  ///< the buffer begins behind the unsolicited data
    };

    void begin(const TargetMoverTask& task, const Terms& terms, bool has_buffer);
    /// The first `length` octets are wanted, and no others.
    void want(std::uint32_t length);
    bool is_wanted() const { return wanted_.has_value(); }
    std::uint32_t wanted() const { return wanted_.value_or(0); }
    void abandon();

    /// A Data-Out came, with its data. True: the data is good, and belongs at its offset.
    bool take(const wire::DataOutPdu& pdu);
    /// The next part to be read; it counts as begun.
    std::optional<Part> next_part(std::uint32_t length_max);
    bool has_part() const;
    std::uint32_t part_offset() const { return part_at_; }
    void part_came() { --parts_under_way_; }

    /// The fate, once nothing more is to be expected.
    std::optional<DataOutcome> outcome() const;

private:
    Terms terms_;
    std::uint32_t offered_ = 0;
    std::uint32_t unsolicited_at_ = 0;   ///< what has come by itself so far
    std::uint32_t unsolicited_end_ = 0;  ///< what will
    bool unsolicited_open_ = false;      ///< the last Data-Out of its own accord is still to come
    std::uint32_t data_number_ = 0;
    bool has_buffer_ = false;
    std::optional<std::uint32_t> wanted_;
    std::uint32_t part_at_ = 0;
    std::uint32_t parts_under_way_ = 0;
    DataOutcome fate_ = DataOutcome::complete;
};

}  // namespace weft::iscsi::iser
