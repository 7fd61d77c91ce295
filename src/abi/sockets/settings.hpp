// SPDX-License-Identifier: Apache-2.0
// What a socket is to be like: sizes an administrator or an application has chosen, and options
// that are remembered so that they can be asked for.
#pragma once

#include <cstdint>

#include "abi/sockets/limits.hpp"

namespace weft::abi::sockets {

struct Settings {
    std::uint32_t send_bytes = limits::buffer_bytes_default;
    std::uint32_t receive_bytes = limits::buffer_bytes_default;
    std::uint32_t send_entries = limits::queue_entries_default;
    std::uint32_t receive_entries = limits::queue_entries_default;
    std::uint32_t inline_bytes = limits::inline_bytes_default;
    std::uint32_t mappings = 0;  ///< the peer may tell us of

    bool reuse_address = false;
    bool keep_alive = false;
    bool out_of_band_inline = false;
    bool no_linger = false;
    bool no_delay = false;
    bool only_ipv6 = false;
    int keep_idle_s = 7200;
    int status_flags = 0;  ///< of F_SETFL

    bool is_nonblocking() const;
};

/// As the files in /etc/rdma/rsocket say. They are read once.
const Settings& default_settings();
/// How long a call looks for news before it goes to sleep.
std::uint32_t polling_us();

}  // namespace weft::abi::sockets
