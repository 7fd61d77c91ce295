// SPDX-License-Identifier: Apache-2.0
// Outgoing iSCSI PDUs on a byte stream, for either role: header, additional headers and data are
// lent where they are, with padding and digests around them. No data is copied.
//
// A PDU is an object of its maker's, who keeps it until gone(): the queue chains through the PDUs
// themselves, costs no memory, and its bound is how many PDU objects its maker has. Numbers that
// count sent PDUs (StatSN, CmdSN, ExpStatSN) are known only when a PDU goes, so the maker is asked
// to fill them in then: about_to_go() is called once per trip, in the order of the queue, just
// before the header is first lent.
//
// A long transfer is one PDU object that goes several times: gone() may load the next header and
// piece and say `again`, and it stays at the front, so nothing can come between its parts.
#pragma once

#include <array>
#include <span>

#include "base/intrusive_queue.hpp"
#include "iscsi/pdu_receiver.hpp"

namespace weft::iscsi {

class OutgoingPdu {
public:
    /// What becomes of a PDU whose bytes have gone.
    enum class Then : std::uint8_t {
        done,   ///< it is the maker's again, and may be destroyed or queued anew
        again,  ///< it holds the next PDU, which goes next
    };

    /// The basic header, encoded. Its lengths must be those of `additional` and `data`.
    std::array<std::byte, wire::basic_header_size> header{};
    ConstBuffer additional{};  ///< whole words
    /// The data segment: `data_length` octets, `data_skip` into the list.
    std::span<const Buffer> data{};
    std::uint64_t data_skip = 0;
    std::uint32_t data_length = 0;

    OutgoingPdu* next = nullptr;

    /// The sender's own, while it has the PDU.
    struct Trip {
        Digests digests;
        bool ready = false;  ///< numbers and digests are in place
        std::array<std::byte, wire::iscsi_digest_size> header_digest{};
        std::array<std::byte, 8> trailer{};
        std::uint8_t trailer_size = 0;
    } trip;

    /// The PDU is about to be lent: write the numbers into `header`. Do not queue from here.
    virtual void about_to_go() {}
    /// True if gone() may say `again`: then nothing behind it is lent before it is done.
    virtual bool may_go_again() const { return false; }
    /// Its last byte has gone. Queueing others from here is fine.
    virtual Then gone() = 0;
    /// The stream has ended before: nothing of it is lent any more.
    virtual void dropped() = 0;

protected:
    OutgoingPdu() = default;
    OutgoingPdu(const OutgoingPdu&) = default;
    OutgoingPdu& operator=(const OutgoingPdu&) = default;
    ~OutgoingPdu() = default;
};

class PduSender {
public:
    PduSender() = default;
    PduSender(const PduSender&) = delete;
    PduSender& operator=(const PduSender&) = delete;

    /// Of PDUs queued from now on.
    void use_digests(Digests digests) { digests_ = digests; }

    void queue(OutgoingPdu& pdu);
    bool empty() const { return queue_.empty(); }
    std::size_t size() const { return queue_.size(); }

    /// As StreamEngine has it: fills `pieces` with what should go next, several PDUs if they fit.
    std::size_t pending(std::span<ConstBuffer> pieces);
    void sent(std::size_t count);

    /// The stream is gone: every PDU hears dropped().
    void drop_all();

    /// Bytes that went out, for statistics.
    std::uint64_t total_sent() const { return total_sent_; }

private:
    void make_ready(OutgoingPdu& pdu);
    std::uint64_t size_of(const OutgoingPdu& pdu) const;
    /// Adds the PDU's pieces, but for its first `skip` bytes; false if there was no room for all.
    bool lend(const OutgoingPdu& pdu, std::uint64_t skip, std::span<ConstBuffer> pieces,
              std::size_t& used) const;

    Digests digests_;
    IntrusiveQueue<OutgoingPdu> queue_;
    std::uint64_t front_sent_ = 0;
    std::uint64_t total_sent_ = 0;
};

}  // namespace weft::iscsi
