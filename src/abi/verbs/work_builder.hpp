// SPDX-License-Identifier: Apache-2.0
// Work in the ibv_wr_* style: an application names one property after the other, for as many
// requests as it likes, and then says that all of it shall go, or nothing.
#pragma once

#include "abi/verbs/objects.hpp"

namespace weft::abi {

/// Whether all these IBV_QP_EX_WITH_* can be had.
bool can_build(std::uint64_t send_ops_flags);
/// Gives a new queue pair what ibv_wr_start() and the others need.
void add_builder(QueuePair& queue_pair);

}  // namespace weft::abi
