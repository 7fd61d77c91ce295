// SPDX-License-Identifier: Apache-2.0
// SCSI commands carried out over an iSCSI connection in a capture, for tshark to read.
#pragma once

#include "interop/iscsi_exchange.hpp"
#include "wire/scsi.hpp"

namespace weft::wire {

/// An iSCSI connection on which commands are carried out one after another.
class ScsiTalk {
public:
    ScsiTalk() : talk_(capture_, {.server_port = iscsi_port}) {}

    /// Each of these returns the number of the frame that matters: the command's or the data's.
    template <class Command>
    std::size_t command(const Command& block) {
        auto number = talk_.client_sends(pdu_of(pdu_for(block, Way::none, 0)));
        answer();
        return number;
    }
    template <class Command>
    std::size_t reads(const Command& block, ConstBuffer data) {
        talk_.client_sends(pdu_of(pdu_for(block, Way::in, data.size())));
        auto number = talk_.server_sends(pdu_of(
            DataInPdu{.final = true,
                      .task_tag = InitiatorTaskTag{next_},
                      .transfer_tag = TargetTransferTag::none,
                      .numbers = {.status_number = next_, .expected_command_number = next_ + 1}},
            data));
        answer();
        return number;
    }
    template <class Command>
    std::size_t writes(const Command& block, ConstBuffer data) {
        auto number = talk_.client_sends(pdu_of(pdu_for(block, Way::out, data.size()), data));
        answer();
        return number;
    }
    template <class Command>
    std::size_t fails(const Command& block, ConstBuffer sense) {
        talk_.client_sends(pdu_of(pdu_for(block, Way::none, 0)));
        Bytes segment(2 + sense.size());
        EXPECT_TRUE(write_sense_segment(sense, segment));
        auto response = response_for(ScsiStatus::check_condition);
        ++next_;
        return talk_.server_sends(pdu_of(response, segment));
    }

    test::DissectedFrames without_complaint() const {
        auto frames = dissect(capture_, {});
        EXPECT_THAT(complaints(frames), IsEmpty());
        return frames;
    }

private:
    enum class Way : std::uint8_t { none, in, out };

    template <class Command>
    ScsiCommandPdu pdu_for(const Command& block, Way way, std::size_t length) const {
        static_assert(wire_size<Command>() <= command_block_in_header);
        ScsiCommandPdu pdu{.final = true,
                           .read = way == Way::in,
                           .write = way == Way::out,
                           .attribute = TaskAttribute::simple,
                           .task_tag = InitiatorTaskTag{next_},
                           .expected_transfer_length = static_cast<std::uint32_t>(length),
                           .numbers = {.command_number = next_, .expected_status_number = next_}};
        auto octets = encoded(block);
        for (std::size_t at = 0; at < octets.size(); ++at)
            pdu.command_block[at] = std::to_integer<std::uint8_t>(octets[at]);
        return pdu;
    }
    ScsiResponsePdu response_for(ScsiStatus status) const {
        return {.status = status,
                .task_tag = InitiatorTaskTag{next_},
                .numbers = {.status_number = next_, .expected_command_number = next_ + 1}};
    }
    void answer() {
        talk_.server_sends(pdu_of(response_for(ScsiStatus::good)));
        ++next_;
    }

    Capture capture_;
    TcpConversation talk_;
    std::uint32_t next_ = 1;
};

}  // namespace weft::wire
