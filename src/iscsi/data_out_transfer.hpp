// SPDX-License-Identifier: Apache-2.0
// The data-out of one command over TCP, as a target keeps account of it: which sequences of
// Data-Out are open, what may come next in each, and what is still to be asked for (RFC 7143
// sections 4.2.5.2, 7.8 and 11.7).
//
// A sequence is the immediate data, the unsolicited burst, or the answer to one R2T. What breaks
// the rules of its sequence is dropped and remembered; the command's fate is told only when every
// open sequence has ended, since an initiator must not be answered while it still sends. With error
// recovery level 1 what was damaged or is missing is asked for again instead.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fixed_vector.hpp"
#include "iscsi/datamover.hpp"
#include "iscsi/target_limits.hpp"

namespace weft::iscsi {

class DataOutTransfer {
public:
    /// What becomes of a data segment.
    enum class Verdict : std::uint8_t {
        take,
        drop,      ///< it broke a rule, or nobody wants it
        stranger,  ///< it belongs to no open sequence
    };
    /// A part of the data to be asked for by R2T.
    struct Request {
        std::uint32_t tag = 0;     ///< the lower half of the transfer tag: the slot is the rest
        std::uint32_t number = 0;  ///< R2TSN
        std::uint32_t offset = 0;
        std::uint32_t length = 0;
    };

    void begin(const TargetMoverTask& task, const ConnectionTerms& terms);
    /// The first `length` octets are wanted; the rest of what comes is not.
    void want(std::uint32_t length);
    bool wanted() const { return wanted_.has_value(); }
    std::uint32_t wanted_length() const { return wanted_.value_or(0); }
    /// Nothing more is wanted or asked for. It is over when no segment is on its way.
    void abandon();

    /// The header of a Data-Out came. Unless it is a stranger, came() follows.
    Verdict take(const wire::DataOutPdu& pdu);
    /// The segment announced last (or the immediate data) has come, or was dropped.
    void came(bool digest_good);
    /// The segment announced last is of use.
    bool keeps_segment() const { return segment_kept_; }

    /// The next R2T to send, if one is due.
    std::optional<Request> next_request();
    /// An R2T that was sent and is not answered, by its number.
    std::optional<Request> repeat_request(std::uint32_t number) const;
    /// The fate, once no further data is to be expected.
    std::optional<DataOutcome> outcome() const;

private:
    struct Sequence {
        bool open = false;
        std::uint32_t tag = 0;
        std::uint32_t at = 0;  ///< the offset the next PDU must have
        std::uint32_t end = 0;
        std::uint32_t number = 0;          ///< the DataSN it must have
        std::uint32_t begin = 0;           ///< of what was asked for
        std::uint32_t request_number = 0;  ///< R2TSN
    };
    struct Hole {
        std::uint32_t offset = 0;
        std::uint32_t length = 0;
    };

    Sequence* find(wire::TargetTransferTag tag);
    bool check(Sequence& sequence, const wire::DataOutPdu& pdu);
    void lose(std::uint32_t offset, std::uint32_t length);
    void spoil(DataOutcome why);
    std::size_t open_requests() const;

    const ConnectionTerms* terms_ = nullptr;
    std::uint32_t offered_ = 0;
    std::optional<std::uint32_t> wanted_;
    DataOutcome fate_ = DataOutcome::complete;
    Sequence unsolicited_;
    FixedVector<Sequence, outstanding_requests_bound> requests_;
    std::uint32_t asked_ = 0;  ///< everything before this has come or was asked for
    std::uint16_t next_tag_ = 0;
    std::uint32_t next_number_ = 0;
    FixedVector<Hole, holes_max> holes_;
    // The segment on its way.
    bool segment_ = false;
    Sequence* segment_of_ = nullptr;
    Hole segment_place_{};
    bool segment_ends_ = false;
    bool segment_kept_ = false;
};

}  // namespace weft::iscsi
