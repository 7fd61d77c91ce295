// SPDX-License-Identifier: Apache-2.0
// What the target's TCP mover keeps of one command: the account of its data-out, and the PDU that
// carries its R2Ts and then, piece by piece, its answer. Part of tcp_target_mover.cpp.
#pragma once

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

    // The answer: what has gone of it, and how it is counted.
    TargetAnswer answer{};
    std::uint64_t total_in = 0;
    std::uint64_t sent_in = 0;
    std::uint32_t segment_max = 0;  ///< as it was when the answer began: numbers depend on it
    std::uint32_t data_number = 0;
    bool last = false;  ///< the PDU at hand ends the answer
    std::array<std::byte, sense_segment_max> sense_segment{};
    Buffer sense_piece;

    void load_request(const DataOutTransfer::Request& request);
    void load_answer();
    /// Data-In PDUs to be sent once more, by their numbers; none if both are the same.
    std::uint32_t repeat_from = 0, repeat_to = 0;

    /// Sends these once more. False: they have not all gone, or go already.
    bool repeat_data(std::uint32_t from, std::uint32_t to);
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
