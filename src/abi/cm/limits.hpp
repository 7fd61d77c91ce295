// SPDX-License-Identifier: Apache-2.0
// Every bound of librdmacm in one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/instant.hpp"

namespace weft::abi::limits {

/// Requests that wait for the application of one listener. A smaller backlog than the first is
/// taken for the first: many programs say 0 or 1 and mean that they do not care.
inline constexpr unsigned fewest_requests = 64;
inline constexpr unsigned most_requests = 1024;

/// What rdma_conn_param can say of reads under way, each way.
inline constexpr std::uint16_t reads = 128;

/// How often somebody who is refused tries again, and after how long the last time; four times as
/// long as the time before.
inline constexpr unsigned refusals = 4;
inline constexpr Duration refusal_wait = std::chrono::milliseconds(64);

/// Between the end of a connection by the peer and DISCONNECTED. What was received before must be
/// found first by a program that looks for it all the time: where the end comes as fast, libfabric
/// 1.17 closes its endpoint under the receive that it finds next. With the kernel's devices the
/// event takes its time.
inline constexpr Duration end_notice = std::chrono::milliseconds(2);

/// Between DISCONNECTED and TIMEWAIT_EXIT. An RNIC of InfiniBand waits here for stray packets,
/// which TCP does for us; but there are programs that free a connection only when this is over.
inline constexpr Duration farewell = std::chrono::milliseconds(20);

/// What an endpoint says it waits for the resolution of an address, which takes no time here.
inline constexpr int resolution_ms = 2'000;

/// How long it is believed that an address belongs to the interface that had it.
inline constexpr Duration device_memory = std::chrono::seconds(1);

/// Kept a while for threads that have not noticed.
inline constexpr std::size_t destroyed_channels = 64;

/// Descriptors that are looked at to find a listener of the application's own.
inline constexpr int descriptors_searched = 4'096;

}  // namespace weft::abi::limits
