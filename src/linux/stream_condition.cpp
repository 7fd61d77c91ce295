// SPDX-License-Identifier: Apache-2.0
#include "linux/stream_condition.hpp"

// Not <netinet/tcp.h>, whose tcp_info ends before the counts of segments, and which cannot be
// included beside this.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace weft::linux {

std::optional<StreamCondition> condition_of(int socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) return std::nullopt;
    return StreamCondition{.round_trip = std::chrono::microseconds(info.tcpi_rtt),
                           .segments_sent = info.tcpi_data_segs_out,
                           .segments_resent = info.tcpi_total_retrans};
}

}  // namespace weft::linux
