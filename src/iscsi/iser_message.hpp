// SPDX-License-Identifier: Apache-2.0
// iSER's Sends as they are received: 28 octets of header, an iSCSI PDU without digests behind them.
#pragma once

#include "iscsi/datamover.hpp"
#include "iscsi/iser_limits.hpp"

namespace weft::iscsi::iser {

struct Message {
    wire::IserControlHeader advertised{};
    ReceivedPdu pdu{};  ///< points into the octets it was read from
};

/// Takes a control message apart. The data segment need not be padded, and what follows it does not
/// matter: implementations differ. An error: it is none, or ends too early.
///
/// libiscsi 1.19 says that data goes along with a command and does not send it, if we agreed to
/// immediate data. Of such a command the length is set to 0, in `octets` too: its data is all in
/// the buffer it advertises.
Result<Message> read_message(Buffer octets);

/// What of a PDU stands in front of its data segment: writes both headers, with the data length in
/// its place, and returns how many octets that took (headers_size).
std::size_t write_headers(const wire::IserControlHeader& advertised, ConstBuffer basic_header,
                          std::size_t data_length, Buffer to);

/// Puts a target's numbers into a PDU's header, where they are in all of them.
void stamp(const wire::TargetNumbers& numbers, Buffer basic_header);
wire::TargetNumbers target_numbers(ConstBuffer basic_header);

}  // namespace weft::iscsi::iser
