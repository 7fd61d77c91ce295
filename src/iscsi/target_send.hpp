// SPDX-License-Identifier: Apache-2.0
// How a connection of the target sends a PDU of any kind. Part of target_connection.cpp.
#pragma once

#include "iscsi/target_connection.hpp"

namespace weft::iscsi {

template <class Pdu>
void TargetConnection::send(const Pdu& pdu, ConstBuffer data, StatusCount count) {
    std::array<std::byte, wire::basic_header_size> header{};
    encode(pdu, header);
    mover_->send({.header = header, .data = data}, count);
}

}  // namespace weft::iscsi
