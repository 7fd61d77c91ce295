// SPDX-License-Identifier: Apache-2.0
// What the target's TCP mover keeps of one command: the account of its data-out, and the PDU that
// carries its R2Ts and then, piece by piece, its answer. Part of tcp_target_mover.cpp.
#pragma once

#include <optional>

#include "iscsi/tcp_target_mover.hpp"
#include "wire/iscsi_segments.hpp"

namespace weft::iscsi {

/// A PDU that counts. With error recovery it is kept until the initiator says that it has it.
struct TcpTargetMover::Counted : OutgoingPdu {
    explicit Counted(TcpTargetMover& owner) : mover(owner) {}

    TcpTargetMover& mover;
    StatusCount count = StatusCount::peeks;
    std::uint32_t status_number = 0;
    bool repeated = false;    ///< it goes once more, under the number it has
    bool on_its_way = false;  ///< once more

    void about_to_go() override { mover.stamp(*this); }
    /// Nobody will ask for it again.
    virtual void acknowledged() = 0;

protected:
    ~Counted() = default;
};

struct TcpTargetMover::Slot final : Counted {
    enum class Sending : std::uint8_t { nothing, requests, answer, kept };

    explicit Slot(TcpTargetMover& owner) : Counted(owner) {}

    TargetMoverTask* task = nullptr;  ///< none: the slot is free
    DataOutTransfer transfer;
    std::span<const Buffer> places;
    bool taking = false;  ///< take_data() was called and is not answered
    Sending sending = Sending::nothing;
    bool answers() const { return sending == Sending::answer || sending == Sending::kept; }

    // The answer: what has gone of it, and how it is counted.
    TargetAnswer answer{};
    std::uint64_t total_in = 0;
    std::uint64_t sent_in = 0;
    /// As it was when the answer was cut, first or anew: numbers depend on it.
    std::uint32_t segment_max = 0;
    std::uint32_t data_number = 0;
    bool last = false;  ///< the PDU at hand ends the answer
    /// What the initiator has for good (DataACK): all before this.
    std::uint32_t kept_number = 0;
    std::uint64_t kept_offset = 0;
    std::uint32_t snack_tag = 0;    ///< of the last R-Data SNACK: the response carries it
    bool resegment_wanted = false;  ///< when what goes now has gone
    std::array<std::byte, sense_segment_max> sense_segment{};
    Buffer sense_piece;

    void load_request(const DataOutTransfer::Request& request);
    void load_answer();
    /// Data-In PDUs to be sent once more, by their numbers; none if both are the same.
    std::uint32_t repeat_from = 0, repeat_to = 0;
    /// The same, when what goes now has gone.
    struct Run {
        std::uint32_t from = 0, to = 0;
    };
    FixedVector<Run, repeats_max> runs;

    void begin_answer(const TargetAnswer& given);
    /// Sends these once more, when their turn comes. Refused: they have not all gone, or are
    /// acknowledged, or too many are asked for.
    std::optional<wire::RejectReason> repeat_data(std::uint32_t from, std::uint32_t length);
    /// Sends all that is not acknowledged once more, in segments as they are agreed on now, and the
    /// response with this tag.
    void resegment(std::uint32_t tag);
    /// All Data-In before this number has come. False: it cannot have.
    bool data_acknowledged(std::uint32_t expected);
    void acknowledged() override;
    bool may_go_again() const override {
        return sending == Sending::answer ? !last : repeat_from != repeat_to;
    }
    Then gone() override;
    void dropped() override { sending = Sending::nothing; }

private:
    void load_data_in();
    void load_response();
    void load_repeated();
    void swap_with_status();
    wire::DataInPdu data_in_at(std::uint64_t offset, std::uint32_t number) const;
    std::uint64_t offset_of(std::uint32_t number) const;
    void resegment_now();
    void repeat_now(Run run);
    /// The length of the Data-In that begins there.
    std::uint64_t length_at(std::uint64_t offset) const;
    bool ends_sequence(std::uint64_t offset) const;

    /// The PDU with the status, while others of the task go once more.
    struct {
        std::array<std::byte, wire::basic_header_size> header{};
        std::span<const Buffer> data{};
        std::uint64_t skip = 0;
        std::uint32_t length = 0;
    } status_;
};

/// A PDU with its own copy of everything.
struct TcpTargetMover::Control final : Counted {
    explicit Control(TcpTargetMover& owner) : Counted(owner) {}

    std::vector<std::byte> octets;
    Buffer piece;

    void acknowledged() override { mover.free_controls_.push_back(this); }
    Then gone() override;
    void dropped() override {}
};

}  // namespace weft::iscsi
