// SPDX-License-Identifier: Apache-2.0
// iSCSI PDUs as octets for a capture, and how tests say what tshark must have seen in them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "support/tshark.hpp"
#include "wire/iscsi.hpp"

namespace weft::wire {

using test::Bytes;
using test::Capture;
using test::complaints;
using test::dissect;
using test::DissectedFrame;
using test::from_hex;
using test::join;
using test::TcpConversation;
using testing::ElementsAre;
using testing::IsEmpty;

/// A PDU with its data segment, padded; the length is filled in.
template <class Pdu>
Bytes pdu_of(Pdu header, ConstBuffer data) {
    if constexpr (requires { header.data_length; })
        header.data_length = static_cast<std::uint32_t>(data.size());
    Bytes padding(round_up(data.size(), iscsi_padding_unit) - data.size());
    return join({encoded(header), data, padding});
}
template <class Pdu>
Bytes pdu_of(const Pdu& header) {
    return join({encoded(header)});
}

struct ExpectedField {
    const char* name;
    std::uint64_t value;
};
inline void expect_fields(const DissectedFrame& frame,
                          std::initializer_list<ExpectedField> fields) {
    for (auto& field : fields) EXPECT_EQ(frame.number(field.name), field.value) << field.name;
}

}  // namespace weft::wire
